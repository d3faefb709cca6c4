package storetest

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"zorilla/transfer"
)

func testPutVerified(t *testing.T, s transfer.PinStore) {
	s.StartEviction()
	h, b := blob(0)
	if err := s.PutVerified(h, b); err != nil {
		t.Fatal(err)
	}
	clear(b)
	want(t, s, true)
	if h, b = blob(1); s.PutVerified(h, b) != nil {
		t.Error("it was not taken")
	}
	want(t, s, false, true)
}

func testRead(t *testing.T, s transfer.PinStore) {
	b := bytes.Repeat([]byte("zorilla."), transfer.ChunkSize/8)
	h := transfer.HashOf(b)
	if _, err := s.Read(h, nil, func([]byte, int) error { t.Error("there is nothing to read"); return nil }); !errors.Is(err, transfer.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
	if err := s.Put(h, b); err != nil {
		t.Fatal(err)
	}
	var buf []byte
	for range 2 { // the second time it is known to be whole
		var got []byte
		var err error
		if buf, err = s.Read(h, buf, func(p []byte, size int) error {
			if got = append(got, p...); size != len(b) {
				t.Errorf("it has %d bytes, want %d", size, len(b))
			}
			return nil
		}); err != nil || !bytes.Equal(got, b) {
			t.Errorf("got %d bytes, %v", len(got), err)
		}
		enough := errors.New("enough")
		if _, err = s.Read(h, nil, func([]byte, int) error { return enough }); !errors.Is(err, enough) {
			t.Errorf("got %v, want the error of who reads", err)
		}
	}
}

func testKeep(t *testing.T, s transfer.PinStore) {
	h, _ := blob(0)
	if held, own := s.Holds(h); held || own || s.Keep(h, false) || s.Keep(h, true) {
		t.Error("what was never put is there")
	}
	put(t, s, 0)
	if held, own := s.Holds(h); !held || !own || !s.Keep(h, false) || !s.Keep(h, true) {
		t.Error("what was put is not there")
	}
}

// others returns a file of somebody else that a store reads where it is, if it does that.
func others(t *testing.T, s transfer.PinStore) (f transfer.File, data []byte, refers bool) {
	t.Helper()
	data = bytes.Repeat([]byte("first of"), transfer.ChunkSize/8)
	data = append(data, "second"...)
	chunks := transfer.HashList{transfer.HashOf(data[:transfer.ChunkSize]), transfer.HashOf([]byte("second"))}
	f = transfer.File{Path: filepath.Join(t.TempDir(), "file"), Chunks: chunks}
	if err := os.WriteFile(f.Path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(f.Path)
	if err != nil {
		t.Fatal(err)
	}
	f.Stamp = transfer.StampOf(info)
	s.Pin("job", f.Chunks...)
	if err = s.Refer(f, transfer.Claimed); err != nil && !errors.Is(err, transfer.ErrElsewhere) {
		t.Fatal(err)
	}
	return f, data, err == nil
}

func testOwn(t *testing.T, s transfer.PinStore) {
	f, data, refers := others(t, s)
	h, first := f.Chunks[0], data[:transfer.ChunkSize]
	if held, own := s.Holds(h); held != refers || own {
		t.Errorf("held is %v, own %v", held, own)
	}
	if !refers {
		if err := s.Put(h, first); err != nil {
			t.Fatal(err)
		}
	}
	if _, own := s.Holds(h); !s.Keep(h, false) || own == refers {
		t.Errorf("it was copied though its file stays, or is gone")
	}
	if !s.Keep(h, true) {
		t.Error("it could not be copied")
	}
	if err := os.WriteFile(f.Path, []byte("something else"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, own := s.Holds(h); !own {
		t.Error("it is not the store's")
	}
	if got, err := s.Get(h, nil); err != nil || !bytes.Equal(got, first) {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
	if err := s.Sync(h); err != nil {
		t.Error(err)
	}
}

func testLost(t *testing.T, s transfer.PinStore) {
	f, _, refers := others(t, s)
	var told []string
	s.OnLost(func(owners []string) { told = append(told, owners...) })
	if err := os.Remove(f.Path); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(f.Chunks[1], nil); !errors.Is(err, transfer.ErrNotFound) || s.Keep(f.Chunks[1], true) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
	if why := s.Lost(f.Chunks[1]); (why != nil) != refers || slices.Contains(told, "job") != refers {
		t.Errorf("lost: %v, told %v", why, told)
	}
}

func testPinTo(t *testing.T, s transfer.PinStore) {
	s.StartEviction()
	var hashes []transfer.Hash
	for i := range 3 {
		h, b := blob(i)
		if err := transfer.PinTo(s, "job").Put(h, b); err != nil {
			t.Fatal(err)
		}
		hashes = append(hashes, h)
	}
	if got := s.Pinned("job"); len(got) != len(hashes) {
		t.Errorf("%d blobs are pinned", len(got))
	}
	want(t, s, true, true, true)
	from := filepath.Join(t.TempDir(), "from") // it is read where it is as long as it is there
	if err := os.WriteFile(from, bytes.Repeat([]byte("f"), transfer.ChunkSize), 0o644); err != nil {
		t.Fatal(err)
	}
	m, err := transfer.Ingest(t.Context(), transfer.PinTo(s, "job"), []transfer.Input{{Path: from}})
	if err != nil || !s.Keep(m.Chunks()[0], false) || !s.Has(m.Chunks()[0]) {
		t.Errorf("a file is not held: %v", err)
	}
}

// A store may assemble a large file and give it to a worker; it has the chunks when the
// worker has gone, whatever it does.
func testFiles(t *testing.T, s transfer.PinStore) {
	s.StartEviction()
	data := bytes.Repeat([]byte("not null"), 2*transfer.ChunkSize/8+3)
	from := filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(from, data, 0o644); err != nil {
		t.Fatal(err)
	}
	mem := transfer.NewMemStore(0)
	m, err := transfer.Ingest(t.Context(), mem, []transfer.Input{{Path: from}})
	if err != nil {
		t.Fatal(err)
	}
	s.Pin("job", m.Chunks()...)
	done := s.Expect(&m, false)
	for _, h := range m.Chunks() {
		b, err := mem.Get(h, nil)
		if err == nil {
			err = s.Put(h, b)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	done()
	work := filepath.Join(t.TempDir(), "work")
	if err := m.WriteTo(t.Context(), s, work, transfer.How{Give: true}); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(work, "large")); err != nil || !bytes.Equal(got, data) {
		t.Errorf("a worker got %d bytes, %v", len(got), err)
	}
	s.TakeBack(work, nil)
	for _, h := range m.Chunks() {
		if b, err := s.Get(h, nil); err != nil || transfer.HashOf(b) != h {
			t.Errorf("a chunk is gone after the worker: %v", err)
		}
	}
}

func testKeeper(t *testing.T, s transfer.PinStore) {
	s.StartEviction()
	s.Pin("job", put(t, s, 0))
	put(t, s, 1)
	if c := s.Contents(); c.Blobs != 2 || c.Bytes != 2*unit || c.Pinned != unit {
		t.Errorf("it contains %+v", c)
	} else if want := []transfer.Need{{Owner: "job", Blobs: 1, Bytes: unit}}; !slices.Equal(c.Needs, want) {
		t.Errorf("it is needed by %+v, want %+v", c.Needs, want)
	}
	if c, err := s.Verify(t.Context()); err != nil || c.Blobs != 2 || c.Bytes != 2*unit || len(c.Damaged) > 0 {
		t.Errorf("verified: %+v, %v", c, err)
	}
	if p := s.Prune(); p != (transfer.Pruned{Blobs: 1, Bytes: unit}) {
		t.Errorf("pruned: %+v", p)
	}
	want(t, s, true, false)
}
