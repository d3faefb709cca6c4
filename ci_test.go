package zorilla_test

import (
	"cmp"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// checkout is a small repository with scripts of .ci.
type checkout struct {
	t   *testing.T
	dir string
}

func newCheckout(t *testing.T, scripts ...string) *checkout {
	t.Helper()
	c := &checkout{t, t.TempDir()}
	for _, name := range scripts {
		text, err := os.ReadFile(filepath.Join(".ci", name))
		if err != nil {
			t.Fatal(err)
		}
		c.write(".ci/"+name, string(text))
	}
	c.write("go.mod", "module small\n\ngo 1.26\n")
	c.git("init", "-q")
	return c
}

func (c *checkout) write(name, text string) {
	c.t.Helper()
	path := filepath.Join(c.dir, name)
	if err := cmp.Or(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		c.t.Fatal(err)
	}
}

func (c *checkout) read(name string) string {
	c.t.Helper()
	b, err := os.ReadFile(filepath.Join(c.dir, name))
	if err != nil {
		c.t.Fatal(err)
	}
	return string(b)
}

// run returns what a command printed, and its exit code.
func (c *checkout) run(env string, name string, args ...string) (string, int) {
	c.t.Helper()
	cmd := exec.CommandContext(c.t.Context(), name, args...)
	cmd.Dir, cmd.Env = c.dir, append(os.Environ(), "ZORILLA_TRIED=", "ZORILLA_FULL=", "AXE_CORE=none", "GOFLAGS=", env)
	out, err := cmd.CombinedOutput()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		c.t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func (c *checkout) git(args ...string) string {
	c.t.Helper()
	out, code := c.run("", "git", append([]string{"-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
	if code != 0 {
		c.t.Fatalf("git %q: %s", args, out)
	}
	return strings.TrimSpace(out)
}

// commit commits all, and returns its name.
func (c *checkout) commit() string {
	c.git("add", "-A")
	c.git("commit", "-qm", "all", "--allow-empty")
	return c.git("rev-parse", "HEAD")
}

// A test that fails is tried once more, and noted with its seed, the load and what it printed.
func TestWhatIsTriedTwiceIsNoted(t *testing.T) {
	c := newCheckout(t, "test")
	c.write(".ci/tools", "exit 0\n")
	c.write("good/good_test.go", "package good\n\nimport \"testing\"\n\n"+"func"+" TestGood(t *testing.T) {}\n")
	c.write("once/once_test.go", `package once

import (
	"os"
	"testing"
)

`+"func"+` TestOther(t *testing.T) { t.Log("of the other") }

`+"func"+` TestOnce(t *testing.T) {
	t.Run("part", func(t *testing.T) {
		if os.Remove("once") == nil || os.Getenv("HOW") == "always" {
			t.Error("the same again: ZORILLA_SEEDS=7-7 go test\nok    as doctor says\nFAIL here")
		}
	})
}
`)
	if out, code := c.run("", "bash", ".ci/test"); code != 0 || strings.Contains(out, "tried") {
		t.Errorf("nothing fails: %d, %s", code, out)
	}
	for how, want := range map[string]int{"once": 0, "always": 1} {
		c.write("once/once", "")
		out, code := c.run("HOW="+how, "bash", ".ci/test")
		second := map[int]string{0: "passed", 1: "failed"}[want]
		noted := regexp.MustCompile(`^small/once \^TestOnce\$/\^\(part\)\$\n  ZORILLA_SEEDS=7-7; load [0-9. ]+ at \S+Z; options: none; the second time: ` +
			second + `; the first time:\n    --- FAIL: TestOnce .*\n        --- FAIL: TestOnce/part .*\n.*the same again: ZORILLA_SEEDS=7-7 go test\n +ok    as doctor says\n +FAIL here\n$`)
		if text := c.read("tried-again.txt"); code != want || !noted.MatchString(text) || !strings.Contains(out, "What was tried again, and why: tried-again.txt") {
			t.Errorf("fails %s: %d, %s\nnoted %s", how, code, out, text)
		}
	}
}

// .ci/run leaves out what has not changed since .ci/full has passed, and nothing where that
// cannot be known.
func TestWhatHasChangedIsTested(t *testing.T) {
	c := newCheckout(t, "changed", "affected")
	for _, p := range []string{"flood", "flood/deep", "vicinity", "docs"} {
		c.write(p+"/a.go", "package a\n")
		c.write(p+"/a_test.go", "package a\n")
	}
	c.write("user/user.go", "package user\n\nimport _ \"small/flood\"\n")
	c.write("user/user_test.go", "package user\n")
	passed := c.commit()
	c.write(".ci/passed", passed+" 2026-01-02 3 2\n")
	c.commit()
	everything := "./docs\n./flood\n./flood/deep\n./user\n./vicinity\n"
	for _, s := range []struct {
		what, file, env, full string
		changed               string // parts
		affected              string
	}{
		{what: "nothing"},
		{what: "a package that another uses", file: "flood/a.go", changed: "chaos loops mpi", affected: "./flood\n./user\n"},
		{what: "a test of it", file: "flood/a_test.go", affected: "./flood\n"},
		{what: "one below it", file: "flood/deep/a.go", changed: "chaos loops mpi", affected: "./flood/deep\n"},
		{what: "what a test reads", file: "vicinity/testdata/x", changed: "chaos loops mpi", affected: "./vicinity\n"},
		{what: "a test", file: "vicinity/a_test.go", affected: "./vicinity\n"},
		{what: "a script of a command", file: "cmd/zorilla/testdata/real/net-x.txtar"},
		{what: "one with MPI", file: "cmd/zorilla/testdata/real/net-mpi.txtar", changed: "mpi"},
		{what: "a page", file: "docs/jobs.md", changed: "pages", affected: "./docs\n"},
		{what: "a figure", file: "docs/experiments/x/results.txt", affected: "./docs\n"},
		{what: "go.mod", file: "go.mod", affected: everything},
		{what: "all is wanted", env: "ZORILLA_FULL=1", changed: "chaos loops mpi pages snakemake", affected: everything},
		{what: "a commit that is not here", full: strings.Repeat("1", 40), changed: "chaos loops mpi pages snakemake", affected: everything},
	} {
		for _, committed := range []bool{false, true} {
			c.write(".ci/passed", cmp.Or(s.full, passed)+" 2026-01-02 3 2\n")
			if s.file != "" {
				before, _ := os.ReadFile(filepath.Join(c.dir, s.file))
				c.write(s.file, string(before)+"\n")
			}
			if committed {
				c.commit()
			}
			var parts []string
			for _, part := range []string{"chaos", "loops", "mpi", "pages", "snakemake"} {
				if _, code := c.run(s.env, "bash", ".ci/changed", part); code == 0 {
					parts = append(parts, part)
				}
			}
			if got := strings.Join(parts, " "); got != s.changed {
				t.Errorf("%s, committed %t: %q are run, want %q", s.what, committed, got, s.changed)
			}
			if got, _ := c.run(s.env, "bash", ".ci/affected"); got != s.affected {
				t.Errorf("%s, committed %t: raced\n%swant\n%s", s.what, committed, got, s.affected)
			}
		}
		c.git("reset", "-q", "--hard", passed)
		c.git("clean", "-fdq")
	}
	c.write(".ci/passed", passed+" 2026-01-02 3 2\n")
	c.write("vicinity/testdata/x", "")
	c.write("flood/deep/a.go", "package a\n\n")
	if got, _ := c.run("", "bash", ".ci/affected", "*.go"); got != "./flood/deep\n" {
		t.Errorf("Go code of %q has changed", got)
	}
}

// .ci/often counts what fails.
func TestOften(t *testing.T) {
	c := newCheckout(t, "often")
	c.write("a/a_test.go", "package a\n\nimport \"testing\"\n\n"+"func"+" TestA(t *testing.T) {}\n")
	temp := t.TempDir()
	c.write("fail.sh", "mktemp -d one-XXX >/dev/null; test $(ls -d one-* | wc -l) != 2\n")
	for _, s := range []struct {
		args, want string
		code       int
	}{
		{"-n 3 -at 2 ./a TestA", `^TestA of \./a: 0 of 3 failed, 2 at a time beside 0 busy loops; .* median [0-9.]+\n$`, 0},
		{"-n 2 ./a TestNone", `there is no such test\nTestNone of \./a: 2 of 2 failed`, 1},
		{"-n 4 -load 1 -- sh fail.sh", `what failed: \S+/2 \(1\)\nsh fail.sh: 1 of 4 failed, 1 at a time beside 1 busy loops`, 1},
		{"-n x ./a TestA", `-load N`, 2},
		{"./a", `-load N`, 2},
	} {
		out, code := c.run("TMPDIR="+temp, "bash", append([]string{".ci/often"}, strings.Fields(s.args)...)...)
		if code != s.code || !regexp.MustCompile(s.want).MatchString(out) {
			t.Errorf("%s: %d, %s", s.args, code, out)
		}
	}
}
