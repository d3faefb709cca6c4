package zorilla_test

import (
	"cmp"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tools runs .ci/tools where only the programs of the shell and those given are
// there, and id and apt-get are scripts.
func tools(t *testing.T, have []string, id, apt string, args ...string) (string, error) {
	t.Helper()
	bin := t.TempDir()
	script := func(name, text string) {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range have {
		script(name, "true")
	}
	for _, name := range []string{"mktemp", "tail", "rm", "sh", "chmod", "cp", "grep"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	script("id", "echo "+id)
	script("sleep", "true")
	script("apt-get", "BIN="+bin+"\n"+apt)
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(".ci/tools")
	if err != nil {
		t.Fatal(err)
	}
	// What lies in the usual places of root must not count.
	script("tools", strings.ReplaceAll(string(text), ":/usr/sbin:/sbin", ""))
	cmd := exec.CommandContext(t.Context(), bash, append([]string{filepath.Join(bin, "tools")}, args...)...)
	cmd.Env = []string{"PATH=" + bin}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// What the tests need is there, is installed, or is named in one line.
func TestTools(t *testing.T) {
	jobs := []string{"gcc", "make", "mpicc.openmpi", "mpirun.openmpi", "mpicc.mpich", "mpiexec.hydra", "parallel", "rsync", "lmp", "snakemake", "curl", "npm", "f2py3", "pamscale", "pnmtojpeg", "python3", "groff"}
	all := append([]string{"go", "git", "chromium", "ip", "tc", "bridge"}, jobs...)
	if out, err := tools(t, all, "1000", "exit 1"); err != nil || out != "" {
		t.Errorf("all is there: %v, %q", err, out)
	}
	for _, user := range []struct{ id, apt, want string }{
		{"1000", "exit 1", "apt-get install chromium iproute2"},
		{"0", "echo no network >&2; exit 100", "could not be installed: chromium iproute2"},
	} {
		out, err := tools(t, append([]string{"go", "git", "tc"}, jobs...), user.id, user.apt)
		if err == nil || !strings.Contains(out, user.want) {
			t.Errorf("user %s: %v, %q, want %q", user.id, err, out, user.want)
		}
	}
	out, err := tools(t, append([]string{"go", "git", "tc", "ip", "bridge"}, jobs...), "0", `[ "$1" = update ] || { cp "$BIN/go" "$BIN/chromium"; }`)
	const says = "== install chromium (Debian's packages: up to 1 GB, about two minutes)\n"
	if err != nil || out != says {
		t.Errorf("installed: %v, %q", err, out)
	}
	locked := `if [ ! -e "$BIN/second" ]; then cp "$BIN/go" "$BIN/second"; echo "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 7 (apt-get)" >&2; exit 100; fi
		[ "$1" = update ] || { cp "$BIN/go" "$BIN/chromium"; }`
	out, err = tools(t, append([]string{"go", "git", "tc", "ip", "bridge"}, jobs...), "0", locked)
	if err != nil || out != says+"apt is in use by another program: waiting for it, ten minutes at most\n" {
		t.Errorf("apt was locked: %v, %q", err, out)
	}
	// The tests can be run without all but these two.
	for missing, want := range map[string]int{"chromium": 1, "go": 2, "git": 2} {
		out, err := tools(t, slices.DeleteFunc(slices.Clone(all), func(name string) bool { return name == missing }), "1000", "exit 1", "offer")
		if exit := new(exec.ExitError); !errors.As(err, &exit) || exit.ExitCode() != want || strings.Contains(out, "left out") != (want == 1) {
			t.Errorf("without %s: %v, %q, want exit code %d", missing, err, out, want)
		}
	}
	out, err = tools(t, []string{"go", "git", "tc", "ip", "bridge", "srun", "mpiexec.hydra"}, "1000", "exit 1", "starts")
	if err == nil || !strings.Contains(out, "apt-get install openssh-server openssh-client slurm-wlm munge openmpi-bin parallel\n") {
		t.Errorf("what is started beside zorilla: %v, %q", err, out)
	}
	out, err = tools(t, []string{"ssh"}, "1000", "exit 1", "ssh")
	if err == nil || !strings.Contains(out, "apt-get install openssh-server openssh-client\n") {
		t.Errorf("what files are copied with beside zorilla: %v, %q", err, out)
	}
	out, err = tools(t, append([]string{"go", "git"}, jobs[1:4]...), "1000", "exit 1", "mpi")
	if err == nil || !strings.Contains(out, "apt-get install gcc libc6-dev mpich libmpich-dev\n") {
		t.Errorf("what MPI programs need: %v, %q", err, out)
	}
}

// A target that fails has .ci/fuzz fail, also if it does so once only; one that hung, or
// whose process ended, is tried once more. What it failed with is shown.
func TestWhatFuzzingFinds(t *testing.T) {
	dir := t.TempDir()
	script, err := os.ReadFile(".ci/fuzz")
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		if err := cmp.Or(os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700), os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	write(".ci/fuzz", string(script))
	write("go.mod", "module once\n\ngo 1.26\n")
	// Its function does not begin with the word here, or .ci/fuzz would look for it in this package.
	write("once_test.go", `package once

import (
	"os"
	"testing"
)

`+"func"+` FuzzOnce(f *testing.F) {
	f.Fuzz(func(t *testing.T, b []byte) {
		switch how, once := os.Getenv("HOW"), os.Remove("once") == nil; {
		case how == "always exits", how == "exits" && once:
			os.Exit(2)
		case how == "fails" && once:
			t.Fatal("no more")
		}
	})
}
`)
	run := func(how, name string, args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOW="+how)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := run("", "git", "init", "-q"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for how, good := range map[string]bool{"exits": true, "always exits": false, "fails": false} {
		write("once", "")
		out, err := run(how, "bash", ".ci/fuzz")
		kept, _ := filepath.Glob(filepath.Join(dir, "testdata/fuzz/FuzzOnce/*"))
		if (err == nil) != good || (len(kept) == 0) != good || !strings.Contains(out, "\n[]byte(") {
			t.Errorf("a target that %s: %v, keeps %d inputs:\n%s", how, err, len(kept), out)
		}
		if err := os.RemoveAll(filepath.Join(dir, "testdata")); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWhatDoesLessUnderTheRaceDetector sees that .ci/again finds every test that
// does less with the race detector: each asks internal/seeds in its own function.
func TestWhatDoesLessUnderTheRaceDetector(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "bash", ".ci/again", "-n").Output()
	if err != nil {
		t.Fatal(err)
	}
	command := strings.FieldsFunc(string(out), func(r rune) bool { return strings.ContainsRune(" \n^$()|/", r) })
	packages := strings.Fields(string(out))
	found := 0
	for _, path := range sources(t) {
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.ToSlash(filepath.Dir(path))
		for _, c := range f.Comments {
			if text := c.List[0].Text; strings.HasPrefix(text, "//go:build ") && strings.HasSuffix(text, "race") && dir != "internal/seeds" {
				t.Errorf("%s depends on the race detector: ask internal/seeds", path)
			}
		}
		for _, d := range f.Decls {
			name, asks := "", false
			if fn, ok := d.(*ast.FuncDecl); ok {
				name = fn.Name.Name
			}
			ast.Inspect(d, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok {
					x, ok := s.X.(*ast.Ident)
					asks = asks || ok && x.Name == "seeds" && slices.Contains([]string{"Raced", "Fewer", "Longer", "OneGoroutine"}, s.Sel.Name)
				}
				return true
			})
			switch {
			case !asks || dir == "cmd/zorilla": // all of it runs without, in .ci/run
			case !strings.HasPrefix(name, "Test") || !slices.Contains(command, name) || !slices.Contains(packages, "./"+dir):
				t.Errorf("%s: %s does less under the race detector, and .ci/again does not run it", path, name)
			default:
				found++
			}
		}
	}
	if found < 20 {
		t.Errorf("%d tests run again: %s", found, out)
	}
}
