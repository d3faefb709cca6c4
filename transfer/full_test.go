package transfer

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
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

// spoilt is a file on a part of the disk that cannot be read any more.
type spoilt struct{ fs.File }

func (spoilt) Read([]byte) (int, error) {
	return 0, &os.PathError{Op: "read", Path: "blob", Err: syscall.EIO}
}

// What a disk cannot read any more is not there; what only cannot be opened now is.
func TestUnreadableBlobsAreNotThere(t *testing.T) {
	s := NewDirStore(t.TempDir(), 0)
	if err := s.Open(); err != nil {
		t.Fatal(err)
	}
	data := []byte("bytes")
	h := HashOf(data)
	if err := s.Put(h, data); err != nil {
		t.Fatal(err)
	}
	open := s.open
	s.open = func(name string) (fs.File, error) {
		return nil, &os.PathError{Op: "open", Path: name, Err: syscall.EMFILE}
	}
	if _, err := s.Get(h, nil); !errors.Is(err, syscall.EMFILE) || !s.Has(h) {
		t.Errorf("while too many files are open: got %v, held: %v", err, s.Has(h))
	}
	s.open = func(name string) (fs.File, error) {
		f, err := open(name)
		return spoilt{f}, err
	}
	if _, err := s.Get(h, nil); !errors.Is(err, ErrNotFound) || s.Has(h) {
		t.Errorf("after a read error: got %v, held: %v", err, s.Has(h))
	}
	s.open = open
	if err := s.Put(h, data); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Get(h, nil); err != nil || string(got) != "bytes" {
		t.Errorf("put again: got %q, %v", got, err)
	}
}

// A small file that cannot be written to its end is not there afterwards.
func TestSmallFileThatDoesNotFit(t *testing.T) {
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	const most = 1 << 20
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: most, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	defer syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before)
	dir, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	content := bytes.Repeat([]byte("x"), most+1)
	if err := makeFile(dir, "too large", content, making{mode: 0o644}); err != syscall.EFBIG {
		t.Errorf("got %v", err)
	}
	if err := makeFile(dir, "fits", content[:most], making{mode: 0o644}); err != nil {
		t.Error(err)
	}
	if err := makeFile(dir, "fits", nil, making{mode: 0o644}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a name that is taken: got %v", err)
	}
	if names, err := dir.Readdirnames(-1); err != nil || len(names) != 1 || names[0] != "fits" {
		t.Errorf("there are %q, %v", names, err)
	}
	if info, err := os.Stat(filepath.Join(dir.Name(), "fits")); err != nil || info.Size() != most {
		t.Errorf("got %v, %v", info, err)
	}
}

// A blob that is put again between the decision to evict it and the removal of its file stays.
func TestBlobThatIsPutAgainIsNotRemoved(t *testing.T) {
	data := []byte("wanted again")
	h := HashOf(data)
	for name, letGo := range map[string]func(*index) []Hash{
		"evicted":   func(x *index) []Hash { return x.evict(0) },
		"discarded": func(x *index) []Hash { return x.discard("job") },
	} {
		s := NewDirStore(t.TempDir(), 0)
		if err := s.Open(); err != nil {
			t.Fatal(err)
		}
		s.StartEviction()
		if name == "discarded" {
			s.Pin("job", h)
		}
		if err := s.Put(h, data); err != nil {
			t.Fatal(err)
		}
		s.mu.Lock()
		victims := letGo(&s.index) // the first half of evict, and of Discard
		s.mu.Unlock()
		if len(victims) != 1 || s.Has(h) {
			t.Fatalf("%s: %d blobs, and the store has it: %v", name, len(victims), s.Has(h))
		}
		if err := s.Put(h, data); err != nil {
			t.Fatal(err)
		}
		s.delete(victims) // the second half
		if got, err := s.Get(h, nil); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s, then put again: got %q, %v", name, got, err)
		}
	}
}
