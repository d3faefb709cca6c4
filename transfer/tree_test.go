package transfer_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"zorilla/transfer"
)

// write makes files below dir: a name that ends in "/" is a directory, in "*"
// an executable, and a content that begins with "->" a symbolic link.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		at := filepath.Join(dir, strings.TrimSuffix(name, "*"))
		var err error
		switch target, link := strings.CutPrefix(content, "->"); {
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(at, 0o755)
		case os.MkdirAll(filepath.Dir(at), 0o755) != nil:
			err = errors.New("no parent")
		case link:
			err = os.Symlink(target, at)
		case strings.HasSuffix(name, "*"):
			err = os.WriteFile(at, []byte(content), 0o755)
		default:
			err = os.WriteFile(at, []byte(content), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// read lists what is below dir in the form that write takes.
func read(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := make(map[string]string)
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, p)
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case info.IsDir():
			if kids, _ := os.ReadDir(p); len(kids) == 0 {
				out[name+"/"] = ""
			}
			return nil
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(p)
			out[name] = "->" + target
			return err
		case info.Mode().Perm() == 0o755:
			name += "*"
		case info.Mode().Perm() != 0o644:
			return fmt.Errorf("%s has mode %v", name, info.Mode())
		}
		b, err := os.ReadFile(p)
		out[name] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func sameTree(t *testing.T, got, want map[string]string) {
	t.Helper()
	for name, content := range want {
		if have, ok := got[name]; !ok {
			t.Errorf("%s is missing", name)
		} else if have != content {
			t.Errorf("%s: %.40q (%d bytes), want %.40q (%d bytes)", name, have, len(have), content, len(content))
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s should not be there", name)
		}
	}
}

func randomTree(rnd *rand.Rand, dir string, depth int, out map[string]string) {
	sizes := []int{0, 1, 100, 1000, 64<<10 - 1, 64 << 10, transfer.ChunkSize - 1, transfer.ChunkSize, transfer.ChunkSize + 1, 2*transfer.ChunkSize + 5}
	names := []string{"a", "a-b", "a.b", "b c", "ü", "-x", ".hidden", "a\\b", "*", "..."}
	rnd.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names[:rnd.IntN(5)] {
		at := dir + name
		switch kind := rnd.IntN(10); {
		case kind < 4 && depth < 4:
			n := len(out)
			randomTree(rnd, at+"/", depth+1, out)
			if len(out) == n {
				out[at+"/"] = ""
			}
			continue
		case kind < 6 && name != "*":
			at += "*"
		case name == "*":
			continue // the notation of write
		}
		b := make([]byte, sizes[rnd.IntN(len(sizes))])
		for i := range b {
			b[i] = byte(rnd.Uint32() >> 8)
		}
		out[at] = string(b)
	}
}

func TestRandomTreesRoundTrip(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077)) // modes do not depend on it
	for seed := range uint64(12) {
		want := map[string]string{"always": "here"}
		randomTree(rand.New(rand.NewPCG(seed, 1)), "", 0, want)
		from := t.TempDir()
		syscall.Umask(0o022)
		write(t, from, want)
		syscall.Umask(0o077)
		store := openDir(t, t.TempDir(), 0)
		m, err := transfer.Ingest(t.Context(), transfer.PinTo(store, "job"), []transfer.Input{{Path: from, Name: "."}})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		h, err := transfer.SaveManifest(store, m)
		if err != nil {
			t.Fatal(err)
		}
		m, err = transfer.LoadManifest(store, h)
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(t.TempDir(), "new")
		for range 2 { // the second time over the first
			if err := m.Write(t.Context(), store, to); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			sameTree(t, read(t, to), want)
		}
		collected, warnings, err := transfer.Collect(t.Context(), store, to, []string{".", "always", "a", "a-b", "a.b", "b c", "ü", "-x", ".hidden", `a\\b`, `\*`, "..."}, nil)
		if err != nil || slices.ContainsFunc(warnings, func(w string) bool {
			return !strings.Contains(w, transfer.MatchesNothing) && !strings.Contains(w, "hidden")
		}) {
			t.Fatalf("seed %d: collect: %v, %q", seed, err, warnings)
		}
		if h2, _ := transfer.SaveManifest(store, collected); h2 != h {
			t.Errorf("seed %d: the same tree has two hashes", seed)
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func saved(t *testing.T, files map[string]string) (transfer.Manifest, *transfer.MemStore) {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, files)
	s := transfer.NewMemStore(0)
	m, err := transfer.Ingest(t.Context(), s, []transfer.Input{{Path: dir, Name: "."}})
	if err != nil {
		t.Fatal(err)
	}
	return m, s
}

func TestWriteReplacesFiles(t *testing.T) {
	m, s := saved(t, map[string]string{"a": "new", "d/b*": "new", "d/e/": ""})
	dir, outside := t.TempDir(), t.TempDir()
	write(t, outside, map[string]string{"target": "untouched"})
	write(t, dir, map[string]string{"a": "->" + outside + "/target", "d/b": "old and longer", "d/other": "stays"})
	if err := m.Write(t.Context(), s, dir); err != nil {
		t.Fatal(err)
	}
	sameTree(t, read(t, dir), map[string]string{"a": "new", "d/b*": "new", "d/other": "stays", "d/e/": ""})
	sameTree(t, read(t, outside), map[string]string{"target": "untouched"})
}

func TestWriteNeverGoesThroughLinks(t *testing.T) {
	m, s := saved(t, map[string]string{"d/e/f": "x"})
	for name, files := range map[string]map[string]string{
		"link outside":      {"d": "->OUTSIDE"},
		"link inside":       {"other/": "", "d": "->other"},
		"deeper link":       {"other/": "", "d/e": "->../other"},
		"dangling link":     {"d": "->nowhere"},
		"file in the way":   {"d": "file"},
		"directory for one": {"d/e/f/": ""},
	} {
		dir, outside := t.TempDir(), t.TempDir()
		for n, content := range files {
			files[n] = strings.ReplaceAll(content, "OUTSIDE", outside)
		}
		write(t, dir, files)
		err := m.Write(t.Context(), s, dir)
		if err == nil || !strings.Contains(err.Error(), "write d") || !strings.Contains(err.Error(), "remove it") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v", name, err)
		}
		sameTree(t, read(t, dir), files)
		sameTree(t, read(t, outside), map[string]string{"./": ""})
	}
}

func TestWriteLeavesNoHalfFiles(t *testing.T) {
	big := strings.Repeat("0123456789abcdef", 3*transfer.ChunkSize/16)
	m, s := saved(t, map[string]string{"a": "small", "big": big, "z": "small too"})
	var bad transfer.Hash
	for _, e := range m.Entries {
		if e.Path == "big" {
			bad = e.Chunks[0]
		}
	}
	for name, c := range map[string]struct {
		get  transfer.GetterFunc
		want error
	}{
		"missing": {func(h transfer.Hash, buf []byte) ([]byte, error) {
			if h == bad {
				return nil, transfer.ErrNotFound
			}
			return s.Get(h, buf)
		}, transfer.ErrNotFound},
		"wrong bytes": {func(h transfer.Hash, buf []byte) ([]byte, error) {
			b, err := s.Get(h, buf)
			if h == bad {
				b[0]++
			}
			return b, err
		}, transfer.ErrMismatch},
	} {
		dir := t.TempDir()
		if err := m.Write(t.Context(), c.get, dir); !errors.Is(err, c.want) || !strings.Contains(err.Error(), "big") {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
		for f, content := range read(t, dir) {
			if f != "./" && (f == "big" || strings.HasPrefix(f, ".zorilla") || content == "") {
				t.Errorf("%s: %s was left behind", name, f)
			}
		}
	}
}

func TestWriteChecksChunkLengths(t *testing.T) {
	s := transfer.NewMemStore(0)
	if err := s.Put(hashA, []byte("a")); err != nil {
		t.Fatal(err)
	}
	m := transfer.Manifest{Entries: []transfer.Entry{{Path: "f", Size: 2, Chunks: transfer.HashList{hashA}}}}
	if err := m.Write(t.Context(), s, t.TempDir()); !errors.Is(err, transfer.ErrManifest) {
		t.Errorf("got %v, want ErrManifest", err)
	}
}

var errStop = errors.New("stop")

// newCountdown returns a context that ends at the n-th call of the function.
func newCountdown(t *testing.T, n int64) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(t.Context())
	var calls atomic.Int64
	return ctx, func() {
		if calls.Add(1) == n {
			cancel(errStop)
		}
	}
}

func TestCancelledCallsEnd(t *testing.T) {
	m, s := saved(t, map[string]string{"a": strings.Repeat("x", 5*transfer.ChunkSize), "b": "b"})
	src := t.TempDir()
	if err := m.Write(t.Context(), s, src); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := newCountdown(t, 2)
	get := transfer.GetterFunc(func(h transfer.Hash, buf []byte) ([]byte, error) { cancel(); return s.Get(h, buf) })
	dir := t.TempDir()
	if err := m.Write(ctx, get, dir); !errors.Is(err, errStop) {
		t.Errorf("Write: got %v", err)
	}
	sameTree(t, read(t, dir), map[string]string{"./": ""})
	ctx, cancel = newCountdown(t, 2)
	put := transfer.PutterFunc(func(h transfer.Hash, b []byte) error { cancel(); return s.Put(h, b) })
	if _, err := transfer.Ingest(ctx, put, []transfer.Input{{Path: src, Name: "x"}}); !errors.Is(err, errStop) {
		t.Errorf("Ingest: got %v", err)
	}
	ctx, cancel = newCountdown(t, 2)
	if _, _, err := transfer.Collect(ctx, put, src, []string{"*"}, nil); !errors.Is(err, errStop) {
		t.Errorf("Collect: got %v", err)
	}
}

// A directory that nobody looks at yet gets the same files, also where something is in the way.
func TestFreshDirectory(t *testing.T) {
	files := map[string]string{"a": "a", "b": "b", "d/c": "c", "d/e/f*": "f", "g*": "g", "h": "h", "i": "->a", "large": strings.Repeat("large", 20_000)}
	src := t.TempDir()
	write(t, src, files)
	store := transfer.NewMemStore(0)
	m, err := transfer.Ingest(t.Context(), store, []transfer.Input{{Path: src, Name: "."}})
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	write(t, filepath.Dir(elsewhere), map[string]string{"elsewhere": "not this"})
	for _, there := range []map[string]string{nil, {"a": "of before", "h": "->" + elsewhere, "d/c": "->c"}} {
		dir := t.TempDir()
		write(t, dir, there)
		if err := m.WriteTo(t.Context(), store, dir, transfer.How{Fresh: true}); err != nil {
			t.Fatal(err)
		}
		if got := read(t, dir); !maps.Equal(got, files) {
			t.Errorf("with %v there: got %v", there, slices.Sorted(maps.Keys(got)))
		}
	}
	if b, err := os.ReadFile(elsewhere); err != nil || string(b) != "not this" {
		t.Errorf("a link was followed: %q, %v", b, err)
	}
}
