package trust

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestIdentityIsMadeOnceAndKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "node.key")
	ids := make([]*Identity, 8)
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() {
			id, err := LoadIdentity(path)
			if err != nil {
				t.Error(err)
			}
			ids[i] = id
		})
	}
	wg.Wait()
	for _, id := range ids {
		if id == nil || id.ID() != ids[0].ID() || !id.ID().Valid() {
			t.Fatalf("starts at the same time made %v and %v", id, ids[0])
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("mode %v, %v", info.Mode(), err)
	}
	files, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(files) != 1 {
		t.Fatalf("left behind: %v %v", files, err)
	}
}

func TestKeyFileMustBePrivateAndWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "node.key")
	if _, err := LoadIdentity(path); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []os.FileMode{0o640, 0o604, 0o620} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		_, err := LoadIdentity(path)
		if !errors.Is(err, ErrExposed) || !strings.Contains(err.Error(), "chmod 600 "+path) {
			t.Fatalf("mode %#o: %v", mode, err)
		}
	}
	for _, text := range []string{"", "junk", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", strings.Repeat("x", maxFile+1)} {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadIdentity(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Fatalf("%.10q: %v", text, err)
		}
	}
}

func TestSecretFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "secret")
	if _, err := LoadSecret(path); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("missing file: %v", err)
	}
	s, err := LoadOrNewSecret(path)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := LoadOrNewSecret(path); err != nil || !again.Equal(s) {
		t.Fatalf("second start: %v", err)
	}
	other := testSecret(t, 3)
	if err := SaveSecret(path, other); err != nil {
		t.Fatal(err)
	}
	if again, err := LoadSecret(path); err != nil || !again.Equal(other) {
		t.Fatalf("after saving: %v", err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadSecret(path); !errors.Is(err, ErrExposed) {
		t.Fatalf("open file: %v", err)
	}
	if err := os.WriteFile(path, []byte(Invite{Secret: s}.Token()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if again, err := LoadSecret(path); err != nil || !again.Equal(s) {
		t.Fatalf("invite token as secret file: %v", err)
	}
}
