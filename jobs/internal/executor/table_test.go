package executor

import (
	"os"
	"path/filepath"
	"testing"

	"zorilla/jobs/internal/wire"
)

// What a worker has put in the place of its files is replaced, never followed.
func TestHostFileIsNotWrittenThroughALink(t *testing.T) {
	root := t.TempDir()
	if err := writeTable(root, "a\n", 1); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{wire.HostFileName, wire.EpochFileName, wire.HostFileName + ".new"} {
		path := filepath.Join(root, "tmp", name)
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(secret, path); err != nil {
			t.Fatal(err)
		}
	}
	if err := writeTable(root, "10.0.0.9 slots=1\n", 2); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{wire.HostFileName: "10.0.0.9 slots=1\n", wire.EpochFileName: "2\n"} {
		if b, err := os.ReadFile(filepath.Join(root, "tmp", name)); err != nil || string(b) != want {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
	if b, err := os.ReadFile(secret); err != nil || string(b) != "kept" {
		t.Errorf("another file was changed: %q, %v", b, err)
	}
}
