package atomicfile

import (
	"os"
	"path/filepath"
	"testing"
)

// Who says nothing of it has files synced: what cannot be is an error.
func TestFilesAreSyncedUnlessSomebodySaysOtherwise(t *testing.T) {
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if (How{}).sync(f) == nil {
		t.Error("a device without a disk was synced")
	}
	if Sync(os.DevNull) == nil {
		t.Error("a device without a disk was synced by its name")
	}
	if err := (How{Loose: true}).sync(f); err != nil {
		t.Error(err)
	}
}

// A file that is written in place, and its name, are synced as one that is replaced.
func TestFilledFilesAreSynced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{1, page + 1} {
		synced := make(chan string, 2)
		how := How{Sync: func(f *os.File) error { synced <- filepath.Base(f.Name()); return nil }}
		if err := how.fill(path, make([]byte, size)); err != nil || len(synced) != 2 {
			t.Errorf("%d bytes: %d of the file and its directory were synced, %v", size, len(synced), err)
		}
	}
}
