package transfer

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
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

// oneCopier lets the file system do the work, and sees how many ask for that at a time.
type oneCopier struct {
	Getter
	now, most, copies atomic.Int32
}

func (c *oneCopier) CopyTo(_ Hash, size int, to *os.File, at int64) bool {
	c.most.Store(max(c.most.Load(), c.now.Add(1)))
	defer c.now.Add(-1)
	runtime.Gosched()
	c.copies.Add(1)
	return to.Truncate(max(at+int64(size), 8*ChunkSize)) == nil
}

// TestOneCopiesAtATime: a file system that lets one call write to a file keeps the others turning.
func TestOneCopiesAtATime(t *testing.T) {
	e := Entry{Path: "large", Size: 8 * ChunkSize, Chunks: slices.Repeat(HashList{HashOf([]byte("not a hole"))}, 8)}
	m, err := NewManifest([]Entry{e})
	if err != nil {
		t.Fatal(err)
	}
	get := &oneCopier{}
	if err := m.WriteTo(t.Context(), get, t.TempDir(), How{}); err != nil {
		t.Fatal(err)
	}
	if get.copies.Load() != 8 || get.most.Load() != 1 {
		t.Errorf("%d copies, %d at a time; want 8, 1", get.copies.Load(), get.most.Load())
	}
}
