package mpi

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"zorilla/internal/needs"
)

// The libraries that are embedded were built from the sources that are here.
func TestLibrariesAreOfTheirSource(t *testing.T) {
	for _, source := range []string{"zpmi", "finish"} {
		text, err := os.ReadFile(filepath.Join("libzpmi", source+".c"))
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("zorilla-mpi-source sha256:%x\x00", sha256.Sum256(text))
		for _, arch := range []string{"amd64", "arm64"} {
			name := source + "." + arch + ".so"
			b, err := os.ReadFile(filepath.Join("libzpmi", name))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Contains(b, []byte(want)) {
				t.Errorf("%s was built from another %s.c: run jobs/mpi/build", name, source)
			}
			if arch == runtime.GOARCH && runtime.GOOS == "linux" && !bytes.Equal(b, map[string][]byte{"zpmi": client, "finish": finish}[source]) {
				t.Errorf("%s is not what is embedded", name)
			}
		}
	}
}

// compiler is what the libraries were built with, as it names itself.
const compiler = "(Debian 12.2.0-14+deb12u1) 12.2.0"

// The same compiler makes the same libraries, byte by byte.
func TestLibrariesAreBuiltAgain(t *testing.T) {
	compilers := 0
	for arch, cc := range map[string]string{"amd64": "x86_64-linux-gnu-gcc", "arm64": "aarch64-linux-gnu-gcc"} {
		version, err := exec.CommandContext(t.Context(), cc, "--version").Output()
		first, _, _ := strings.Cut(string(version), "\n")
		if arch == runtime.GOARCH {
			needs.Programs(t, cc)
		}
		// Debian's compilers for other processors have a version of their packages too.
		if err != nil || !strings.Contains(first, compiler) && !strings.HasSuffix(first, "(Debian 12.2.0-14) 12.2.0") {
			continue
		}
		compilers++
		dir := t.TempDir()
		if out, err := exec.CommandContext(t.Context(), "bash", "build", dir, arch).CombinedOutput(); err != nil {
			t.Fatalf("build: %v\n%s", err, out)
		}
		for _, source := range []string{"zpmi", "finish"} {
			name := source + "." + arch + ".so"
			want, err := os.ReadFile(filepath.Join("libzpmi", name))
			if err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s is built otherwise: %v: run jobs/mpi/build", name, err)
			}
		}
	}
	t.Logf("%d compilers of that version", compilers)
}

// Whoever installs finds the right files, whatever was there.
func TestInstall(t *testing.T) {
	if len(client) == 0 {
		if _, err := Install(t.TempDir()); !errors.Is(err, ErrNoLibrary) {
			t.Error(err)
		}
		return
	}
	dir := t.TempDir()
	l, err := Install(dir)
	if err != nil {
		t.Fatal(err)
	}
	check := func() os.FileInfo {
		t.Helper()
		for path, want := range map[string][]byte{l.Client: client, l.Finish: finish} {
			info, err := os.Lstat(path)
			if err != nil || info.Mode() != 0o644 {
				t.Fatalf("%s: %v, %v", path, info, err)
			}
			if b, err := os.ReadFile(path); err != nil || !bytes.Equal(b, want) {
				t.Errorf("%s is something else: %v", path, err)
			}
		}
		info, _ := os.Lstat(l.Client)
		return info
	}
	first := check()
	if _, err := Install(dir); err != nil || !os.SameFile(first, check()) {
		t.Errorf("what was right was replaced, or not kept: %v", err)
	}
	// Shortened, changed, forbidden to read, and a link to somewhere else.
	other := filepath.Join(dir, "other")
	if err := os.WriteFile(other, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func() error{
		"shorter": func() error { return os.Truncate(l.Client, 10) },
		"changed": func() error { return os.WriteFile(l.Client, make([]byte, len(client)), 0o644) },
		"private": func() error { return os.Chmod(l.Client, 0o600) },
		"link": func() error {
			return errors.Join(os.Remove(l.Client), os.Symlink(other, l.Client))
		},
	} {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		if _, err := Install(dir); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		check()
	}
	if b, _ := os.ReadFile(other); string(b) != "mine" {
		t.Error("it wrote through a link")
	}
	if _, err := Install(filepath.Join(dir, "missing")); err == nil {
		t.Error("it installs into a directory that is missing")
	}
}
