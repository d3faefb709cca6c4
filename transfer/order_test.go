package transfer

import (
	"bytes"
	"errors"
	"path/filepath"
	"syscall"
	"testing"

	"zorilla/internal/steps"
)

// stepped returns a store below dir that logs what it does to its disk.
func stepped(t *testing.T, dir string) (*DirStore, *steps.Log) {
	t.Helper()
	log := &steps.Log{}
	s := NewDirStore(dir, 0)
	name := func(path string) string {
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			t.Error(err)
		}
		return rel
	}
	s.write = func(h Hash, data []byte) error {
		err := s.writeFile(h, data)
		log.Did("write", name(s.file(h)), err)
		return err
	}
	sync := s.sync
	s.sync = func(path string) error {
		err := sync(path)
		log.Did("sync", name(path), err)
		return err
	}
	if err := s.Open(); err != nil {
		t.Fatal(err)
	}
	s.StartEviction()
	return s, log
}

// A blob is safe when its file is durable, and then its name: no name leads to bytes that a power cut
// took away. That costs a sync once, unless the blob is removed and put again.
func TestBlobIsDurableBeforeItIsSafe(t *testing.T) {
	dir := t.TempDir()
	s, log := stepped(t, dir)
	data := []byte("a blob")
	h := HashOf(data)
	file, err := filepath.Rel(dir, s.file(h))
	if err != nil {
		t.Fatal(err)
	}
	shelf := filepath.Dir(file)
	for times := 1; times <= 2; times++ {
		if err := s.Put(h, data); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := s.Sync(h); err != nil {
				t.Fatal(err)
			}
		}
		log.Did("safe")
		log.InOrder(t, "write "+file+" <nil>", "sync "+file+" <nil>", "sync "+shelf+" <nil>", "safe")
		if n, m := log.Times("sync "+file+" <nil>"), log.Times("sync "+shelf+" <nil>"); n != times || m != times {
			t.Errorf("put %d times, its file was synced %d times, its directory %d times: %q", times, n, m, log.All())
		}
		s.Prune()
	}
}

// What could not be synced is not safe: the next Sync tries it again.
func TestBlobThatIsNotSyncedIsNotSafe(t *testing.T) {
	for _, bad := range []string{"file", "shelf"} {
		s, log := stepped(t, t.TempDir())
		data := []byte("a blob")
		h := HashOf(data)
		if err := s.Put(h, data); err != nil {
			t.Fatal(err)
		}
		sync, fails := s.sync, 1
		s.sync = func(path string) error {
			if isFile := path == s.file(h); isFile == (bad == "file") && fails > 0 {
				fails--
				log.Did("fail")
				return syscall.EIO
			}
			return sync(path)
		}
		if err := s.Sync(h); !errors.Is(err, syscall.EIO) {
			t.Errorf("its %s is not durable: got %v", bad, err)
		}
		before := len(log.All())
		if err := s.Sync(h); err != nil || len(log.All()) != before+2 {
			t.Errorf("its %s was not durable: %v, then %q", bad, err, log.All()[before:])
		}
	}
}

// The chunks of a large file are safe when that file is durable, with the note of what is in it.
func TestLargeFileIsDurableWithItsNote(t *testing.T) {
	dir := t.TempDir()
	s, log := stepped(t, dir)
	e := Entry{Path: "large", Size: ChunkSize + 1}
	parts := [][]byte{bytes.Repeat([]byte("z"), ChunkSize), []byte("!")}
	for _, p := range parts {
		e.Chunks = append(e.Chunks, HashOf(p))
	}
	settle := s.Expect(&Manifest{Entries: []Entry{e}}, false)
	for i, p := range parts {
		if err := s.Put(e.Chunks[i], p); err != nil {
			t.Fatal(err)
		}
	}
	settle()
	at, held := s.spot(e.Chunks[0])
	if !held || at.from == nil || at.from.own == nil {
		t.Fatal("it is not in a file of the store")
	}
	if err := s.Sync(e.Chunks...); err != nil {
		t.Fatal(err)
	}
	log.Did("safe")
	for _, path := range []string{at.name, s.notes.path(at.from)} {
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			t.Fatal(err)
		}
		log.InOrder(t, "sync "+rel+" <nil>", "sync "+filepath.Dir(rel)+" <nil>", "safe")
	}
}
