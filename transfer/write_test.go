package transfer

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// Where files cannot have a second name, nothing is replaced either.
func TestNameIsTakenOnce(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	d := newOpenDir("", root)
	defer d.done()
	for i, want := range []error{nil, fs.ErrExist} {
		if err := root.WriteFile("temp", []byte{byte('0' + i)}, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := d.takeName("temp", "name"); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
	if b, err := os.ReadFile(filepath.Join(dir, "name")); err != nil || string(b) != "0" {
		t.Errorf("%q, %v", b, err)
	}
}
