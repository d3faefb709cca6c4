package transfer_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"zorilla/internal/seeds"
	"zorilla/transfer"
)

// Names that are unusual, and harm nobody, arrive as they are, as inputs and as outputs:
// each is another file for a file system that tells them apart.
func TestUnusualNamesArrive(t *testing.T) {
	long := strings.Repeat("l", 255)
	deep := strings.Repeat("d/", transfer.MaxDepth-1)
	names := []string{
		long, "x/" + long, deep + "file", "Data", "data", "DATA", "dir/a", "Dir/A", "-rf", "--", " ", "a ", "...", "..a", ".hidden", "~", "$HOME", "*", "?", "[a]", "a:b", `a\b`, `"quoted"`, "'", "#", "%r", "%2f",
		"\u00e9", "e\u0301", "\u200b", "\u202e", "ünï-☃", ".zorilla-x-1", "con", "nul.txt",
	}
	from, to, again := t.TempDir(), t.TempDir(), t.TempDir()
	want := map[string]string{}
	for _, name := range names {
		want[name] = "in " + name
		path := filepath.Join(from, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(want[name]), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	got := func(dir string) map[string]string {
		found := map[string]string{}
		for _, name := range names {
			b, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Error(err)
			}
			found[name] = string(b)
		}
		return found
	}
	store := transfer.NewMemStore(0)
	arrive := func(m transfer.Manifest, err error, to string) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		h, err := transfer.SaveManifest(store, m)
		if err == nil {
			m, err = transfer.LoadManifest(store, h)
		}
		if err == nil {
			err = m.Write(t.Context(), store, to)
		}
		if err != nil {
			t.Fatal(err)
		}
		if m.Files() != len(names) || !reflect.DeepEqual(got(to), want) {
			t.Errorf("%d files, %q", m.Files(), got(to))
		}
	}
	m, err := transfer.Ingest(t.Context(), store, []transfer.Input{{Path: from, Name: "."}})
	arrive(m, err, to)
	m, _, err = transfer.Collect(t.Context(), store, to, []string{"*", ".*"}, nil)
	arrive(m, err, again)
}

// Many files without content take a line of the manifest each, and no blob.
func TestManyEmptyFiles(t *testing.T) {
	count := seeds.Fewer(10_000, 2_000)
	from, to := t.TempDir(), t.TempDir()
	emptyFiles(t, from, count)
	store := transfer.NewDirStore(t.TempDir(), 0)
	if err := store.Open(); err != nil {
		t.Fatal(err)
	}
	m, err := transfer.Ingest(t.Context(), store, []transfer.Input{{Path: from, Name: "."}})
	if err != nil {
		t.Fatal(err)
	}
	b, err := m.Encode()
	if err != nil || m.Files() != count || m.Size() != 0 || len(m.Chunks()) != 0 || store.Usage().Blobs != 0 || len(b) > 40*count {
		t.Errorf("%d files, %d bytes in %d chunks, a manifest of %d bytes: %v", m.Files(), m.Size(), len(m.Chunks()), len(b), err)
	}
	if m, err = transfer.DecodeManifest(b); err == nil {
		err = m.Write(t.Context(), store, to)
	}
	if err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(to, "*", "*"))
	if err != nil || len(found) != count {
		t.Errorf("%d files arrived: %v", len(found), err)
	}
}

// emptyFiles makes so many files without content, a thousand in a directory.
func emptyFiles(t testing.TB, dir string, count int) {
	t.Helper()
	for i := range count {
		below := filepath.Join(dir, "d"+strconv.Itoa(i/1000))
		if i%1000 == 0 {
			if err := os.Mkdir(below, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		f, err := os.Create(filepath.Join(below, "f"+strconv.Itoa(i)))
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
}

// As many files as a manifest may have fit into a blob; one more is refused.
func TestMoreFilesThanAManifestHolds(t *testing.T) {
	seeds.OneGoroutine(t)
	entries := make([]transfer.Entry, transfer.MaxEntries)
	for i := range entries {
		entries[i].Path = strconv.Itoa(i)
	}
	m, err := transfer.NewManifest(entries)
	if err != nil {
		t.Fatal(err)
	}
	b, err := m.Encode()
	if err != nil || len(b) > transfer.MaxBlob {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	if got, err := transfer.DecodeManifest(b); err != nil || got.Files() != len(entries) {
		t.Errorf("%d files, %v", got.Files(), err)
	}
	if _, err := transfer.NewManifest(append(entries, transfer.Entry{Path: "x"})); !errors.Is(err, transfer.ErrManifest) {
		t.Errorf("one more: %v", err)
	}
}

// endless grows with every chunk that is read of it.
type endless struct {
	t    *testing.T
	path string
	read int
}

func (e *endless) Put(_ transfer.Hash, data []byte) error {
	e.read += len(data)
	f, err := os.OpenFile(e.path, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.Write(bytes.Repeat([]byte{byte(e.read >> 20)}, 2*transfer.ChunkSize))
		err = errors.Join(err, f.Close())
	}
	return err
}

// A file that grows faster than it is read ends where it ended when it was found, with an
// error that names it.
func TestEndlessFiles(t *testing.T) {
	for name, read := range map[string]func(put transfer.Putter, dir string) error{
		"input": func(put transfer.Putter, dir string) error {
			_, err := transfer.Ingest(t.Context(), put, []transfer.Input{{Path: filepath.Join(dir, "log")}})
			return err
		},
		"output": func(put transfer.Putter, dir string) error {
			_, _, err := transfer.Collect(t.Context(), put, dir, []string{"log"}, nil)
			return err
		},
	} {
		dir := t.TempDir()
		e := &endless{t: t, path: filepath.Join(dir, "log")}
		if err := os.WriteFile(e.path, make([]byte, 3*transfer.ChunkSize), 0o644); err != nil {
			t.Fatal(err)
		}
		err := read(serial(e), dir)
		if !errors.Is(err, transfer.ErrChanged) || !strings.Contains(err.Error(), "log") {
			t.Errorf("%s: %v", name, err)
		}
		if e.read > 8*transfer.ChunkSize {
			t.Errorf("%s: %d bytes were read of a file of 3 MiB", name, e.read)
		}
	}
}

// serial hands one blob after the other to a Putter.
func serial(p transfer.Putter) transfer.Putter {
	turn := make(chan struct{}, 1)
	return transfer.PutterFunc(func(h transfer.Hash, data []byte) error {
		turn <- struct{}{}
		defer func() { <-turn }()
		return p.Put(h, data)
	})
}
