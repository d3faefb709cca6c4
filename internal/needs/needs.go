// Package needs says which programs of others a test cannot do without, and skips it where
// they are not to be had.
//
// .ci/test sets ZORILLA_LACKS to a file where programs are missing that it may not install:
// tests that need them are skipped, and listed there. Without it a program that is missing is
// a failure, so that no test is left out unseen.
package needs

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// lacks is the environment variable that names the file.
const lacks = "ZORILLA_LACKS"

// root stands for the user that only some tests need.
const root = "root"

// T is what this package asks of a test; *testing.T and the tests of testscript have it.
type T interface {
	Skip(...any)
	Fatal(...any)
}

// Root skips a test that only root can run.
func Root(t *testing.T) {
	t.Helper()
	Script(t, t.Name(), root)
}

// Programs skips a test unless all programs are there, or fails it. Each is the name of a
// program, or several of which one is enough: "chromium|google-chrome".
func Programs(t *testing.T, programs ...string) {
	t.Helper()
	Script(t, t.Name(), programs...)
}

// Program returns the path of the first of several programs that is there; it skips the test,
// or fails it, if none is.
func Program(t *testing.T, names ...string) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	Programs(t, strings.Join(names, "|"))
	return ""
}

// Script is Programs for a test of testscript, whose name is given. One of the programs may
// be "root", which is no program and no failure: only root can run the script.
func Script(t T, name string, programs ...string) {
	if i := slices.Index(programs, root); i >= 0 {
		if os.Geteuid() != 0 {
			skip(t, name, root)
			return // in a test of this one
		}
		programs = slices.Delete(slices.Clone(programs), i, i+1)
	}
	var missing []string
	for _, p := range programs {
		if !has(p) {
			missing = append(missing, p)
		}
	}
	if len(missing) == 0 {
		return
	}
	what := strings.Join(missing, ", ")
	if os.Getenv(lacks) == "" {
		t.Fatal(fmt.Sprintf("needs %s, which is not here: see .ci/tools", what))
	}
	skip(t, name, what)
}

// skip skips the test, and lists it where somebody wants the list.
func skip(t T, name, what string) {
	if file := os.Getenv(lacks); file != "" {
		if err := note(file, name+" needs "+what); err != nil {
			t.Fatal(err)
		}
	}
	t.Skip("needs " + what)
}

func has(programs string) bool {
	for p := range strings.SplitSeq(programs, "|") {
		if _, err := exec.LookPath(p); err == nil {
			return true
		}
	}
	return false
}

func note(file, line string) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.WriteString(line + "\n"); err != nil { // one write: tests of several packages append
		f.Close()
		return err
	}
	return f.Close()
}
