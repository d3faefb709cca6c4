package crew

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"zorilla/internal/built"
)

// Build builds packages of this module into a directory.
func Build(t *testing.T, dir string, packages ...string) {
	t.Helper()
	for _, name := range packages {
		if err := built.Program(filepath.Join(dir, filepath.Base(name)), "zorilla/"+name); err != nil {
			t.Fatal(err)
		}
	}
}

// Nodes starts "zorilla dev" with these options, of a zorilla in the directory, until the
// end of the test. It returns what clients want in their environment.
func Nodes(t *testing.T, dir string, env []string, user *syscall.SysProcAttr, options ...string) string {
	t.Helper()
	cmd := exec.Command(filepath.Join(dir, "zorilla"), append(append([]string{"dev"}, options...), "--", "sh", "-c", "echo $ZORILLA_STATE; exec cat")...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr, cmd.Stderr = dir, env, user, os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	state, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return "ZORILLA_STATE=" + strings.TrimSpace(state)
}
