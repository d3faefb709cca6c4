// Package needs names what a test needs beside Go: programs, or root. A test that lacks a
// program fails, so that none is left out unseen; where .ci/test may not install programs it
// sets ZORILLA_LACKS to a file, in which such tests are listed, and skipped.
package needs

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// lacks is the environment variable with the name of that file.
const lacks = "ZORILLA_LACKS"

// root is what a test needs that only root can run.
const root = "root"

// T is a test: *testing.T, or one of testscript.
type T interface {
	Skip(...any)
	Fatal(...any)
}

// Root skips a test that only root can run.
func Root(t *testing.T) {
	t.Helper()
	Script(t, t.Name(), root)
}

// Programs fails or skips a test unless all programs are there.
func Programs(t *testing.T, programs ...string) {
	t.Helper()
	Script(t, t.Name(), programs...)
}

// OneOf returns the path of the first of several programs that is there, and fails or skips the
// test if none is.
func OneOf(t *testing.T, programs ...string) string {
	t.Helper()
	for _, p := range programs {
		if path, err := exec.LookPath(p); err == nil {
			return path
		}
	}
	lacking(t, t.Name(), strings.Join(programs, " or "))
	return ""
}

// Script is Programs for a script of that name. "root" stands for Root; an absolute path is there if
// anything is, as what a library has installed that brings no program.
func Script(t T, name string, programs ...string) {
	var missing []string
	for _, p := range programs {
		if p == root {
			if os.Geteuid() != 0 {
				skip(t, name, root)
				return
			}
		} else if !isHere(p) {
			missing = append(missing, p)
		}
	}
	if len(missing) > 0 {
		lacking(t, name, strings.Join(missing, ", "))
	}
}

func isHere(what string) bool {
	_, err := exec.LookPath(what)
	if filepath.IsAbs(what) {
		_, err = os.Stat(what)
	}
	return err == nil
}

// lacking ends a test for which a program is missing.
func lacking(t T, name, programs string) {
	if os.Getenv(lacks) == "" {
		t.Fatal("needs " + programs + ", which is not installed: see .ci/tools")
		return
	}
	skip(t, name, programs)
}

// skip skips a test, and lists it if there is a list.
func skip(t T, name, what string) {
	if file := os.Getenv(lacks); file != "" {
		if err := list(file, what+"\t"+name); err != nil {
			t.Fatal(err)
			return
		}
	}
	t.Skip("needs " + what)
}

// list appends a line in one write, since tests of several packages do so at the same time.
func list(file, line string) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}
