package transfer

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"zorilla/internal/seeds"
)

// A bundle is as it was unless one of its files, or the end of the one before, is
// another.
func TestBundlesStayAsTheyAre(t *testing.T) {
	seeds.OneGoroutine(t)
	for seed := range uint64(12) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		most := []int64{10, 1000, 10_000, smallFile - 1}[seed%4]
		var files []*source
		for i := range 3000 {
			files = append(files, &source{entry: Entry{Path: fmt.Sprintf("d%02d/f%05d", i/100, i)}, size: 1 + rnd.Int64N(most)})
		}
		before := grouped(t, files)
		changed, worst := 0, 0
		for range 20 {
			i := rnd.IntN(len(files))
			now := slices.Clone(files)
			switch rnd.IntN(3) {
			case 0:
				now = slices.Delete(now, i, i+1)
			case 1:
				now = slices.Insert(now, i+1, &source{entry: Entry{Path: now[i].entry.Path + "x"}, size: 1 + rnd.Int64N(most)})
			case 2:
				now[i] = &source{entry: now[i].entry, size: 1 + rnd.Int64N(most)}
			}
			fresh := 0
			for key := range grouped(t, now) {
				if !before[key] {
					fresh++
				}
			}
			changed, worst = changed+fresh, max(worst, fresh)
		}
		if changed > 35 || worst > 5 {
			t.Errorf("seed %d: of %d bundles %d are new after 20 changes, %d after one", seed, len(before), changed, worst)
		}
	}
}

// grouped lists the bundles of files, each by what is in it.
func grouped(t *testing.T, files []*source) map[string]bool {
	t.Helper()
	all, count := map[string]bool{}, 0
	for in := range bundles(files) {
		var size int64
		var key strings.Builder
		for _, s := range in {
			size += s.size
			fmt.Fprintln(&key, s.entry.Path, s.size)
		}
		if size > ChunkSize || len(in) > ChunkSize/leastWeight {
			t.Fatalf("%d files of %d bytes in one bundle", len(in), size)
		}
		all[key.String()], count = true, count+len(in)
	}
	if count != len(files) {
		t.Fatalf("%d files in bundles, want %d", count, len(files))
	}
	return all
}

// Files that change between being found and being read are taken as they are then.
func TestFilesGrowBeforeTheyAreBundled(t *testing.T) {
	dir := t.TempDir()
	var files []*source
	for i, size := range []int{smallFile - 1, smallFile, 0, 5, ChunkSize + 1} {
		name := filepath.Join(dir, fmt.Sprint(i))
		if err := os.WriteFile(name, bytes.Repeat([]byte{byte(i)}, size), 0o644); err != nil {
			t.Fatal(err)
		}
		files = append(files, &source{entry: Entry{Path: fmt.Sprint(i)}, size: 1, label: name, open: func() (*os.File, error) { return openRegular(name) }})
	}
	for i := range 16 { // together more than ChunkSize
		again := *files[0]
		again.entry.Path = fmt.Sprint(9, i)
		files = append(files, &again)
	}
	store := NewMemStore(0)
	if err := chunkAll(t.Context(), store, files, nil); err != nil {
		t.Fatal(err)
	}
	m, err := manifestOf(files)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := m.Encode(); err != nil {
		t.Error(err)
	} else if m, err = DecodeManifest(b); err != nil {
		t.Error(err)
	}
	alone, in := 0, map[*bundle]int{}
	for _, e := range m.Entries {
		if in[e.bundle]++; e.bundle == nil {
			alone++
		}
	}
	if alone != 4 || len(in) != 2 { // one more than fits is a blob of its own
		t.Errorf("%d files are alone, %d bundles", alone, len(in)-1)
	}
	if err := m.Write(t.Context(), store, t.TempDir()); err != nil {
		t.Error(err)
	}
}

// A file that changes while it is read is an error that names it.
func TestSmallFileChangesWhileItIsRead(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	for what, change := range map[string]func() error{
		"grown": func() error { return os.WriteFile(name, []byte("longer than before"), 0o644) },
		"cut":   func() error { return os.Truncate(name, 1) },
	} {
		if err := os.WriteFile(name, []byte("before"), 0o644); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		r := &reading{source: &source{label: "input f"}, file: f}
		r.users.Store(1)
		if err := errors.Join(r.begin(), change()); err != nil {
			t.Fatal(err)
		}
		if err := r.all(make([]byte, 6)); !errors.Is(err, ErrChanged) || err.Error() != "input f: "+ErrChanged.Error() {
			t.Errorf("%s: got %v", what, err)
		}
	}
}

// A small file is read by calls of the system alone as long as it is as it was found; what else
// there is takes the usual way.
func TestSmallFilesAreReadAtOnce(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(name, []byte("before"), 0o640); err != nil {
		t.Fatal(err)
	}
	usual := errors.New("the usual way")
	read := func(size int64) error {
		s := &source{path: name, label: "input f", size: size, open: func() (*os.File, error) { return nil, usual }}
		var got []byte
		b := bundling{put: PutterFunc(func(_ Hash, data []byte) error { got = data; return nil })}
		if err := b.read(t.Context(), []*source{s}, make([]byte, ChunkSize)); err != nil {
			return err
		}
		if e := &s.entry; string(got) != "before" || e.Size != 6 || e.Mode != 0o640 || e.Exec || e.Chunks[0] != HashOf(got) {
			t.Errorf("got %q of %+v", got, e)
		}
		return nil
	}
	if err := read(6); err != nil {
		t.Error(err)
	}
	for _, size := range []int64{1, 5, 7} {
		if err := read(size); err != usual {
			t.Errorf("found with %d bytes: got %v", size, err)
		}
	}
	if err := errors.Join(os.Remove(name), syscall.Mkfifo(name, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := read(6); err != usual {
		t.Errorf("a pipe: got %v", err)
	}
}

// Bundles are worked on far from each other, and none is left out.
func TestBundlesAreSpread(t *testing.T) {
	for n := range 30 {
		order := make([]Hash, n)
		for i := range order {
			order[i] = HashOf(fmt.Append(nil, i))
		}
		out := spread(order)
		if len(out) != n {
			t.Fatalf("%d of %d", len(out), n)
		}
		seen := map[Hash]bool{}
		for i, h := range out {
			if seen[h] || !slices.Contains(order, h) {
				t.Fatalf("of %d: number %d is there twice, or none of them", n, i)
			}
			seen[h] = true
			if i > 0 && n == 20 {
				a, b := slices.Index(order, out[i-1]), slices.Index(order, h)
				if i%parallel != 0 && b-a != n/parallel {
					t.Errorf("%d and then %d of %d", a, b, n)
				}
			}
		}
	}
}

// What paths of what is in a directory begin with is what filepath.Join would make of it.
func TestBefore(t *testing.T) {
	for _, dir := range []string{".", "/", "a", "./a", "a/", "a/..", "..", "../a", ".hidden", "/a//b", "..."} {
		clean := filepath.Clean(dir)
		if got, want := before(clean)+"kid", filepath.Join(dir, "kid"); got != want {
			t.Errorf("%q: %q, want %q", dir, got, want)
		}
	}
	if got := before(""); got != "" {
		t.Errorf("the top of a tree: %q", got)
	}
}
