package keep

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/wire"
	"zorilla/transfer"
	"zorilla/vicinity"
)

var (
	origin   = jobtest.Node(1)
	other    = jobtest.Node(2)
	stranger = jobtest.Node(3)
	job      = jobs.ID("k7f3q").At(origin)
)

// machine is a node with a disk, on which a Keeper can be opened again and again.
type machine struct {
	t      *testing.T
	dir    string
	store  *transfer.DirStore
	keeper *Keeper
	limit  int64
	full   error              // of the disk
	source *transfer.MemStore // what other nodes have
	before func() error       // is called before something is fetched; nil = nothing
	puts   func()             // is called before each blob that is; nil = nothing
	fetchs int
}

func newMachine(t *testing.T) *machine {
	m := &machine{t: t, dir: t.TempDir(), limit: 1 << 20, source: transfer.NewMemStore(1 << 20)}
	m.start()
	return m
}

// start begins another life of the node.
func (m *machine) start() {
	m.t.Helper()
	m.store = transfer.NewDirStore(filepath.Join(m.dir, "store"), 0)
	if err := m.store.Open(); err != nil {
		m.t.Fatal(err)
	}
	k, err := Open(Config{
		Dir: filepath.Join(m.dir, "kept"), Store: m.store, Fetch: m.fetch, Limit: func() int64 { return m.limit },
		Room: func(_, _ int64) error { return m.full }, Log: zerolog.Nop(),
	})
	if err != nil {
		m.t.Fatal(err)
	}
	m.keeper = k
	m.store.StartEviction()
}

func (m *machine) fetch(ctx context.Context, owner string, h transfer.Hash, _ []vicinity.ID, tell func(transfer.Stats)) (tree transfer.Manifest, s transfer.Stats, err error) {
	m.fetchs++
	if tell != nil {
		tell(s)
	}
	if m.before != nil {
		if err := m.before(); err != nil {
			return tree, s, err
		}
	}
	if err := ctx.Err(); err != nil {
		return tree, s, err
	}
	if tree, err = transfer.LoadManifest(m.source, h); err != nil {
		return tree, s, err
	}
	tree.Pin(m.store, owner, h)
	for _, c := range append([]transfer.Hash{h}, tree.Chunks()...) {
		if m.puts != nil {
			m.puts()
		}
		b, err := m.source.Get(c, nil)
		if err == nil {
			err = m.store.Put(c, b)
		}
		if err != nil {
			return tree, s, err
		}
	}
	return tree, s, nil
}

// tree puts files, each a path and its text, into a store, and returns their manifest and how many bytes they have.
func tree(t *testing.T, put transfer.Putter, files ...string) (h transfer.Hash, bytes int64) {
	t.Helper()
	var list []transfer.Entry
	for i := 0; i < len(files); i += 2 {
		b := []byte(files[i+1])
		c := transfer.HashOf(b)
		if err := put.Put(c, b); err != nil {
			t.Fatal(err)
		}
		list = append(list, transfer.Entry{Path: files[i], Size: int64(len(b)), Chunks: transfer.HashList{c}})
		bytes += int64(len(b))
	}
	m, err := transfer.NewManifest(list)
	if err == nil {
		h, err = transfer.SaveManifest(put, m)
	}
	if err != nil {
		t.Fatal(err)
	}
	return h, bytes
}

// made is a checkpoint that another node has made.
func (m *machine) made(rank, number int, text string) *wire.Kept {
	m.t.Helper()
	k := &wire.Kept{Rank: rank, Number: number, Holders: []vicinity.ID{other}}
	k.Manifest, k.Bytes = tree(m.t, m.source, "state/a", text, "state/b", text+text)
	return k
}

// keep has the node keep a checkpoint, which must not fail.
func (m *machine) keep(rank, number int, text string) *wire.Kept {
	m.t.Helper()
	k := m.made(rank, number, text)
	if err := m.keeper.Keep(context.Background(), time.Now(), other, &wire.Keep{Job: job, New: k}); err != nil {
		m.t.Fatal(err)
	}
	return k
}

// has reports whether all of a checkpoint stays in the store when all goes that nobody needs.
func (m *machine) has(k *wire.Kept) bool {
	m.store.Prune()
	tree, err := transfer.LoadManifest(m.store, k.Manifest)
	if err != nil {
		return false
	}
	for _, c := range tree.Chunks() {
		if !m.store.Has(c) {
			return false
		}
	}
	return true
}

// want fails the test unless the node keeps so many of some checkpoints: the first ones of them.
func (m *machine) want(what string, n int, list ...*wire.Kept) {
	m.t.Helper()
	bytes := int64(0)
	for i, k := range list {
		if got := m.has(k); got != (i < n) {
			m.t.Errorf("%s: rank %d, checkpoint %d is here: %v", what, k.Rank, k.Number, got)
		}
		if i < n {
			bytes += k.Bytes
		}
	}
	if got := m.keeper.Bytes(); got != bytes {
		m.t.Errorf("%s: %d bytes are kept, want %d", what, got, bytes)
	}
}

func TestKeptCheckpointOutlivesItsNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t)
		a, b := m.keep(0, 1, "a"), m.keep(3, 7, "b")
		for range 3 {
			m.want("after a start", 2, a, b)
			m.start()
		}
		// It is not fetched again.
		before := m.fetchs
		if err := m.keeper.Keep(t.Context(), time.Now(), other, &wire.Keep{Job: job, New: a}); err != nil || m.fetchs != before {
			t.Errorf("it was fetched again, %v", err)
		}
	})
}

func TestKeeperHasALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t)
		a, b := m.made(0, 1, "aaaa"), m.made(1, 1, "bbbb")
		m.limit = a.Bytes + b.Bytes - 1
		ask := func(k *wire.Kept) error {
			return m.keeper.Keep(t.Context(), time.Now(), other, &wire.Keep{Job: job, New: k})
		}
		m.before = func() error { // while the first one comes
			m.before = nil
			if err := ask(b); !errors.Is(err, jobs.ErrRefused) || !strings.Contains(err.Error(), "max-kept") {
				t.Errorf("beside one that comes: %v", err)
			}
			return nil
		}
		if err := ask(a); err != nil {
			t.Fatal(err)
		}
		if err := ask(b); !errors.Is(err, jobs.ErrRefused) {
			t.Errorf("beside one that is here: %v", err)
		}
		if err := m.keeper.Hold(time.Now(), other, job, b); !errors.Is(err, jobs.ErrRefused) {
			t.Errorf("one of this node: %v", err)
		}
		m.want("limited", 1, a, b)
		m.limit++
		m.full = errors.New("the disk is full")
		if err := ask(b); !errors.Is(err, jobs.ErrRefused) || !errors.Is(err, m.full) {
			t.Errorf("without room: %v", err)
		}
		m.full = nil
		if err := ask(b); err != nil {
			t.Error(err)
		}
		m.want("with room", 2, a, b)
	})
}

func TestKeeperLetsGoAfterALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t)
		a, b, c := m.keep(0, 1, "a"), m.keep(1, 1, "b"), m.keep(2, 1, "c")
		time.Sleep(wire.KeepLease / 2)
		if err := m.keeper.Keep(t.Context(), time.Now(), other, &wire.Keep{Job: job, Needed: []wire.Needed{{Rank: 0, Oldest: 1}}}); err != nil {
			t.Fatal(err)
		}
		if err := m.keeper.Keep(t.Context(), time.Now(), other, &wire.Keep{Job: job, New: b}); err != nil {
			t.Fatal(err)
		}
		if err := m.keeper.Keep(t.Context(), time.Now(), stranger, &wire.Keep{Job: job, Needed: []wire.Needed{{Rank: 2, Oldest: 1}}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(wire.KeepLease / 2)
		m.keeper.Expire(time.Now())
		m.want("with a lease", 3, a, b, c)
		time.Sleep(time.Second)
		m.keeper.Expire(time.Now())
		m.want("half a lease later", 2, a, b, c)
		m.start() // which knows of the leases
		time.Sleep(wire.KeepLease / 2)
		m.keeper.Expire(time.Now())
		m.want("after the last", 0, a, b, c)
		if list, err := os.ReadDir(filepath.Join(m.dir, "kept")); err != nil || len(list) > 0 {
			t.Errorf("%v is left, %v", list, err)
		}
	})
}

// While a node was away nobody could tell it what is needed, and its clock may have been wrong.
func TestLeasesAfterARestart(t *testing.T) {
	for _, c := range []struct {
		clock, least, most time.Duration
	}{{-48 * time.Hour, 2 * wire.RenewKeep, 2*wire.RenewKeep + time.Second}, {5 * time.Hour, wire.KeepLease, wire.KeepLease + time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			m := newMachine(t)
			k := m.made(0, 1, "a")
			if err := m.keeper.Keep(t.Context(), time.Now().Add(c.clock), other, &wire.Keep{Job: job, New: k}); err != nil {
				t.Fatal(err)
			}
			m.start()
			time.Sleep(c.least)
			m.keeper.Expire(time.Now())
			m.want(fmt.Sprint("its clock was ", c.clock, " off"), 1, k)
			time.Sleep(c.most - c.least)
			m.keeper.Expire(time.Now())
			m.want(fmt.Sprint("its clock was ", c.clock, " off, later"), 0, k)
		})
	}
}

func TestKeeperDropsWhatIsNotNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t)
		second := m.keep(0, 2, "two")
		third := m.keep(0, 3, "three")
		rank1 := m.keep(1, 1, "one")
		foreign := m.made(0, 1, "of another job")
		if err := m.keeper.Keep(t.Context(), time.Now(), other, &wire.Keep{Job: jobs.ID("zzzzz").At(other), New: foreign}); err != nil {
			t.Fatal(err)
		}
		tell := func(from vicinity.ID, k wire.Keep) error {
			k.Job = job
			return m.keeper.Keep(t.Context(), time.Now(), from, &k)
		}
		if err := tell(other, wire.Keep{Needed: []wire.Needed{{Rank: 0, Oldest: 3}}}); err != nil {
			t.Error(err)
		}
		m.want("from 3", 3, foreign, third, rank1, second)
		if err := tell(other, wire.Keep{All: true}); !errors.Is(err, jobs.ErrRefused) {
			t.Errorf("another than the origin says what is needed of all: %v", err)
		}
		m.want("said by another", 3, foreign, third, rank1, second)
		m.start() // it knows from its files which node asked
		if err := tell(stranger, wire.Keep{Needed: []wire.Needed{{Rank: 0, Oldest: 9}, {Rank: 1, Oldest: 9}}}); err != nil {
			t.Error(err)
		}
		m.want("said by a node that wanted neither kept", 3, foreign, third, rank1, second)
		fourth := m.made(0, 4, "four")
		if err := tell(other, wire.Keep{New: fourth, Needed: []wire.Needed{{Rank: 0, Oldest: 5}}}); err != nil {
			t.Error(err)
		}
		m.want("a new one, and those from 5", 3, foreign, fourth, rank1, third, second)
		if err := tell(origin, wire.Keep{Needed: []wire.Needed{{Rank: 1, Oldest: 1}}, All: true}); err != nil {
			t.Error(err)
		}
		m.want("one rank alone", 2, foreign, rank1, fourth, third, second)
		if err := tell(origin, wire.Keep{All: true}); err != nil {
			t.Error(err)
		}
		m.want("none", 1, foreign, rank1, fourth, third, second)
		m.start()
		m.want("after a start", 1, foreign, rank1, fourth, third, second)
	})
}

// Attempts that do not know of each other give the same number to different checkpoints.
func TestKeeperTellsAttemptsApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t)
		a, b := m.keep(0, 5, "of the first attempt"), m.keep(0, 5, "of the second")
		m.want("both", 2, a, b)
		m.start()
		m.want("both after a start", 2, a, b)
	})
}

func TestNothingIsLeftOfWhatCouldNotBeKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t)
		a := m.made(0, 1, "a")
		cause := errors.New("nobody answers")
		m.before = func() error { return cause }
		if err := m.keeper.Keep(t.Context(), time.Now(), other, &wire.Keep{Job: job, New: a}); !errors.Is(err, cause) {
			t.Errorf("not fetched: %v", err)
		}
		m.want("not fetched", 0, a)
		m.before = nil
		a.Bytes--
		if err := m.keeper.Keep(t.Context(), time.Now(), other, &wire.Keep{Job: job, New: a}); !errors.Is(err, jobs.ErrRefused) {
			t.Errorf("larger than announced: %v", err)
		}
		m.want("larger than announced", 0, a)
		if err := m.keeper.Hold(time.Now(), other, job, m.made(0, 2, "b")); err == nil {
			t.Error("it holds what is not in its store")
		}
		m.limit = a.Bytes + 1
		a.Bytes++
		if err := m.keeper.Keep(t.Context(), time.Now(), other, &wire.Keep{Job: job, New: a}); err != nil {
			t.Errorf("nothing comes any more, and there is no room: %v", err)
		}
	})
}

func TestTwoAskForTheSameAtOnce(t *testing.T) {
	for _, fails := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			m := newMachine(t)
			a := m.made(0, 1, "a")
			m.limit = a.Bytes
			cause := errors.New("who asks is gone")
			m.before = func() error {
				m.before = nil
				time.Sleep(time.Second)
				if fails {
					return cause
				}
				return nil
			}
			results := make(chan error, 3)
			ask := func(ctx context.Context) {
				results <- m.keeper.Keep(ctx, time.Now(), other, &wire.Keep{Job: job, New: a})
			}
			go ask(t.Context())
			synctest.Wait()
			go ask(t.Context())
			short, stop := context.WithTimeout(t.Context(), time.Millisecond)
			defer stop()
			ask(short)
			if err := <-results; !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("who waits no more: %v", err)
			}
			if err := errors.Join(<-results, <-results); errors.Is(err, cause) != fails || !fails && err != nil {
				t.Errorf("the first fails: %v: %v", fails, err)
			}
			if want := map[bool]int{false: 1, true: 2}[fails]; m.fetchs != want {
				t.Errorf("it was fetched %d times, want %d", m.fetchs, want)
			}
			m.want(fmt.Sprint("the first fails: ", fails), 1, a)
		})
	}
}

// What is on disk that no Keeper has written, or that was damaged, goes; the rest stays.
func TestKeeperGoesOnWithoutWhatIsDamaged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t)
		good := m.keep(0, 1, "good")
		damaged, lost := m.keep(1, 1, "damaged"), m.keep(2, 1, "lost")
		of := func(k *wire.Kept) string { return m.keeper.path(name{job, k.Rank, k.Number, k.Manifest}) }
		for _, bad := range []string{of(damaged), filepath.Join(filepath.Dir(of(good)), "0-1"), filepath.Join(filepath.Dir(of(good)), "0-2-"), of(good) + "x"} {
			if err := os.WriteFile(bad, []byte{0xc1}, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		m.store.Discard((name{job, lost.Rank, lost.Number, lost.Manifest}).pin())
		m.start()
		m.want("with damage", 1, good, damaged, lost)
		if list, err := os.ReadDir(filepath.Dir(of(good))); err != nil || len(list) != 1 {
			t.Errorf("%v is left, %v", list, err)
		}
	})
}
