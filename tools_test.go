package zorilla_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// tools runs .ci/tools where only the programs of the shell and those given are
// there, and id and apt-get are scripts.
func tools(t *testing.T, have []string, id, apt string) (string, error) {
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
	for _, name := range []string{"mktemp", "tail", "rm", "sh", "chmod", "cp"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	script("id", "echo "+id)
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
	cmd := exec.CommandContext(t.Context(), bash, filepath.Join(bin, "tools"))
	cmd.Env = []string{"PATH=" + bin}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// What the tests need is there, is installed, or is named in one line.
func TestTools(t *testing.T) {
	all := []string{"go", "git", "chromium", "ip", "tc", "bridge"}
	if out, err := tools(t, all, "1000", "exit 1"); err != nil || out != "" {
		t.Errorf("all is there: %v, %q", err, out)
	}
	for _, user := range []struct{ id, apt, want string }{
		{"1000", "exit 1", "apt-get install chromium iproute2"},
		{"0", "echo no network >&2; exit 100", "could not be installed: chromium iproute2"},
	} {
		out, err := tools(t, []string{"go", "git", "tc"}, user.id, user.apt)
		if err == nil || !strings.Contains(out, user.want) {
			t.Errorf("user %s: %v, %q, want %q", user.id, err, out, user.want)
		}
	}
	out, err := tools(t, []string{"go", "git", "tc", "ip", "bridge"}, "0", `[ "$1" = update ] || { cp "$BIN/go" "$BIN/chromium"; }`)
	if err != nil || out != "== install chromium\n" {
		t.Errorf("installed: %v, %q", err, out)
	}
}
