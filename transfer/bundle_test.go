package transfer_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"zorilla/internal/codec"
	"zorilla/internal/reserved"
	"zorilla/transfer"
)

// zman3 is a manifest with bundles as somebody else may write it.
func zman3(bundles []byte, entries ...transfer.Entry) []byte {
	return append([]byte("zman3"), codec.MustMarshal(map[string]any{"bundles": bundles, "entries": entries})...)
}

// bundleOf describes a bundle behind small files that are in none.
func bundleOf(alone, files uint64, h transfer.Hash) []byte {
	b := binary.AppendUvarint(binary.AppendUvarint(nil, alone), files)
	return append(b, h[:]...)
}

func TestLayoutOfBundles(t *testing.T) {
	dir, store := t.TempDir(), transfer.NewMemStore(0)
	write(t, dir, map[string]string{"b": "b", "a": "a", "same": "a", "empty": "", "l": "->a", "void/": "", "big": strings.Repeat("x", 64<<10), "z*": "zzz"})
	m, err := transfer.Ingest(t.Context(), store, []transfer.Input{{Path: dir, Name: "."}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	content := transfer.HashOf([]byte("abazzz"))
	if want := zman3(bundleOf(0, 4, content), m.Entries...); !bytes.Equal(got, want) {
		t.Errorf("the layout changed: got\n%x, want\n%x", got, want)
	}
	if blobs := m.Chunks(); len(blobs) != 2 || !slices.Contains(blobs, content) || m.Distinct() != 64<<10+6 {
		t.Errorf("%d bytes in the blobs %v", m.Distinct(), blobs)
	}
	for _, e := range m.Entries {
		if blobs := e.Blobs(); (e.Path == "a" || e.Path == "z") != slices.Equal(blobs, []transfer.Hash{content}) && e.Path != "b" && e.Path != "same" {
			t.Errorf("%s is in %v", e.Path, blobs)
		}
	}
}

func TestTenThousandSmallFiles(t *testing.T) {
	const count = 10_000
	dir := t.TempDir()
	name := func(i int) string { return filepath.Join(dir, fmt.Sprintf("d%02d", i%20), fmt.Sprintf("f%05d", i)) }
	for i := range count {
		if i < 20 {
			if err := os.Mkdir(filepath.Dir(name(i)), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(name(i), fmt.Append(nil, strings.Repeat("content ", 50), i), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r := &remote{MemStore: transfer.NewMemStore(0)}
	upload := func() int {
		t.Helper()
		before := len(r.sent)
		up, err := transfer.Upload(t.Context(), r, []transfer.Input{{Path: dir, Name: "."}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if m, err := transfer.LoadManifest(r, up.Manifest); err != nil || slices.ContainsFunc(m.Chunks(), func(h transfer.Hash) bool { return !r.Has(h) }) {
			t.Errorf("something was not sent: %v", err)
		}
		return len(r.sent) - before - 1 // the manifest
	}
	if n := upload(); n < 10 || n > 25 {
		t.Errorf("%d blobs at first", n)
	}
	if n := upload(); n != 0 {
		t.Errorf("%d blobs of the same tree", n)
	}
	for what, change := range map[string]func() error{
		"changed": func() error { return os.WriteFile(name(5000), []byte("other"), 0o644) },
		"added":   func() error { return os.WriteFile(name(2021)+"x", []byte("new"), 0o644) },
		"removed": func() error { return os.Remove(name(7777)) },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if n := upload(); n < 1 || n > 2 {
			t.Errorf("%s: %d new blobs", what, n)
		}
	}
}

// smallTree is a tree in a store on disk, and the blob that its three files are in.
func smallTree(t *testing.T) (dir string, store transfer.PinStore, m transfer.Manifest, blob transfer.Hash) {
	t.Helper()
	dir, from := t.TempDir(), t.TempDir()
	write(t, from, map[string]string{"a": "first", "d/b*": "second", "d/e/c": "third"})
	store = openDir(t, dir, 0)
	m, err := transfer.Ingest(t.Context(), transfer.PinTo(store, "job"), []transfer.Input{{Path: from, Name: "."}})
	if err != nil || len(m.Chunks()) != 1 {
		t.Fatalf("%d blobs: %v", len(m.Chunks()), err)
	}
	return dir, store, m, m.Chunks()[0]
}

func TestDamagedBundle(t *testing.T) {
	for what, damage := range map[string]func(file string) error{
		"bit flipped": func(f string) error { return os.WriteFile(f, []byte("fIrstsecondthird"), 0o600) },
		"cut off":     func(f string) error { return os.Truncate(f, 3) },
		"removed":     os.Remove,
	} {
		dir, store, m, blob := smallTree(t)
		if err := damage(blobFile(dir, blob)); err != nil {
			t.Fatal(err)
		}
		to := t.TempDir()
		err := m.Write(t.Context(), store, to)
		if !errors.Is(err, transfer.ErrNotFound) || !strings.Contains(err.Error(), "write a and 2 more files") {
			t.Errorf("%s: got %v", what, err)
		}
		sameTree(t, read(t, to), map[string]string{"./": ""})
		if store.Has(blob) {
			t.Errorf("%s: the store believes that it has it", what)
		}
	}
}

func TestBundleHoldsSomethingElse(t *testing.T) {
	one, other := transfer.HashOf([]byte("one")), transfer.HashOf([]byte("other"))
	store := transfer.NewMemStore(0)
	for name, content := range map[string]string{"another file": "oneOTHER", "too short": "oneothe", "too long": "oneothers"} {
		h := transfer.HashOf([]byte(content))
		if err := store.Put(h, []byte(content)); err != nil {
			t.Fatal(err)
		}
		m, err := transfer.DecodeManifest(zman3(bundleOf(0, 2, h), transfer.Entry{Path: "a", Size: 3, Chunks: transfer.HashList{one}}, transfer.Entry{Path: "b", Size: 5, Chunks: transfer.HashList{other}}))
		if err != nil {
			t.Fatal(err)
		}
		to := t.TempDir()
		if err := m.Write(t.Context(), store, to); !errors.Is(err, transfer.ErrManifest) {
			t.Errorf("%s: got %v", name, err)
		}
		if _, err := os.Stat(filepath.Join(to, "b")); err == nil {
			t.Errorf("%s: b was written", name)
		}
	}
}

func TestHostileBundles(t *testing.T) {
	abc := []transfer.Entry{file("a"), file("b"), {Path: "c", Size: 64 << 10, Chunks: transfer.HashList{hashB}}}
	large := make([]transfer.Entry, 17)
	for i := range large {
		large[i] = transfer.Entry{Path: fmt.Sprintf("%02d", i), Size: 64<<10 - 1, Chunks: transfer.HashList{hashA}}
	}
	two := bundleOf(0, 2, hashA)
	for name, b := range map[string][]byte{
		"no bundles":        zman3(nil, abc...),
		"bundles untold":    append([]byte("zman1"), codec.MustMarshal(map[string]any{"bundles": two, "entries": abc})...),
		"list of entries":   append([]byte("zman3"), codec.MustMarshal(abc)...),
		"cut short":         zman3(two[:33], abc...),
		"only a number":     zman3([]byte{0}, abc...),
		"endless number":    zman3(bytes.Repeat([]byte{0xff}, 50), abc...),
		"of no file":        zman3(bundleOf(0, 0, hashA), abc...),
		"of one file":       zman3(bundleOf(0, 1, hashA), abc...),
		"too many files":    zman3(bundleOf(0, 3, hashA), abc...),
		"absurdly many":     zman3(bundleOf(0, 1<<63, hashA), abc...),
		"behind all":        zman3(bundleOf(1, 2, hashA), abc...),
		"far behind":        zman3(bundleOf(1<<63, 2, hashA), abc...),
		"twice":             zman3(append(two, two...), abc...),
		"zero hash":         zman3(bundleOf(0, 2, transfer.Hash{}), abc...),
		"too many bytes":    zman3(bundleOf(0, 17, hashA), large...),
		"without hashes":    zman3(two, transfer.Entry{Path: "a", Size: 1}, transfer.Entry{Path: "b", Size: 1}),
		"negative sizes":    zman3(two, transfer.Entry{Path: "a", Size: -1}, transfer.Entry{Path: "b", Size: -1}),
		"directories":       zman3(two, transfer.Entry{Path: "a", Dir: true, Size: 1}, transfer.Entry{Path: "b", Dir: true, Size: 1}),
		"links":             zman3(two, link("a", "b"), link("b", "a")),
		"paths out of them": zman3(two, file("../a"), file("../b")),
	} {
		if _, err := transfer.DecodeManifest(b); !errors.Is(err, transfer.ErrManifest) {
			t.Errorf("%s: got %v, want ErrManifest", name, err)
		}
	}
	if m, err := transfer.DecodeManifest(zman3(two, abc...)); err != nil || len(m.Chunks()) != 2 {
		t.Errorf("a good one: %v, %v", m.Chunks(), err)
	}
	if m, err := transfer.DecodeManifest(zman3(bundleOf(0, 16, hashA), large...)); err != nil || len(m.Chunks()) != 1 || m.Distinct() != 16*(64<<10-1) {
		t.Errorf("a full one: %v, %v", m.Chunks(), err)
	}
}

// Files of several trees are written together, and of each bundle some.
func TestPartsOfBundles(t *testing.T) {
	_, store, one, _ := smallTree(t)
	from := t.TempDir()
	write(t, from, map[string]string{"b": "fourth", "d/c": "fifth"})
	two, err := transfer.Ingest(t.Context(), store, []transfer.Input{{Path: from, Name: "."}})
	if err != nil {
		t.Fatal(err)
	}
	m, err := transfer.NewManifest(append(one.Entries[:2], two.Entries...))
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int64
	get := transfer.GetterFunc(func(h transfer.Hash, buf []byte) ([]byte, error) {
		asked.Add(1)
		return store.Get(h, buf)
	})
	to := t.TempDir()
	if err := m.Write(t.Context(), get, to); err != nil || asked.Load() != 2 {
		t.Errorf("%d blobs were asked for: %v", asked.Load(), err)
	}
	sameTree(t, read(t, to), map[string]string{"a": "first", "b": "fourth", "d/b*": "second", "d/c": "fifth"})
	for _, part := range []transfer.Manifest{m, {Entries: one.Entries[:1]}, {Entries: one.Entries[:2]}, {Entries: one.Entries[1:]}} {
		if _, err := part.Encode(); !errors.Is(err, transfer.ErrManifest) {
			t.Errorf("Encode %v: got %v", entries(part), err)
		}
	}
	rest, list, err := m.Obstacles(t.Context(), to, reserved.New(), false)
	if err != nil || len(list) > 0 || len(rest.Entries) > 0 {
		t.Errorf("what is there is in the way: %v %v %v", rest, list, err)
	}
}

func TestUnchangedFilesAreInNoBundle(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"a": "in a", "b": "in b", "c": "in c", "d": "in d"})
	skip, err := transfer.Ingest(t.Context(), transfer.NewMemStore(0), []transfer.Input{{Path: dir, Name: "."}})
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, map[string]string{"a": "outa", "c": "outc"})
	store := transfer.NewMemStore(0)
	m, _, err := transfer.Collect(t.Context(), store, dir, []string{"*"}, &skip)
	if err != nil {
		t.Fatal(err)
	}
	if want := []transfer.Hash{transfer.HashOf([]byte("outaoutc"))}; !slices.Equal(m.Chunks(), want) || store.Has(transfer.HashOf([]byte("in b"))) {
		t.Errorf("blobs %v, want %v alone", m.Chunks(), want)
	}
	if got := entries(m); !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("got %q", got)
	}
}
