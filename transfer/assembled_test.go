package transfer_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"zorilla/internal/seeds"
	"zorilla/transfer"
)

// station is a node's store and what was sent to it.
type station struct {
	t     *testing.T
	dir   string
	store transfer.PinStore
	from  *transfer.MemStore // has all of it
	tree  transfer.Manifest
	files map[string]string
	rnd   *rand.Rand
}

func noise(rnd *rand.Rand, size int) string {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(rnd.Uint32())
	}
	return string(b)
}

// newStation sends files to a store, in any order.
func newStation(t *testing.T, seed uint64, files map[string]string) *station {
	t.Helper()
	src := t.TempDir()
	write(t, src, files)
	s := &station{t: t, dir: t.TempDir(), from: transfer.NewMemStore(0), files: files, rnd: rand.New(rand.NewPCG(seed, 1))}
	var err error
	if s.tree, err = transfer.Ingest(t.Context(), s.from, []transfer.Input{{Path: src, Name: "."}}); err != nil {
		t.Fatal(err)
	}
	s.store = openDir(t, s.dir, 0)
	s.send(s.tree.DistinctChunks())
	return s
}

// send is a fetch of those chunks that are not there.
func (s *station) send(chunks []transfer.Chunk) {
	s.t.Helper()
	done := s.store.Expect(&s.tree, s.rnd.IntN(2) == 0)
	defer done()
	s.rnd.Shuffle(len(chunks), func(i, j int) { chunks[i], chunks[j] = chunks[j], chunks[i] })
	for _, c := range chunks {
		if s.store.Has(c.Hash) || s.store.Keep(c.Hash, false) {
			continue
		}
		data, err := s.from.Get(c.Hash, nil)
		if err == nil {
			err = s.store.Put(c.Hash, data)
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
}

// give writes the tree to a new directory, as for a worker that may have the files.
func (s *station) give() string {
	s.t.Helper()
	work := filepath.Join(s.t.TempDir(), "work")
	if err := s.tree.WriteTo(s.t.Context(), s.store, work, transfer.How{Give: true}); err != nil {
		s.t.Fatal(err)
	}
	sameTree(s.t, read(s.t, work), s.files)
	return work
}

// whole makes sure that the store has each chunk or says that it has not; it never gives
// another. It returns how many it has.
func (s *station) whole() (there int) {
	s.t.Helper()
	for _, c := range s.tree.DistinctChunks() {
		want, err := s.from.Get(c.Hash, nil)
		if err != nil {
			s.t.Fatal(err)
		}
		switch got, err := s.store.Get(c.Hash, nil); {
		case err == nil && bytes.Equal(got, want):
			there++
		case err == nil:
			s.t.Errorf("%s: other bytes", c.Hash)
		case errors.Is(err, fs.ErrPermission): // only root can read what a worker has closed
		case !errors.Is(err, transfer.ErrNotFound):
			s.t.Error(err)
		}
	}
	return there
}

// assembled lists the files of the store that have several chunks.
func (s *station) assembled() (names []string) {
	s.t.Helper()
	names, err := filepath.Glob(filepath.Join(s.dir, "assembled", "*"))
	if err != nil {
		s.t.Fatal(err)
	}
	return names
}

func inode(t *testing.T, name string) uint64 { t.Helper(); return stampOf(t, name).Inode }

func blocksOf(t *testing.T, name string) int64 {
	t.Helper()
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Blocks
}

func large(rnd *rand.Rand) string { return noise(rnd, 3*transfer.ChunkSize+1000) }

// Who needs a large file gets the one that its chunks were put in, and the store takes it
// back, again and again: nothing is copied. Small ones and links are as ever.
func TestLargeFilesAreGivenAndTakenBack(t *testing.T) {
	seed := seeds.One(t)
	rnd := rand.New(rand.NewPCG(seed, 2))
	s := newStation(t, seed, map[string]string{"d/large": large(rnd), "tool*": large(rnd), "small": "s", "l": "->d/large", "e/": ""})
	chunks := s.tree.DistinctChunks()
	if n := len(s.assembled()); n != 2 {
		t.Fatalf("%d files are assembled", n)
	}
	var nodes []uint64
	for _, name := range s.assembled() {
		nodes = append(nodes, inode(t, name))
	}
	for round := range 3 {
		work := s.give()
		if got := inode(t, work+"/d/large"); got != nodes[0] && got != nodes[1] {
			t.Errorf("round %d: the worker has a copy", round)
		}
		if info, err := os.Stat(work + "/tool"); err != nil || info.Mode() != 0o755 {
			t.Errorf("the tool: %v (%v)", info.Mode(), err)
		}
		if n := len(s.assembled()); n != 0 {
			t.Errorf("%d files are still in the store", n)
		}
		h := s.tree.Entries[0].Chunks[0]
		if served, _ := s.store.Holds(h); s.store.Has(h) || !served {
			t.Errorf("what a worker may write to: held %v, served %v", s.store.Has(h), served)
		}
		if got := s.whole(); got != len(chunks) {
			t.Errorf("%d of %d chunks are served meanwhile", got, len(chunks))
		}
		s.store.TakeBack(work, nil)
		for _, c := range chunks {
			if !s.store.Has(c.Hash) {
				t.Errorf("round %d: %s is not there any more", round, c.Hash)
			}
		}
		if round == 1 {
			s.store = openDir(t, s.dir, 0) // in another life it is the same
		}
	}
	for _, name := range s.assembled() {
		if info, err := os.Stat(name); err != nil || info.Mode() != 0o600 {
			t.Errorf("in the store it is %v (%v)", info.Mode(), err)
		}
	}
	if err := s.store.Sync(s.tree.Chunks()...); err != nil {
		t.Error(err)
	}
	if c, err := s.store.Verify(t.Context()); err != nil || len(c.Damaged) > 0 || c.Blobs != len(chunks) {
		t.Errorf("verified: %+v (%v)", c, err)
	}
}

// Whatever a program makes of its inputs, the store gives nobody anything else than what
// What was changed is found before another worker gets it, though its file has the old time,
// A file that is damaged in the store is noticed, as each chunk is.
func TestDamagedAssembledFile(t *testing.T) {
	s := newStation(t, seeds.One(t), map[string]string{"large": large(rand.New(rand.NewPCG(8, 8)))})
	if got := s.whole(); got != 4 {
		t.Fatalf("%d chunks are there", got)
	}
	f, err := os.OpenFile(s.assembled()[0], os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteAt([]byte("damaged"), 2*transfer.ChunkSize)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := s.tree.WriteTo(t.Context(), s.store, t.TempDir(), transfer.How{Give: true}); !errors.Is(err, transfer.ErrNotFound) {
		t.Errorf("it was given: %v", err)
	}
	if got := s.whole(); got != 3 {
		t.Errorf("%d chunks are there, want 3", got)
	}
	s.send(s.tree.DistinctChunks())
	s.give()
}

// Several files may have the same chunks, and a file one of them several times, or holes.
func TestFilesThatShareChunks(t *testing.T) {
	seed := seeds.One(t)
	rnd := rand.New(rand.NewPCG(seed, 4))
	a, b, zero := noise(rnd, transfer.ChunkSize), noise(rnd, transfer.ChunkSize), strings.Repeat("\x00", transfer.ChunkSize)
	s := newStation(t, seed, map[string]string{"x": a + b + a, "y": a + b + a, "z": zero + b + zero + noise(rnd, 10), "short": b + "end", "zero": zero + zero})
	for round := range 2 {
		work := s.give()
		if n := blocksOf(t, work+"/zero"); n > 8 {
			t.Errorf("round %d: zeros take %d blocks", round, n)
		}
		scribble(t, work+"/z", 2*transfer.ChunkSize+7) // where it has a hole
		s.store.TakeBack(work, nil)
		if got, all := s.whole(), len(s.tree.DistinctChunks()); got != all {
			t.Errorf("round %d: %d of %d chunks are there", round, got, all)
		}
	}
}

// scribble writes into a file, which looks as before.
func scribble(t *testing.T, name string, at int64) {
	t.Helper()
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteAt([]byte("scribble"), at)
		err = errors.Join(err, f.Close(), os.Chtimes(name, time.Time{}, info.ModTime()))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A fetch of more than the store may keep does not take much more than that.
func TestFetchKeepsToTheLimit(t *testing.T) {
	s := newStation(t, seeds.One(t), map[string]string{"large": noise(rand.New(rand.NewPCG(11, 11)), 8*transfer.ChunkSize)})
	s.store, s.dir = nil, t.TempDir()
	s.store = openDir(t, s.dir, 2*transfer.ChunkSize)
	done := s.store.Expect(&s.tree, s.rnd.IntN(2) == 0)
	for _, c := range s.tree.DistinctChunks() {
		data, err := s.from.Get(c.Hash, nil)
		if err = errors.Join(err, s.store.Put(c.Hash, data)); err != nil {
			t.Fatal(err)
		}
		for _, name := range s.assembled() {
			if n := blocksOf(t, name) * 512; n > 3*transfer.ChunkSize {
				t.Fatalf("it takes %d bytes", n)
			}
		}
	}
	done()
	other := noise(rand.New(rand.NewPCG(12, 12)), transfer.ChunkSize)
	for _, end := range []string{"x", "y"} {
		if err := s.store.Put(transfer.HashOf([]byte(other+end)), []byte(other+end)); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(s.assembled()); n != 0 {
		t.Errorf("%d files are left of which no chunk is", n)
	}
}

// A chunk that is evicted gives its room back, though its file has others, and the file goes
// with the last one.
func TestChunksOfAssembledFilesAreEvicted(t *testing.T) {
	s := newStation(t, seeds.One(t), map[string]string{"large": noise(rand.New(rand.NewPCG(2, 2)), 8*transfer.ChunkSize)})
	name := s.assembled()[0]
	chunks := s.tree.Entries[0].Chunks
	all := blocksOf(t, name)
	if u := s.store.Contents(); u.Bytes != 8*transfer.ChunkSize || u.Pinned != 0 {
		t.Errorf("it takes %+v", u)
	}
	s.store.Pin("half", chunks[:4]...)
	s.store.Prune()
	if err := s.tree.WriteTo(t.Context(), s.store, t.TempDir(), transfer.How{Give: true}); !errors.Is(err, transfer.ErrNotFound) {
		t.Errorf("a file that is not whole was given: %v", err)
	}
	s.store.Unpin("half")
	s.send(s.tree.DistinctChunks())
	s.store = openDir(t, s.dir, 4*transfer.ChunkSize)
	there := 0
	for _, h := range chunks {
		if s.store.Has(h) {
			there++
		}
	}
	if u := s.store.Contents(); there != 4 || u.Bytes != 4*transfer.ChunkSize {
		t.Errorf("%d chunks are left, %d bytes", there, u.Bytes)
	}
	if got := blocksOf(t, name); got > all/2+8 {
		t.Errorf("they take %d blocks of %d", got, all)
	}
	if got := s.whole(); got != there {
		t.Errorf("%d chunks can be read, of %d", got, there)
	}
	s.store.Pin("job", chunks...)
	s.send(s.tree.DistinctChunks())
	s.give()
	s.store.Unpin("job")
	s.store.Prune()
	if u := s.store.Contents(); u.Blobs != 0 || u.Bytes != 0 {
		t.Errorf("left: %+v", u)
	}
	if left, err := os.ReadDir(filepath.Join(s.dir, "files")); err != nil || len(left) != 0 {
		t.Errorf("%d notes are left (%v)", len(left), err)
	}
	s.send(s.tree.DistinctChunks())
	s.store.Prune()
	if n := len(s.assembled()); n != 0 {
		t.Errorf("%d files are left", n)
	}
}

// The next life knows what was in the store and what a worker had, and compares all of it;
// what it knows nothing of is removed.
func TestAssembledFilesOfAnEarlierLife(t *testing.T) {
	for name, c := range map[string]struct {
		change func(file string) error
		left   int
	}{
		"as it was": {func(string) error { return nil }, 4},
		"damaged": {func(p string) error {
			f, err := os.OpenFile(p, os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteAt([]byte("x"), 10)
			return errors.Join(err, f.Close())
		}, 3},
		"cut":  {func(p string) error { return os.Truncate(p, transfer.ChunkSize) }, 0},
		"gone": {os.Remove, 0},
		"a hole": {func(p string) error {
			f, err := os.OpenFile(p, os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			return errors.Join(syscall.Fallocate(int(f.Fd()), 3, transfer.ChunkSize, transfer.ChunkSize), f.Close())
		}, 3},
	} {
		for _, away := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, away %v", name, away), func(t *testing.T) {
				s := newStation(t, 1, map[string]string{"large": large(rand.New(rand.NewPCG(5, 5)))})
				file := s.assembled()[0]
				work := ""
				if away {
					work = s.give()
					file = work + "/large"
				}
				orphan := filepath.Join(s.dir, "assembled", "orphan")
				if err := errors.Join(c.change(file), os.WriteFile(orphan, nil, 0o600)); err != nil {
					t.Fatal(err)
				}
				s.store = openDir(t, s.dir, 0)
				if _, err := os.Stat(orphan); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("a file that nothing is known of: %v", err)
				}
				if got := s.whole(); got != c.left {
					t.Errorf("%d chunks are there, want %d", got, c.left)
				}
				if away {
					s.store.TakeBack(work, nil)
				}
				s.send(s.tree.DistinctChunks())
				if got := s.whole(); got != 4 {
					t.Errorf("%d chunks are there in the end", got)
				}
				s.give()
			})
		}
	}
}

// Files come and go while chunks are read, sent, checked and evicted: who reads gets the
// right bytes or hears that they are not there.
func TestAssembledFilesAmongMany(t *testing.T) {
	seed := seeds.One(t)
	rnd := rand.New(rand.NewPCG(seed, 6))
	a, b := large(rnd), large(rnd)
	s := newStation(t, seed, map[string]string{"a": a, "b": b, "c": a[:2*transfer.ChunkSize] + b[:10]})
	chunks := s.tree.DistinctChunks()
	works := t.TempDir()
	var wg sync.WaitGroup
	for g := range 2 {
		wg.Go(func() {
			for i := range 4 {
				work := filepath.Join(works, fmt.Sprint(g, "-", i), "work")
				done := s.store.Expect(&s.tree, true)
				for _, c := range chunks {
					if s.store.Has(c.Hash) || s.store.Keep(c.Hash, false) {
						continue
					}
					if data, err := s.from.Get(c.Hash, nil); err != nil || s.store.Put(c.Hash, data) != nil {
						t.Error("a chunk is not to be had, or cannot be put")
					}
				}
				done()
				err := s.tree.WriteTo(t.Context(), s.store, work, transfer.How{Give: true})
				if err != nil && !errors.Is(err, transfer.ErrNotFound) {
					t.Error(err)
				}
				if err == nil {
					sameTree(t, read(t, work), s.files)
				}
				s.store.TakeBack(work, nil)
			}
		})
	}
	for range 2 {
		wg.Go(func() {
			for range 15 {
				s.whole()
			}
		})
	}
	wg.Go(func() {
		for range 3 {
			if _, err := s.store.Verify(t.Context()); err != nil {
				t.Error(err)
			}
			s.store.Prune()
		}
	})
	wg.Wait()
	s.send(chunks)
	if got := s.whole(); got != len(chunks) {
		t.Errorf("%d of %d chunks are there in the end", got, len(chunks))
	}
	s.store.TakeBack(s.give(), nil)
}
