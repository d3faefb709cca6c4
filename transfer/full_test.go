package transfer

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
)

// A full disk is the only thing that tests cannot have for real.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	s := NewDirStore(dir, 0)
	if err := s.Open(); err != nil {
		t.Fatal(err)
	}
	const room = 3
	s.write = func(h Hash, data []byte) error {
		if s.Usage().Blobs >= room {
			return &os.PathError{Op: "write", Path: s.file(h), Err: syscall.ENOSPC}
		}
		return s.writeFile(h, data)
	}
	var hashes []Hash
	put := func(i int) error {
		data := bytes.Repeat([]byte{byte(i)}, 100)
		hashes = append(hashes, HashOf(data))
		return s.Put(HashOf(data), data)
	}
	for i := range room {
		if err := put(i); err != nil {
			t.Fatal(err)
		}
	}
	err := put(room)
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "the disk of "+dir+" is full") {
		t.Fatalf("before eviction may start: got %v", err)
	}
	s.StartEviction()
	s.Pin("job", hashes[0])
	if err := put(room); err != nil {
		t.Fatalf("unpinned blobs did not make room: %v", err)
	}
	if !s.Has(hashes[0]) || s.Has(hashes[1]) || !s.Has(hashes[room]) {
		t.Error("the wrong blobs made room")
	}
}
