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
	cmd.Dir, cmd.Env = c.dir, append(os.Environ(), "ZORILLA_RETRIED=", "ZORILLA_FULL=", "AXE_CORE=none", "GOFLAGS=", env)
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

// A test that fails is run once more, and noted with its seed, the load and what it printed.
func TestRetriesAreNoted(t *testing.T) {
	c := newCheckout(t, "test", "retry")
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
	if out, code := c.run("", "bash", ".ci/test"); code != 0 || strings.Contains(out, "retried") || strings.Contains(out, "Left out") {
		t.Errorf("nothing fails: %d, %s", code, out)
	}
	for how, want := range map[string]int{"once": 0, "always": 1} {
		c.write("once/once", "")
		out, code := c.run("HOW="+how, "bash", ".ci/test")
		second := map[int]string{0: "passed", 1: "failed"}[want]
		noted := regexp.MustCompile(`^small/once \^TestOnce\$/\^\(part\)\$\n  ZORILLA_SEEDS=7-7; load [0-9. ]+ at \S+Z; options: none; the second time it ` +
			second + `; the first time it printed:\n    --- FAIL: TestOnce .*\n        --- FAIL: TestOnce/part .*\n.*the same again: ZORILLA_SEEDS=7-7 go test\n +ok    as doctor says\n +FAIL here\n$`)
		if text := c.read("retried.txt"); code != want || !noted.MatchString(text) || !strings.Contains(out, "What was retried, and why: "+filepath.Join(c.dir, "retried.txt")) {
			t.Errorf("fails %s: %d, %s\nnoted %s", how, code, out, text)
		}
	}
}

// Tests that lack something are listed by what that is.
func TestWhatIsLeftOut(t *testing.T) {
	c := newCheckout(t, "test")
	c.write(".ci/tools", "exit 1\n") // as where something is missing
	c.write("a/a_test.go", `package a

import (
	"os"
	"testing"
)

`+"func"+` TestA(t *testing.T) {
	text := "gcc, make\tTestA\nroot\tTestB/one\nroot\tTestB/two\n/usr/bin/x\tTestC\nroot\tnet-job\n"
	if err := os.WriteFile(os.Getenv("ZORILLA_LACKS"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
`)
	out, code := c.run("", "bash", ".ci/test")
	if want := "\nLeft out, by what they need:\n/usr/bin/x: TestC\ngcc, make: TestA\nroot: TestB net-job\n"; code != 0 || !strings.HasSuffix(out, want) {
		t.Errorf("%d, %s, want %s", code, out, want)
	}
}

// .ci/run leaves out what has not changed since .ci/full has passed, and nothing where that
// cannot be known.
func TestChanges(t *testing.T) {
	c := newCheckout(t, "since", "changed", "affected")
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
	const all = "chaos loops mpi pages snakemake"
	for _, s := range []struct {
		what, file, env, passed string
		changed                 string // parts
		affected                string
	}{
		{what: "nothing"},
		{what: "a package that another uses", file: "flood/a.go", changed: "chaos loops mpi", affected: "./flood\n./user\n"},
		{what: "a test of it", file: "flood/a_test.go", affected: "./flood\n"},
		{what: "one below it", file: "flood/deep/a.go", changed: "chaos loops mpi", affected: "./flood/deep\n"},
		{what: "what a test reads", file: "vicinity/testdata/x", changed: "chaos loops mpi", affected: "./vicinity\n"},
		{what: "a script of a command", file: "cmd/zorilla/testdata/real/net-x.txtar"},
		{what: "one with a fake node", file: "cmd/zorilla/testdata/jobs.txtar"},
		{what: "one with MPI", file: "cmd/zorilla/testdata/mpi/mpi-x.txtar", changed: "mpi"},
		{what: "a page", file: "docs/jobs.md", changed: "pages", affected: "./docs\n"},
		{what: "a figure", file: "docs/experiments/x/results.txt", affected: "./docs\n"},
		{what: "a name with letters of its own", file: "flood/größe.txt", changed: "chaos loops mpi", affected: "./flood\n./user\n"},
		{what: "an odd name", file: "flood/$(touch hit)\n\"", changed: "chaos loops mpi", affected: everything},
		{what: "go.mod", file: "go.mod", affected: everything},
		{what: "everything is wanted", env: "ZORILLA_FULL=1", changed: all, affected: everything},
		{what: "a commit that is not here", passed: strings.Repeat("1", 40), changed: all, affected: everything},
	} {
		for _, committed := range []bool{false, true} {
			c.write(".ci/passed", cmp.Or(s.passed, passed)+" 2026-01-02 3 2 0\n")
			if s.file != "" {
				before, _ := os.ReadFile(filepath.Join(c.dir, s.file))
				c.write(s.file, string(before)+"\n")
			}
			if committed {
				c.commit()
			}
			var parts []string
			for _, part := range strings.Fields(all) {
				if why, code := c.run(s.env, "bash", ".ci/changed", part); code != 0 {
					t.Errorf("%s: %s: %d, %s", s.what, part, code, why)
				} else if why != "" {
					parts = append(parts, part)
				}
			}
			if got := strings.Join(parts, " "); got != s.changed {
				t.Errorf("%s, committed %t: %q are run, want %q", s.what, committed, got, s.changed)
			}
			if got, _ := c.run(s.env, "bash", ".ci/affected"); got != s.affected {
				t.Errorf("%s, committed %t: affected\n%swant\n%s", s.what, committed, got, s.affected)
			}
		}
		c.git("reset", "-q", "--hard", passed)
		c.git("clean", "-fdq")
	}
	// What fails is not taken for unchanged.
	for _, script := range []string{"changed", "affected"} {
		if out, code := c.run("", "bash", ".ci/"+script, "chaos"); code == 0 {
			t.Errorf("%s without a file .ci/passed: %s", script, out)
		}
	}
	if out, code := c.run("", "bash", ".ci/changed", "chaoss"); code != 2 || !strings.Contains(out, "chaos | loops") {
		t.Errorf("a part that is none: %d, %s", code, out)
	}
	c.write(".ci/passed", passed+" 2026-01-02 3 2\n")
	c.write("vicinity/testdata/x", "")
	c.write("flood/deep/a.go", "package a\n\n")
	if got, _ := c.run("", "bash", ".ci/affected", "*.go"); got != "./flood/deep\n" {
		t.Errorf("Go code of %q has changed", got)
	}
}

// .ci/stress counts what fails, and its load ends with it.
func TestStress(t *testing.T) {
	second := filepath.Join(t.TempDir(), "second")
	if err := os.WriteFile(second, []byte("echo >>$0.count\ntest $(wc -l <$0.count) != 2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, s := range []struct {
		args, want string
		code       int
	}{
		{"-count 3 -p 2 ./internal/units Test", `: 3 runs total, 0 failures\n$`, 0},
		{"./internal/units TestNone", `^\./internal/units has no test TestNone\n$`, 2},
		{"-count 4 -load 1 -- sh " + second, `: 4 runs total, 1 failures`, 1},
		{"-count x ./internal/units Test", `-load N`, 2},
		{"-count", `-load N`, 2},
		{"-p 0 ./internal/units Test", `-load N`, 2},
		{"./internal/units", `-load N`, 2},
	} {
		cmd := exec.CommandContext(t.Context(), "bash", append([]string{".ci/stress"}, strings.Fields(s.args)...)...)
		cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != s.code || !regexp.MustCompile(s.want).Match(out) {
			t.Errorf("%s: %d, %s", s.args, code, out)
		}
	}
}
