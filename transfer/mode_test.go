package transfer_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"zorilla/transfer"
)

// Files arrive with the modes that they had; where a umask counts it takes nothing from
// their owner.
func TestModesArrive(t *testing.T) {
	from, store := t.TempDir(), transfer.NewMemStore(1<<20)
	// As it is, and where a umask of 027 counts.
	want := map[string][3]fs.FileMode{
		"plain": {0o644, 0o644, 0o640}, "tool": {0o755, 0o755, 0o750}, "secret": {0o600, 0o600, 0o600}, "own-tool": {0o700, 0o700, 0o700},
		"shared": {0o666, 0o666, 0o640}, "group": {0o640, 0o640, 0o640}, "fixed": {0o444, 0o444, 0o440}, "odd": {0o415, 0o515, 0o510},
		"special": {0o755 | fs.ModeSetuid | fs.ModeSticky, 0o755, 0o750},
	}
	for name, modes := range want {
		if err := os.WriteFile(filepath.Join(from, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(from, name), modes[0]); err != nil {
			t.Fatal(err)
		}
	}
	m, err := transfer.Ingest(t.Context(), store, []transfer.Input{{Path: from, Name: "dir"}})
	if err != nil {
		t.Fatal(err)
	}
	b, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if m, err = transfer.DecodeManifest(b); err != nil {
		t.Fatal(err)
	}
	for i, how := range []transfer.How{{}, {Umask: 0o027, New: true}} {
		to := t.TempDir()
		if err := m.WriteTo(t.Context(), store, to, how); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(filepath.Join(to, "dir")); err != nil || info.Mode().Perm() != 0o755&^how.Umask {
			t.Errorf("the directory has %v, %v", info.Mode(), err)
		}
		for name, modes := range want {
			if info, err := os.Stat(filepath.Join(to, "dir", name)); err != nil || info.Mode() != modes[i+1] {
				t.Errorf("%s: %v, %v, want %v", name, info.Mode(), err, modes[i+1])
			}
		}
	}
	out, _, err := transfer.Collect(t.Context(), store, from, []string{"secret", "plain"}, nil)
	if err != nil || len(out.Entries) != 2 || out.Entries[0].Mode != 0 || out.Entries[1].Mode != 0o600 {
		t.Errorf("%+v, %v", out, err)
	}
}

// An access list of the directory, which may count in place of the umask, takes nothing either.
func TestModesArriveUnderAnAccessList(t *testing.T) {
	from, store := t.TempDir(), transfer.NewMemStore(1<<20)
	write(t, from, map[string]string{"plain": "x", "tool*": "y"})
	m, err := transfer.Ingest(t.Context(), store, []transfer.Input{{Path: from, Name: "."}})
	if err != nil {
		t.Fatal(err)
	}
	// Version 2; for new files nothing but to their owner: user::rwx, group::---, other::---.
	const private = "\x02\x00\x00\x00" + "\x01\x00\x07\x00\xff\xff\xff\xff" + "\x04\x00\x00\x00\xff\xff\xff\xff" + "\x20\x00\x00\x00\xff\xff\xff\xff"
	for _, how := range []transfer.How{{}, {Fresh: true}} {
		to := t.TempDir()
		if err := unix.Setxattr(to, "system.posix_acl_default", []byte(private), 0); err != nil {
			t.Logf("no access list is set: %v", err) // the modes arrive where there is none, too
		}
		if err := m.WriteTo(t.Context(), store, to, how); err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]fs.FileMode{"plain": 0o644, "tool": 0o755} {
			if info, err := os.Stat(filepath.Join(to, name)); err != nil {
				t.Error(err)
			} else if info.Mode() != want {
				t.Errorf("fresh: %v: %s has %v, want %v", how.Fresh, name, info.Mode(), want)
			}
		}
	}
}

// The usual modes go without saying: a manifest of before has the same bytes.
func TestUsualModesTakeNoRoom(t *testing.T) {
	from := t.TempDir()
	write(t, from, map[string]string{"plain": "x", "tool*": "y"})
	m, err := transfer.Ingest(t.Context(), transfer.NewMemStore(1<<20), []transfer.Input{{Path: from, Name: "."}})
	if err != nil {
		t.Fatal(err)
	}
	if b, err := m.Encode(); err != nil || strings.Contains(string(b), "mode") {
		t.Errorf("%q, %v", b, err)
	}
}

func TestUmask(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o137))
	if got := transfer.Umask(); got != 0o037 {
		t.Errorf("got %#o", got)
	}
}
