package transfer_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"zorilla/transfer"
	"zorilla/transfer/exchange"
	"zorilla/vicinity"
)

// largeFile makes a file of a few chunks that stays where it is.
func largeFile(t *testing.T, seed uint64) (transfer.File, []byte) {
	t.Helper()
	data := make([]byte, 2*transfer.ChunkSize+1000)
	_, _ = rand.NewChaCha8([32]byte{byte(seed)}).Read(data)
	path := filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	f := transfer.File{Path: path}
	for at := 0; at < len(data); at += transfer.ChunkSize {
		f.Chunks = append(f.Chunks, transfer.HashOf(data[at:min(at+transfer.ChunkSize, len(data))]))
	}
	f.Stamp = stampOf(t, path)
	return f, data
}

func stampOf(t *testing.T, path string) transfer.Stamp {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return transfer.StampOf(info)
}

// referred is a store that holds a file where it is, for a job.
func referred(t *testing.T) (s transfer.PinStore, dir string, f transfer.File, data []byte) {
	t.Helper()
	dir = t.TempDir()
	s = openDir(t, dir, 0)
	f, data = largeFile(t, 1)
	s.Pin("job", f.Chunks...)
	if err := s.Refer(f, transfer.Claimed); err != nil {
		t.Fatal(err)
	}
	return s, dir, f, data
}

func wantChunk(t *testing.T, s transfer.Store, f transfer.File, data []byte, i int) {
	t.Helper()
	want := data[i*transfer.ChunkSize : min((i+1)*transfer.ChunkSize, len(data))]
	if b, err := s.Get(f.Chunks[i], nil); err != nil || !bytes.Equal(b, want) {
		t.Errorf("chunk %d: %d bytes (%v)", i, len(b), err)
	}
}

func notes(t *testing.T, dir string) int {
	t.Helper()
	names, err := os.ReadDir(filepath.Join(dir, "files"))
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

// Chunks are read from the user's file, which takes no room, until nobody needs them.
func TestFilesAreReadWhereTheyAre(t *testing.T) {
	s, dir, f, data := referred(t)
	for i := range f.Chunks {
		if !s.Has(f.Chunks[i]) || owns(s, f.Chunks[i]) {
			t.Errorf("chunk %d: not held, or copied", i)
		}
		wantChunk(t, s, f, data, i)
	}
	if err := s.Sync(f.Chunks...); err != nil {
		t.Error(err)
	}
	if u := s.Contents(); u.Bytes != 0 {
		t.Errorf("%d bytes of the store are in use", u.Bytes)
	}
	s.Unpin("job")
	if s.Has(f.Chunks[0]) || notes(t, dir) != 0 {
		t.Error("the file is held though nobody needs it")
	}
}

// The next life of a store reads what is pinned again, and forgets the rest.
func TestFilesOfAnEarlierLife(t *testing.T) {
	_, dir, f, data := referred(t)
	s := transfer.NewDirStore(dir, 0)
	if err := s.Open(); err != nil {
		t.Fatal(err)
	}
	s.Pin("job", f.Chunks[:2]...)
	s.StartEviction()
	wantChunk(t, s, f, data, 1)
	if s.Has(f.Chunks[2]) {
		t.Error("a chunk is held that nobody needs")
	}
	s.Unpin("job")
	if notes(t, dir) != 0 {
		t.Error("the file is not forgotten")
	}
	if err := os.WriteFile(filepath.Join(dir, "files", "torn"), []byte("zz"), 0o600); err != nil {
		t.Fatal(err)
	}
	openDir(t, dir, 0)
	if notes(t, dir) != 0 {
		t.Error("a note that is none stays")
	}
}

// Of a file that was changed what is still the same is served, and the rest is lost,
// with the file's name.
func TestFilesThatChange(t *testing.T) {
	for name, c := range map[string]struct {
		change func(path string, data []byte) error
		why    string
		left   bool // the second chunk is as it was
	}{
		"a byte": {func(p string, data []byte) error {
			return os.WriteFile(p, append([]byte{^data[0]}, data[1:]...), 0o644)
		}, "was changed since", true},
		"cut":    {func(p string, _ []byte) error { return os.Truncate(p, 1000) }, "was changed since", false},
		"gone":   {func(p string, _ []byte) error { return os.Remove(p) }, "was removed since", false},
		"a pipe": {func(p string, _ []byte) error { return errors.Join(os.Remove(p), os.Mkdir(p, 0o755)) }, "is a directory", false},
	} {
		t.Run(name, func(t *testing.T) {
			s, _, f, data := referred(t)
			if err := c.change(f.Path, data); err != nil {
				t.Fatal(err)
			}
			_, err := s.Get(f.Chunks[0], nil)
			if !errors.Is(err, transfer.ErrNotFound) || !strings.Contains(err.Error(), f.Path+" "+c.why) {
				t.Errorf("the chunk that changed: %v", err)
			}
			if why := s.Lost(f.Chunks[0]); why == nil || why.Error() != f.Path+" "+c.why || s.Has(f.Chunks[0]) {
				t.Errorf("it is held, or lost because of %v", why)
			}
			if _, err := s.Get(f.Chunks[1], nil); (err == nil) != c.left {
				t.Errorf("the next chunk: %v", err)
			}
		})
	}
}

// Who names a file and hashes that it does not have gets nothing of it, neither from the
// store nor in a work directory.
func TestNobodysWordIsTakenForAFile(t *testing.T) {
	s := openDir(t, t.TempDir(), 0)
	f, _ := largeFile(t, 1)
	f.Chunks[0] = transfer.HashOf([]byte("a guess"))
	s.Pin("job", f.Chunks...)
	if err := s.Refer(f, transfer.Claimed); err != nil {
		t.Fatal(err)
	}
	m, err := transfer.NewManifest([]transfer.Entry{{Path: "f", Size: f.Stamp.Size, Chunks: f.Chunks}})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := m.Write(t.Context(), s, dir); !errors.Is(err, transfer.ErrNotFound) {
		t.Errorf("written to a directory: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left there: %v (%v)", left, err)
	}
	s.Pin("job", f.Chunks...)
	if err := s.Refer(f, transfer.Claimed); err != nil {
		t.Fatal(err)
	}
	if b, err := s.Get(f.Chunks[0], nil); !errors.Is(err, transfer.ErrNotFound) || b != nil {
		t.Errorf("%d bytes: %v", len(b), err)
	}
}

// Who may read whatever the store may is taken at their word, until the file changes.
func TestWordOfTheSameUser(t *testing.T) {
	s := openDir(t, t.TempDir(), 0)
	f, data := largeFile(t, 1)
	guess := transfer.HashOf([]byte("a guess"))
	f.Chunks[0] = guess
	s.Pin("job", f.Chunks...)
	if err := s.Refer(f, transfer.Hashed); err != nil {
		t.Fatal(err)
	}
	if b, err := s.Get(guess, nil); err != nil || string(b) != string(data[:transfer.ChunkSize]) {
		t.Errorf("it is hashed once more: %d bytes, %v", len(b), err)
	}
	if err := os.Chtimes(f.Path, time.Time{}, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if b, err := s.Get(guess, nil); !errors.Is(err, transfer.ErrNotFound) {
		t.Errorf("the file has changed: %d bytes, %v", len(b), err)
	}
}

// Two jobs that name the same content in two files do not depend on each other.
func TestFilesOfTheSameContent(t *testing.T) {
	s, _, f, data := referred(t)
	g, _ := largeFile(t, 1)
	s.Pin("other", g.Chunks...)
	if err := s.Refer(g, transfer.Claimed); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(f.Path); err != nil {
		t.Fatal(err)
	}
	for i := range f.Chunks {
		wantChunk(t, s, f, data, i)
	}
}

// A file that is not the one that was hashed is not taken.
func TestFilesThatAreElsewhere(t *testing.T) {
	s := openDir(t, t.TempDir(), 0)
	f, data := largeFile(t, 1)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(f.Path, link); err != nil {
		t.Fatal(err)
	}
	through := f
	through.Path = link
	gone := f
	gone.Path += "2"
	for name, file := range map[string]transfer.File{"a link": through, "nothing": gone} {
		if err := s.Refer(file, transfer.Claimed); !errors.Is(err, transfer.ErrElsewhere) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := os.WriteFile(f.Path, append(data, 1), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := s.Refer(f, transfer.Claimed); !errors.Is(err, transfer.ErrElsewhere) {
		t.Errorf("a file that has changed: %v", err)
	}
	for _, bad := range []transfer.File{{}, {Path: "relative", Stamp: f.Stamp, Chunks: f.Chunks}, {Path: f.Path, Stamp: f.Stamp, Chunks: f.Chunks[:1]}, {Path: f.Path + "/..", Stamp: f.Stamp, Chunks: f.Chunks}} {
		if err := s.Refer(bad, transfer.Claimed); err == nil || errors.Is(err, transfer.ErrElsewhere) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// What is lent is served to others, and is there for nobody else until it is fetched,
// which copies it.
func TestLentFiles(t *testing.T) {
	s := openDir(t, t.TempDir(), 0)
	f, data := largeFile(t, 1)
	s.Pin("worker", f.Chunks...)
	if err := s.Refer(f, transfer.Brief); err != nil {
		t.Fatal(err)
	}
	wantChunk(t, s, f, data, 0)
	if s.Has(f.Chunks[0]) {
		t.Error("a job could count on it")
	}
	m, err := transfer.NewManifest([]transfer.Entry{{Path: "f", Size: f.Stamp.Size, Chunks: f.Chunks}})
	if err != nil {
		t.Fatal(err)
	}
	h, err := transfer.SaveManifest(transfer.PinTo(s, "worker"), m)
	if err != nil {
		t.Fatal(err)
	}
	fetcher := exchange.New(exchange.Config{Store: s, Source: func(context.Context, vicinity.ID, transfer.Hash) (io.ReadCloser, error) {
		return nil, errors.New("nobody else has it")
	}})
	if _, _, err := fetcher.Fetch(t.Context(), "origin", h, []vicinity.ID{"self"}, nil); err != nil {
		t.Fatal(err)
	}
	s.Unpin("worker")
	if err := os.Remove(f.Path); err != nil {
		t.Fatal(err)
	}
	for i := range f.Chunks {
		wantChunk(t, s, f, data, i)
	}
}

// Collect leaves large files where they are, and takes small ones.
func TestCollectLendsLargeFiles(t *testing.T) {
	s := openDir(t, t.TempDir(), 0)
	f, data := largeFile(t, 1)
	dir := filepath.Dir(f.Path)
	if err := os.WriteFile(filepath.Join(dir, "small"), []byte("small"), 0o644); err != nil {
		t.Fatal(err)
	}
	m, _, err := transfer.Collect(t.Context(), transfer.PinTo(s, "worker"), dir, []string{"*"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range m.Entries {
		if owns(s, e.Chunks[0]) != (e.Path == "small") {
			t.Errorf("%s: copied is %v", e.Path, owns(s, e.Chunks[0]))
		}
	}
	wantChunk(t, s, f, data, 2)
	out := t.TempDir()
	if err := m.Write(t.Context(), s, out); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(out, "large")); err != nil || !bytes.Equal(b, data) {
		t.Errorf("written: %d bytes (%v)", len(b), err)
	}
}

// local is a remote on this machine.
type local struct {
	transfer.PinStore
	s    transfer.PinStore
	sent int
}

func (l *local) Missing(_ context.Context, chunks []transfer.Hash) (out []transfer.Hash, _ error) {
	l.s.Pin("job", chunks...)
	for _, h := range chunks {
		if !owns(l.s, h) {
			out = append(out, h)
		}
	}
	return out, nil
}

func (l *local) PutChunk(_ context.Context, h transfer.Hash, data []byte) error {
	l.sent += len(data)
	return l.s.Put(h, data)
}

func (l *local) Refer(_ context.Context, f transfer.File) error {
	return l.s.Refer(f, transfer.Claimed)
}

// Uploads to a node of this machine send what is small, and name the rest.
func TestUploadRefersToLargeFiles(t *testing.T) {
	s := openDir(t, t.TempDir(), 0)
	f, data := largeFile(t, 1)
	small := filepath.Join(t.TempDir(), "small")
	if err := os.WriteFile(small, []byte("small"), 0o644); err != nil {
		t.Fatal(err)
	}
	l := &local{s: s}
	for range 2 {
		up, err := transfer.Upload(t.Context(), l, []transfer.Input{{Path: f.Path, Name: "large"}, {Path: small, Name: "small"}}, nil)
		if err != nil || up.Sent > 10 || l.sent > 1000 {
			t.Fatalf("sent %d and %d bytes: %v", up.Sent, l.sent, err)
		}
	}
	for i := range f.Chunks {
		wantChunk(t, s, f, data, i)
	}
}

// What makes a job's files durable reads no file of the user once more, which would take
// longer than to send it; one that was changed since is found out nevertheless.
func TestSyncOfFilesWhereTheyAre(t *testing.T) {
	s, _, f, _ := referred(t)
	claimed := f
	claimed.Chunks = slices.Clone(f.Chunks)
	claimed.Chunks[1] = transfer.HashOf([]byte("what the file does not hold"))
	s.Pin("job", claimed.Chunks...)
	if err := s.Refer(claimed, transfer.Claimed); err != nil {
		t.Fatal(err)
	}
	if err := s.Sync(claimed.Chunks...); err != nil {
		t.Errorf("the file was read: %v", err)
	}
	if _, err := s.Get(claimed.Chunks[1], nil); !errors.Is(err, transfer.ErrNotFound) {
		t.Errorf("what was claimed of it: got %v", err)
	}
	if err := os.WriteFile(f.Path, []byte("changed"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Sync(f.Chunks...); !errors.Is(err, transfer.ErrNotFound) {
		t.Errorf("it was changed since: got %v", err)
	}
}

// What is to outlive the file that it is read from is copied, once.
func TestOwn(t *testing.T) {
	s, _, f, data := referred(t)
	if !s.Keep(f.Chunks[0], false) || owns(s, f.Chunks[0]) {
		t.Error("it was copied though the file stays")
	}
	for range 2 {
		if !s.Keep(f.Chunks[0], true) {
			t.Error("it could not be copied")
		}
	}
	if err := os.Remove(f.Path); err != nil {
		t.Fatal(err)
	}
	wantChunk(t, s, f, data, 0)
	if s.Keep(f.Chunks[1], true) || s.Keep(transfer.HashOf(nil), true) {
		t.Error("what is lost, or was never there, was copied")
	}
}
