package transfer_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"zorilla/internal/seeds"
	"zorilla/transfer"
)

// A worker may change a file that it was given: the node finds out that it no longer has what
// was sent, and can be sent it again.
func TestFilesThatWorkersChange(t *testing.T) {
	seed := seeds.One(t)
	overwrite := func(p string) error {
		f, err := os.OpenFile(p, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteAt([]byte("changed"), transfer.ChunkSize+5)
		return errors.Join(err, f.Close())
	}
	for name, c := range map[string]struct {
		change func(p string) error
		left   int // chunks that are there
	}{
		"nothing": {func(string) error { return nil }, 4},
		"a byte":  {overwrite, 0},
		"a byte, and says that it did not": {func(p string) error {
			info, err := os.Stat(p)
			return errors.Join(err, overwrite(p), os.Chtimes(p, time.Time{}, info.ModTime()))
		}, 3},
		"its length":        {func(p string) error { return os.Truncate(p, 10) }, 0},
		"gone":              {os.Remove, 0},
		"its mode":          {func(p string) error { return os.Chmod(p, 0) }, 4},
		"another name, too": {func(p string) error { return os.Link(p, filepath.Dir(p)+"/other") }, 0},
		"moved":             {func(p string) error { return os.Rename(p, p+"2") }, 0},
		"a copy": {func(p string) error {
			b, err := os.ReadFile(p)
			return errors.Join(err, os.Remove(p), os.WriteFile(p, b, 0o600))
		}, 0},
		"a link": {func(p string) error {
			return errors.Join(os.Rename(p, p+"2"), os.Symlink(filepath.Base(p)+"2", p))
		}, 0},
		"a pipe":      {func(p string) error { return errors.Join(os.Remove(p), syscall.Mkfifo(p, 0o600)) }, 0},
		"a directory": {func(p string) error { return errors.Join(os.Remove(p), os.MkdirAll(p+"/x", 0o700)) }, 0},
		"its directory is a link": {func(p string) error {
			d := filepath.Dir(p)
			out := filepath.Dir(filepath.Dir(d)) + "/outside"
			return errors.Join(os.Rename(d, out), os.Symlink(out, d))
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStation(t, seed, map[string]string{"d/large": large(rand.New(rand.NewPCG(seed, 3)))})
			work := s.give()
			if err := c.change(work + "/d/large"); err != nil {
				t.Fatal(err)
			}
			s.whole() // while the worker has it
			s.store.TakeBack(work, nil)
			if got := s.whole(); got > c.left {
				t.Errorf("%d chunks are there, want at most %d", got, c.left)
			} else if name == "nothing" && got != c.left {
				t.Errorf("%d chunks are there, though nobody has touched them", got)
			}
			s.send(s.tree.DistinctChunks())
			if got := s.whole(); got != 4 {
				t.Errorf("%d chunks are there after all were sent again", got)
			}
			s.give()
		})
	}
}

// What a program has changed is not served while it has it, though its file looks as before.
func TestWorkersFilesAreComparedEachTime(t *testing.T) {
	s := newStation(t, seeds.One(t), map[string]string{"large": large(rand.New(rand.NewPCG(1, 1)))})
	work := s.give()
	first := s.tree.Entries[0].Chunks[0]
	if _, err := s.store.Get(first, nil); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(work+"/large", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	shared, err := syscall.Mmap(int(f.Fd()), 0, transfer.ChunkSize, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Munmap(shared)
	shared[7] ^= 1
	shared[7] ^= 1 // what follows leaves no trace any more
	if _, err := s.store.Get(first, nil); err != nil {
		t.Fatal(err)
	}
	before := stampOf(t, work+"/large")
	shared[7]++
	if now := stampOf(t, work+"/large"); now != before {
		t.Log("the kernel has noticed")
	}
	if _, err := s.store.Get(first, nil); !errors.Is(err, transfer.ErrNotFound) || !strings.Contains(err.Error(), "a worker here has changed it") {
		t.Errorf("got %v", err)
	}
}

// and is sent again.
func TestChangedFilesAreNotGivenAgain(t *testing.T) {
	s := newStation(t, seeds.One(t), map[string]string{"large": large(rand.New(rand.NewPCG(7, 7)))})
	work := s.give()
	info, err := os.Stat(work + "/large")
	if err == nil {
		err = os.WriteFile(work+"/large", []byte(strings.Repeat("x", int(info.Size()))), 0o644)
	}
	if err = errors.Join(err, os.Chtimes(work+"/large", time.Time{}, info.ModTime())); err != nil {
		t.Fatal(err)
	}
	s.store.TakeBack(work, nil)
	if err := s.tree.WriteTo(t.Context(), s.store, t.TempDir(), transfer.How{Give: true}); !errors.Is(err, transfer.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	s.send(s.tree.DistinctChunks())
	s.give()
}

// Who reads a chunk gets it, though its file goes to a worker just now, or comes back.
func TestReadersFollowFiles(t *testing.T) {
	s := newStation(t, seeds.One(t), map[string]string{"large": noise(rand.New(rand.NewPCG(9, 9)), transfer.ChunkSize+1)})
	last := s.tree.Entries[0].Chunks[1] // of a byte
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if b, err := s.store.Get(last, nil); err != nil || len(b) != 1 {
					t.Errorf("%d bytes (%v)", len(b), err)
					return
				}
			}
		})
	}
	for range 200 {
		work := filepath.Join(s.dir, "work")
		if err := s.tree.WriteTo(t.Context(), s.store, work, transfer.How{Give: true}); err != nil {
			t.Error(err)
		}
		s.store.TakeBack(work, nil)
	}
	close(done)
	wg.Wait()
	if got := s.whole(); got != 2 {
		t.Errorf("%d chunks are there", got)
	}
}

// What others need, too, is copied: a worker may write to what it gets.
func TestFilesThatOthersNeedStay(t *testing.T) {
	s := newStation(t, seeds.One(t), map[string]string{"large": large(rand.New(rand.NewPCG(13, 13)))})
	s.store.Pin("outputs of another job", s.tree.Chunks()...)
	s.store.Pin("job", s.tree.Chunks()...)
	work := s.give()
	scribble(t, work+"/large", 5)
	if n, got := len(s.assembled()), s.whole(); n != 1 || got != 4 {
		t.Errorf("%d files and %d chunks are left in the store", n, got)
	}
	for _, h := range s.tree.Chunks() {
		if !s.store.Has(h) {
			t.Errorf("%s does not count as held", h)
		}
	}
	s.store.TakeBack(work, nil)
	s.store.Unpin("outputs of another job")
	if name := s.assembled()[0]; inode(t, name) != inode(t, s.give()+"/large") {
		t.Error("it was copied though nobody else needs it")
	}
}

// What somebody can still write to is not taken back.
func TestFilesThatAreStillOpen(t *testing.T) {
	s := newStation(t, seeds.One(t), map[string]string{"large": large(rand.New(rand.NewPCG(14, 14)))})
	work := s.give()
	f, err := os.OpenFile(work+"/large", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s.store.TakeBack(work, nil)
	if n := len(s.assembled()); n != 0 || s.store.Has(s.tree.Chunks()[0]) {
		t.Errorf("%d files were taken back", n)
	}
	s.send(s.tree.DistinctChunks())
	s.give()
}

// All that a worker has changed is known when the next one is to get it, and is fetched at once.
func TestManyChangedChunks(t *testing.T) {
	s := newStation(t, seeds.One(t), map[string]string{"large": noise(rand.New(rand.NewPCG(15, 15)), 12*transfer.ChunkSize)})
	work := s.give()
	for i := range int64(12) {
		scribble(t, work+"/large", i*transfer.ChunkSize+9)
	}
	s.store.TakeBack(work, nil)
	if err := s.tree.WriteTo(t.Context(), s.store, t.TempDir(), transfer.How{Give: true}); !errors.Is(err, transfer.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	for _, h := range s.tree.Chunks() {
		if s.store.Has(h) {
			t.Errorf("%s counts as held", h)
		}
	}
	s.send(s.tree.DistinctChunks())
	s.give()
}

// A node that was started again while a worker had a file takes it back, too.
func TestFilesAreTakenBackInTheNextLife(t *testing.T) {
	s := newStation(t, seeds.One(t), map[string]string{"large": large(rand.New(rand.NewPCG(16, 16)))})
	work := s.give()
	node := inode(t, work+"/large")
	s.store = openDir(t, s.dir, 0)
	s.store.TakeBack(work, nil)
	if n := s.assembled(); len(n) != 1 || inode(t, n[0]) != node || s.whole() != 4 {
		t.Errorf("in the store: %v", n)
	}
	s.give()
}

// teller locates chunks in a store of this machine.
type teller struct {
	store transfer.PinStore
	asked int
}

func (l *teller) Locate(_ context.Context, content transfer.Hash) (transfer.File, error) {
	l.asked++
	return l.store.Locate(content), nil
}

// Who may read the files of a store gets large ones from there, and compares them.
func TestLargeFilesAreReadInTheStore(t *testing.T) {
	seed := seeds.One(t)
	s := newStation(t, seed, map[string]string{"large": large(rand.New(rand.NewPCG(seed, 2))), "small": "small"})
	nearby := func(store transfer.PinStore) (asked, got int) {
		from, to := &teller{store: store}, t.TempDir()
		var near, far, gets atomic.Int64
		get := transfer.Nearby(t.Context(), from, func(h transfer.Hash, buf []byte) ([]byte, error) {
			data, err := s.from.Get(h, buf)
			gets.Add(1)
			far.Add(int64(len(data)))
			return data, err
		}, s.tree.Entries, func(n int) { near.Add(int64(n)) })
		if err := s.tree.WriteTo(t.Context(), get, filepath.Join(to, "got"), transfer.How{}); err != nil {
			t.Fatal(err)
		}
		for name, want := range s.files {
			if b, err := os.ReadFile(filepath.Join(to, "got", name)); err != nil || string(b) != want {
				t.Errorf("%s is another one: %v", name, err)
			}
		}
		if sum := near.Load() + far.Load(); sum != s.tree.Size() {
			t.Errorf("told of %d bytes of %d", sum, s.tree.Size())
		}
		return from.asked, int(gets.Load())
	}
	const all = 5
	if asked, got := nearby(s.store); asked != 1 || got != 1 {
		t.Errorf("asked %d times, got %d chunks elsewhere: want the small file alone", asked, got)
	}
	if asked, got := nearby(s.from); asked != 1 || got != all {
		t.Errorf("asked %d times, got %d chunks of who has no files", asked, got)
	}
	some := *s
	some.dir = t.TempDir()
	some.store = openDir(t, some.dir, 0)
	some.send(s.tree.DistinctChunks()[1:])
	if _, got := nearby(some.store); got != 2 {
		t.Errorf("got %d chunks elsewhere, want the one that is not there and the small file", got)
	}
	name := s.assembled()[0]
	scribble(t, name, transfer.ChunkSize)
	if _, got := nearby(s.store); got != 2 {
		t.Errorf("got %d chunks elsewhere, want the damaged one and the small file", got)
	}
	if err := os.Truncate(name, 10); err != nil {
		t.Fatal(err)
	}
	if _, got := nearby(s.store); got != all {
		t.Errorf("got %d chunks elsewhere of a file of another size", got)
	}
	if err := errors.Join(os.Remove(name), syscall.Mkfifo(name, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, got := nearby(s.store); got != all {
		t.Errorf("got %d chunks elsewhere of a pipe", got)
	}
	s = newStation(t, seed, s.files)
	s.give()
	if asked, got := nearby(s.store); asked != 1 || got != all {
		t.Errorf("asked %d times, got %d chunks of a file that a worker has", asked, got)
	}
}
