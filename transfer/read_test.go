package transfer_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"zorilla/internal/seeds"
	"zorilla/transfer"
)

// readParts returns what Read gives, and the lengths of its parts. Each is told before it is read.
func readParts(s transfer.PinStore, h transfer.Hash, each func(n int) error) (data []byte, parts []int, kept int, err error) {
	buf, err := s.Read(h, nil, func(p []byte, size int) error {
		if cap(data) == 0 {
			data = make([]byte, 0, size)
		}
		data, parts = append(data, p...), append(parts, len(p))
		return each(len(parts))
	})
	return data, parts, cap(buf), err
}

func none(int) error { return nil }

// TestReadInParts reads what was compared with its hash a part at a time, wherever it is.
func TestReadInParts(t *testing.T) {
	s, _, f, all := referred(t)
	own := all[5 : 5+transfer.ChunkSize]
	lent, output := largeFile(t, 2)
	s.Pin("output", lent.Chunks...)
	if err := s.Refer(lent, transfer.Brief); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		hash transfer.Hash
		want []byte
	}{
		{"first of a file", f.Chunks[0], all[:transfer.ChunkSize]},
		{"second of a file", f.Chunks[1], all[transfer.ChunkSize : 2*transfer.ChunkSize]},
		{"short", f.Chunks[2], all[2*transfer.ChunkSize:]},
		{"lent", lent.Chunks[1], output[transfer.ChunkSize : 2*transfer.ChunkSize]},
		{"own", put(t, s, own), own},
		{"empty", put(t, s, nil), nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			data, _, _, err := readParts(s, tt.hash, none)
			if err != nil || !bytes.Equal(data, tt.want) {
				t.Fatalf("%d bytes (%v), want %d", len(data), err, len(tt.want))
			}
			if _, err := s.Get(tt.hash, nil); err != nil { // compares
				t.Fatal(err)
			}
			data, parts, kept, err := readParts(s, tt.hash, none)
			if err != nil || !bytes.Equal(data, tt.want) {
				t.Errorf("in parts: %d bytes (%v), want %d", len(data), err, len(tt.want))
			}
			if len(parts) == 0 {
				t.Error("nobody was told how many bytes they are")
			}
			if len(tt.want) == transfer.ChunkSize && (len(parts) != 8 || slices.Max(parts) != 128<<10 || kept > 256<<10) {
				t.Errorf("parts %v in %d bytes, want eight of 128 KiB in as much", parts, kept)
			}
		})
	}
}

func put(t *testing.T, s transfer.Store, data []byte) transfer.Hash {
	t.Helper()
	h := transfer.HashOf(data)
	if err := s.Put(h, data); err != nil {
		t.Fatal(err)
	}
	return h
}

// TestReadOfWhatChanges changes a file while a part of it is read that was compared before: who
// reads it does not get all of it, and the store has it no more.
func TestReadOfWhatChanges(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"written to": func(path string) error {
			w, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err == nil {
				_, err = w.WriteAt([]byte("other"), transfer.ChunkSize-5)
				err = errors.Join(err, w.Close())
			}
			return err
		},
		"shorter": func(path string) error { return os.Truncate(path, transfer.ChunkSize/2) },
	} {
		t.Run(name, func(t *testing.T) {
			s, _, f, _ := referred(t)
			if _, err := s.Get(f.Chunks[0], nil); err != nil {
				t.Fatal(err)
			}
			data, parts, _, err := readParts(s, f.Chunks[0], func(n int) error {
				if n > 1 {
					return nil
				}
				return change(f.Path)
			})
			if !errors.Is(err, transfer.ErrNotFound) || len(data) >= transfer.ChunkSize || len(parts) == 0 {
				t.Errorf("%d bytes in %d parts (%v), want some, and ErrNotFound", len(data), len(parts), err)
			}
			if s.Has(f.Chunks[0]) || s.Lost(f.Chunks[0]) == nil {
				t.Errorf("has it: %v; lost: %v", s.Has(f.Chunks[0]), s.Lost(f.Chunks[0]))
			}
		})
	}
}

// TestReadOfWhatIsTouched: that the bytes are right is not known before they are compared again, as
// where a worker gets the file meanwhile. Then the rest is given at once.
func TestReadOfWhatIsTouched(t *testing.T) {
	s, _, f, data := referred(t)
	wantChunk(t, s, f, data, 0)
	got, parts, _, err := readParts(s, f.Chunks[0], func(n int) error {
		if n == 3 {
			return os.Chmod(f.Path, 0o600)
		}
		return nil
	})
	if err != nil || !bytes.Equal(got, data[:transfer.ChunkSize]) || len(parts) != 8 {
		t.Errorf("%d bytes in parts of %v (%v)", len(got), parts, err)
	}
}

// TestReadOfWhatNobodyWants gives the error of who reads, and lets go of nothing.
func TestReadOfWhatNobodyWants(t *testing.T) {
	s, _, f, data := referred(t)
	enough := errors.New("enough")
	for _, compared := range []bool{false, true} {
		_, parts, _, err := readParts(s, f.Chunks[1], func(int) error { return enough })
		if !errors.Is(err, enough) || len(parts) != 1 {
			t.Errorf("compared %v: %d parts (%v)", compared, len(parts), err)
		}
		wantChunk(t, s, f, data, 1)
	}
	if _, err := s.Read(transfer.HashOf([]byte("never put")), nil, nil); !errors.Is(err, transfer.ErrNotFound) {
		t.Errorf("what nobody put: %v", err)
	}
}

// TestReadOfWhatGoes removes a file before, and while, it is read.
func TestReadOfWhatGoes(t *testing.T) {
	s, _, f, data := referred(t)
	wantChunk(t, s, f, data, 0)
	wantChunk(t, s, f, data, 1)
	// Who has a file open has it until the end; that its name is gone is a change of it.
	_, _, _, err := readParts(s, f.Chunks[0], func(n int) error {
		if n == 1 {
			return os.Remove(f.Path)
		}
		return nil
	})
	if !errors.Is(err, transfer.ErrNotFound) {
		t.Errorf("while it was read: %v", err)
	}
	if _, parts, _, err := readParts(s, f.Chunks[1], none); !errors.Is(err, transfer.ErrNotFound) || len(parts) > 0 {
		t.Errorf("after: %d parts (%v)", len(parts), err)
	}
}

// TestReadOfWhatAWorkerGets reads a chunk that is right while its file is still written, and is a
// worker's before all was read: if that changes it, who reads it does not get all of it.
func TestReadOfWhatAWorkerGets(t *testing.T) {
	for _, changed := range []bool{false, true} {
		s := newStation(t, seeds.One(t), nil)
		s.files = map[string]string{"large": large(s.rnd)}
		src := t.TempDir()
		write(t, src, s.files)
		var err error
		if s.tree, err = transfer.Ingest(t.Context(), s.from, []transfer.Input{{Path: src, Name: "."}}); err != nil {
			t.Fatal(err)
		}
		done := s.store.Expect(&s.tree, true)
		chunks := s.tree.DistinctChunks()
		first, want := chunks[0].Hash, s.files["large"][:transfer.ChunkSize]
		fill := func(some []transfer.Chunk) {
			for _, c := range some {
				data, err := s.from.Get(c.Hash, nil)
				if err := errors.Join(err, s.store.Put(c.Hash, data)); err != nil {
					t.Fatal(err)
				}
			}
		}
		fill(chunks[:1])
		data, parts, _, err := readParts(s.store, first, func(n int) error {
			if n == 1 {
				fill(chunks[1:])
				done()
				if work := s.give(); changed {
					scribble(t, filepath.Join(work, "large"), 5)
				}
			}
			return nil
		})
		if changed && (err == nil || len(data) == len(want)) || !changed && (err != nil || string(data) != want) || len(parts) < 2 {
			t.Errorf("changed %v: %d bytes in %d parts (%v)", changed, len(data), len(parts), err)
		}
	}
}
