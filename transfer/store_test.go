package transfer_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"zorilla/transfer"
	"zorilla/transfer/storetest"
)

func TestStores(t *testing.T) {
	for name, open := range map[string]func(t *testing.T, limit int64) transfer.PinStore{
		"mem":         func(_ *testing.T, limit int64) transfer.PinStore { return transfer.NewMemStore(limit) },
		"dir":         func(t *testing.T, limit int64) transfer.PinStore { return opened(t, t.TempDir(), limit) },
		"mem wrapped": func(_ *testing.T, limit int64) transfer.PinStore { return wrapped{transfer.NewMemStore(limit)} },
		"dir wrapped": func(t *testing.T, limit int64) transfer.PinStore { return openDir(t, t.TempDir(), limit) },
	} {
		t.Run(name, func(t *testing.T) { storetest.Run(t, open) })
	}
}

// wrapped is a store that embeds another one: it does what that does.
type wrapped struct{ transfer.PinStore }

// openDir returns a DirStore, wrapped, so that the tests of this package show that nothing is
// lost by that.
func openDir(t *testing.T, dir string, limit int64) transfer.PinStore {
	t.Helper()
	return wrapped{opened(t, dir, limit)}
}

func opened(t *testing.T, dir string, limit int64) *transfer.DirStore {
	t.Helper()
	s := transfer.NewDirStore(dir, limit)
	if err := s.Open(); err != nil {
		t.Fatal(err)
	}
	s.StartEviction()
	return s
}

// owns reports whether a store has a blob in a file of its own.
func owns(s transfer.PinStore, h transfer.Hash) bool {
	_, own := s.Holds(h)
	return own
}

// blobFile returns where a DirStore keeps a blob, as doc.go has it.
func blobFile(dir string, h transfer.Hash) string {
	digits := strings.TrimPrefix(h.String(), "sha256:")
	return filepath.Join(dir, "sha256", digits[:2], digits)
}

func TestDirStoreNoticesDamage(t *testing.T) {
	data := bytes.Repeat([]byte("zorilla"), 10_000)
	h := transfer.HashOf(data)
	for name, damage := range map[string]func(file string) error{
		"bit flipped": func(f string) error { return os.WriteFile(f, append([]byte("Z"), data[1:]...), 0o600) },
		"cut off":     func(f string) error { return os.Truncate(f, 100) },
		"emptied":     func(f string) error { return os.Truncate(f, 0) },
		"grown":       func(f string) error { return os.Truncate(f, transfer.MaxBlob+1) },
		"removed":     os.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := openDir(t, dir, 0)
			if err := s.Put(h, data); err != nil {
				t.Fatal(err)
			}
			if err := damage(blobFile(dir, h)); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Get(h, nil); !errors.Is(err, transfer.ErrNotFound) {
				t.Errorf("got %v, want ErrNotFound", err)
			}
			if _, err := os.Stat(blobFile(dir, h)); err == nil || s.Has(h) {
				t.Error("the damaged blob is still there")
			}
			if err := s.Put(h, data); err != nil {
				t.Fatal(err)
			}
			if got, err := s.Get(h, nil); err != nil || !bytes.Equal(got, data) {
				t.Errorf("put again: got %d bytes, %v", len(got), err)
			}
		})
	}
}

// A power cut leaves names whose bytes never reached the disk.
func TestTornBlobsAreNotThere(t *testing.T) {
	dir := t.TempDir()
	s := openDir(t, dir, 0)
	data := [][]byte{bytes.Repeat([]byte("zorilla"), 10_000), []byte("small"), []byte("good")}
	var all []transfer.Hash
	for _, d := range data {
		h := transfer.HashOf(d)
		if err := s.Put(h, d); err != nil {
			t.Fatal(err)
		}
		all = append(all, h)
	}
	if err := os.WriteFile(blobFile(dir, all[0]), make([]byte, len(data[0])), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(blobFile(dir, all[1]), 0); err != nil {
		t.Fatal(err)
	}
	s = openDir(t, dir, 0)
	if err := s.Put(all[1], data[1]); err != nil { // whoever has the bytes heals it
		t.Fatal(err)
	}
	if err := s.Sync(all[1:]...); err != nil {
		t.Error(err)
	}
	if err := s.Sync(all...); !errors.Is(err, transfer.ErrNotFound) || s.Has(all[0]) {
		t.Errorf("sync of a torn blob: got %v, want ErrNotFound; held is %v", err, s.Has(all[0]))
	}
	if err := s.Put(all[0], data[0]); err != nil {
		t.Fatal(err)
	}
	if err := s.Sync(all...); err != nil {
		t.Error(err)
	}
	for i, h := range all {
		if got, err := s.Get(h, nil); err != nil || !bytes.Equal(got, data[i]) {
			t.Errorf("blob %d: got %d bytes, %v", i, len(got), err)
		}
	}
}

// What this life of a store has written is made durable without being read: that takes no
// buffers for chunks.
func TestSyncReadsNothingAgain(t *testing.T) {
	s := openDir(t, t.TempDir(), 0)
	var hashes []transfer.Hash
	for i := range 16 {
		data := bytes.Repeat([]byte{byte(i)}, 8192)
		hashes = append(hashes, transfer.HashOf(data))
		if err := s.Put(hashes[i], data); err != nil {
			t.Fatal(err)
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := s.Sync(hashes...); err != nil {
		t.Fatal(err)
	}
	if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > transfer.ChunkSize/2 {
		t.Errorf("it takes %d bytes", after.TotalAlloc-before.TotalAlloc)
	}
}

func TestDirStoreOpen(t *testing.T) {
	dir := t.TempDir()
	s := openDir(t, dir, 0)
	var hashes []transfer.Hash
	for i := range 3 {
		data := bytes.Repeat([]byte{byte(i)}, 8192)
		h := transfer.HashOf(data)
		if err := s.Put(h, data); err != nil {
			t.Fatal(err)
		}
		when := time.Unix(int64(1000-i), 0) // the last one is the oldest
		if err := os.Chtimes(blobFile(dir, h), when, when); err != nil {
			t.Fatal(err)
		}
		hashes = append(hashes, h)
	}
	if err := s.Sync(hashes...); err != nil {
		t.Error(err)
	}
	for _, stray := range []string{"tmp/half", "sha256/zz", "sha256/ab/readme", "sha256/00/" + strings.Repeat("ab", 32)} {
		name := filepath.Join(dir, stray)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	next := transfer.NewDirStore(dir, 8192)
	if next.Has(hashes[0]) {
		t.Error("New did I/O")
	}
	if err := next.Open(); err != nil {
		t.Fatal(err)
	}
	s = wrapped{next}
	if u := s.Contents(); u.Blobs != 3 || u.Bytes != 3*8192 || u.Pinned != 0 {
		t.Errorf("after Open: %+v", u)
	}
	if _, err := os.Stat(filepath.Join(dir, "tmp/half")); err == nil {
		t.Error("a half-written blob was not cleared")
	}
	s.Pin("job", hashes[1])
	s.StartEviction()
	for i, want := range []bool{true, true, false} { // 0 is the youngest, 1 pinned
		_, err := os.Stat(blobFile(dir, hashes[i]))
		if s.Has(hashes[i]) != want || (err == nil) != want {
			t.Errorf("blob %d: held is %v, its file: %v", i, s.Has(hashes[i]), err)
		}
	}
	if u := s.Contents(); u.Pinned != 8192 || u.Bytes != 2*8192 {
		t.Errorf("after StartEviction: %+v", u)
	}
}

func TestDirStoreNeedsItsDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := transfer.NewDirStore(file, 0).Open(); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("got %v, want an error that names %s", err, file)
	}
}

func TestPinTo(t *testing.T) {
	s := transfer.NewMemStore(4096)
	put := transfer.PinTo(s, "job")
	var hashes []transfer.Hash
	for i := range 3 {
		data := bytes.Repeat([]byte{byte(i)}, 4096)
		hashes = append(hashes, transfer.HashOf(data))
		if err := put.Put(hashes[i], data); err != nil {
			t.Fatal(err)
		}
	}
	if err := put.Put(hashes[0], []byte("other")); !errors.Is(err, transfer.ErrMismatch) {
		t.Errorf("got %v, want ErrMismatch", err)
	}
	for i, h := range hashes {
		if !s.Has(h) {
			t.Errorf("blob %d was evicted", i)
		}
	}
}

// hashing is a store that fails where it would have to hash what the caller has hashed.
type hashing struct{ transfer.PinStore }

func (hashing) Put(transfer.Hash, []byte) error { return errors.New("it is hashed again") }

func TestNothingIsHashedTwice(t *testing.T) {
	from := t.TempDir()
	write(t, from, map[string]string{"large": strings.Repeat("l", transfer.ChunkSize+1), "small": "s", "other": "o"})
	s := hashing{openDir(t, t.TempDir(), 0)}
	for _, put := range []transfer.Putter{s, transfer.PinTo(s, "job")} {
		m, err := transfer.Ingest(t.Context(), put, []transfer.Input{{Path: from, Name: "."}})
		if err == nil {
			_, err = transfer.SaveManifest(put, m)
		}
		if err != nil {
			t.Error(err)
		}
	}
}
