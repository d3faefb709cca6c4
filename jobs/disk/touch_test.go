package disk_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"zorilla/jobs/disk"
)

func TestTouch(t *testing.T) {
	dir := t.TempDir()
	before := time.Now().Add(-time.Hour)
	if err := os.Chtimes(dir, before, before); err != nil {
		t.Fatal(err)
	}
	if err := disk.Touch(dir, dir); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(dir); err != nil || time.Since(info.ModTime()) > time.Minute {
		t.Errorf("nothing was written: %v, %v", info.ModTime(), err)
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) > 0 {
		t.Errorf("%v is left, %v", list, err)
	}
	if err := disk.Touch(dir, filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory that is not there: %v", err)
	}
}

// What a look costs: go test -bench Touch ./jobs/disk
func BenchmarkTouch(b *testing.B) {
	dir := b.TempDir()
	for b.Loop() {
		if err := disk.Touch(dir); err != nil {
			b.Fatal(err)
		}
	}
}
