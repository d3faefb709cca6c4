package atomicfile

import (
	"os"
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
