package built

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A test that passes is not run again, until a package that its program imports, or a file
// in it, is another.
func TestCacheOfGoTestSeesPrograms(t *testing.T) {
	own, err := os.ReadFile("built.go")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module zorilla\n\ngo 1.26\n")
	write("internal/built/built.go", string(own))
	write("program/main.go", "package main\n\nimport \"zorilla/word\"\n\nfunc main() { print(word.Good()) }\n")
	write("word/word.go", "package word\n\nimport _ \"embed\"\n\n//go:embed text/good\nvar text string\n\nfunc Good() string { return text }\n")
	write("word/text/good", "good")
	write("use/use_test.go", `package use

import (
	"os/exec"
	"path/filepath"
	"testing"

	"zorilla/internal/built"
)

func TestProgram(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	if err := built.Program(program, "zorilla/program"); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(program).CombinedOutput(); err != nil || string(out) != "good" {
		t.Fatalf("%v: says %s", err, out)
	}
}
`)
	run := func() string {
		cmd := exec.CommandContext(t.Context(), "go", "test", "./use")
		cmd.Dir = dir
		out, _ := cmd.CombinedOutput() // it tells
		return string(out)
	}
	if out := run(); !strings.HasPrefix(out, "ok") {
		t.Fatal(out)
	}
	if out := run(); !strings.HasSuffix(out, "(cached)\n") {
		t.Errorf("nothing has changed: %s", out)
	}
	write("word/text/good", "not so good")
	if out := run(); !strings.Contains(out, "says not so good") {
		t.Errorf("what it embeds has changed: %s", out)
	}
	write("word/text/good", "good")
	write("word/word.go", "package word\n\nfunc Good() string { return \"bad\" }\n")
	if out := run(); !strings.Contains(out, "says bad") {
		t.Errorf("what it imports has changed: %s", out)
	}
}

func TestProgramThatCannotBeBuilt(t *testing.T) {
	if err := Program(filepath.Join(t.TempDir(), "none"), "zorilla/internal/nothing"); err == nil || !strings.Contains(err.Error(), "zorilla/internal/nothing") {
		t.Errorf("got %v", err)
	}
}
