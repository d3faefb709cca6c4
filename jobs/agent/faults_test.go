package agent_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/journal"
	"zorilla/transfer"
)

// faulty is a journal on a disk that can be full, or of a machine that dies at
// a certain write.
type faulty struct {
	*journal.Memory

	mu     sync.Mutex // guards what follows
	full   bool
	held   []func()
	writes int
	dieAt  int           // the number of a write, from 1; 0 = never
	after  bool          // it dies when the write is done, else before
	dead   chan struct{} // closed then
}

func newFaulty(m *journal.Memory) *faulty { return &faulty{Memory: m, dead: make(chan struct{})} }

func (f *faulty) Append(entries []journal.Entry, done func(error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writes++
	last := f.writes == f.dieAt
	switch {
	case f.dieAt > 0 && f.writes > f.dieAt, last && !f.after: // nobody sees this node again
		if last {
			close(f.dead)
		}
		return
	case last:
		f.Memory.Append(entries, func(error) { close(f.dead) })
	case f.full:
		f.held = append(f.held, func() { f.Memory.Append(entries, done) })
	default:
		f.Memory.Append(entries, done)
	}
}

// Stalled is as that of a real journal.
func (f *faulty) Stalled() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.full {
		return syscall.ENOSPC
	}
	return nil
}

func (f *faulty) makeRoom() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.full = false
	for _, h := range f.held {
		h()
	}
	f.held = nil
}

func TestFullDiskUnderTheJournal(t *testing.T) {
	bubble(t, 2, 1, func(t *testing.T, g *grid) {
		disk := newFaulty(g.node(0).log)
		g.node(0).stop()
		g.node(0).wrap = func(m *journal.Memory) journal.Journal { disk.Memory = m; return disk }
		g.node(0).start()
		id := g.submit(0, jobs.Spec{Args: ticking(5), Min: 2, Max: 2, Outputs: []string{"left"}})
		g.await(0, id, time.Minute, func(st jobs.Status) bool { return st.State == jobs.Running })
		disk.mu.Lock()
		disk.full = true
		disk.mu.Unlock()
		time.Sleep(time.Minute)
		st, _, err := g.node(0).service.Status(id)
		e, explained := g.node(0).service.Explain(id)
		if err != nil || explained != nil || st.State.Final() || !strings.Contains(st.Reason, "disk of its origin is full") || e.Summary != st.Reason {
			t.Errorf("the job is %s (%s), explained by %q; %v, %v", st.State, st.Reason, e.Summary, err, explained)
		}
		wantRow(t, "the journal of the origin", seen(st))
		if _, err := g.node(0).service.Submit(t.Context(), jobs.Spec{Args: []string{"echo"}, Min: 1, Max: 1, Slots: 1}); err == nil {
			t.Error("a job was accepted that cannot be written down")
		}
		disk.makeRoom()
		g.sameAttempts(0, id, 5)
	})
}

// The origin dies at every write of its journal, before and after it, and is
// started again with what it had written: submitted once more with its key, the
// job is there once, nothing that finished runs twice, and no byte of output is
// missing or doubled.
func TestOriginDiesAtEveryWrite(t *testing.T) {
	for _, after := range []bool{false, true} {
		for at := 1; ; at++ {
			if !dieAt(t, at, after) {
				if at < 8 {
					t.Errorf("the job takes %d writes, want 8 or more", at)
				}
				break
			}
		}
	}
}

// dieAt reports whether there is such a write.
func dieAt(t *testing.T, at int, after bool) (died bool) {
	bubble(t, 3, 2, func(t *testing.T, g *grid) {
		origin := g.node(0)
		var disk *faulty
		origin.stop()
		origin.wrap = func(m *journal.Memory) journal.Journal {
			if disk == nil {
				disk = newFaulty(m)
				disk.dieAt, disk.after = at, after
				return disk
			}
			return m
		}
		origin.start()
		const seconds = 10
		spec := jobs.Spec{Key: "once", Args: ticking(seconds), Min: 5, Max: 5, Slots: 1, Outputs: []string{"left"}}
		var mu sync.Mutex
		var id jobs.ID
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			got, _ := origin.service.Submit(ctx, spec)
			mu.Lock()
			defer mu.Unlock()
			id = got
		}()
		select {
		case <-disk.dead:
			died = true
			origin.crash()
			time.Sleep(2 * time.Second)
			origin.start()
		case <-time.After(2 * time.Minute):
		}
		cancel()
		synctest.Wait()
		again := g.submit(0, spec)
		all := origin.service.List(-1)
		mu.Lock()
		submitted := id
		mu.Unlock()
		if len(all) != 1 || all[0].ID != again || submitted != "" && again != submitted {
			t.Fatalf("death at write %d (after it: %v): submitted %q and then %q, there is %+v", at, after, submitted, again, all)
		}
		st := g.await(0, again, 5*time.Minute, final)
		if st.State != jobs.Completed {
			t.Fatalf("death at write %d (after it: %v): the job is %s: %s", at, after, st.State, st.Reason)
		}
		for _, w := range st.Workers {
			if got := g.output(0, st.ID, w.Rank); got != ticks(w.Rank, seconds) {
				t.Errorf("death at write %d (after it: %v): rank %d, attempt %d wrote %q", at, after, w.Rank, w.Attempt, got)
			}
		}
		if len(st.Outputs) != 5 {
			t.Errorf("death at write %d (after it: %v): %d ranks left a file", at, after, len(st.Outputs))
		}
		started := 0
		for i := range 3 {
			started += g.node(i).runner.Started()
		}
		if started != 5 {
			t.Errorf("death at write %d (after it: %v): %d workers were started, want 5", at, after, started)
		}
	})
	return died
}

func TestBrokenFilesOfOneJobHarmNoOther(t *testing.T) {
	bubble(t, 1, 2, func(t *testing.T, g *grid) {
		n := g.node(0)
		var ids []jobs.ID
		for range 4 {
			id := g.submit(0, jobs.Spec{Args: []string{"echo", "hello"}, Min: 2, Max: 2})
			g.await(0, id, time.Minute, final)
			ids = append(ids, id)
		}
		n.stop()
		path := func(i int) string { return filepath.Join(n.dir, "jobs", string(ids[i]), "output") }
		whole, err := os.ReadFile(path(0))
		if err != nil {
			t.Fatal(err)
		}
		spoiled := slices.Clone(whole)
		spoiled[29+8] = 7 // the stream of the first frame after that with a time
		if err := os.WriteFile(path(0), spoiled, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path(1), int64(len(whole)/2+1)); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		n.wrap = func(m *journal.Memory) journal.Journal {
			m.Append([]journal.Entry{{Key: string(ids[2]), Data: []byte("half an ent")}}, func(err error) { done <- err })
			return m
		}
		n.start()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		n.wrap = nil
		n.stop()
		n.start()
		for i, want := range []string{": standard output: bytes 0 to 5", ": standard output: bytes 0 to 5", "an entry cannot be read", ""} {
			st, _, err := n.service.Status(ids[i])
			told := strings.Join(append(st.Warnings, st.Damaged...), "; ") + st.Broken
			if err != nil || st.State != jobs.Completed || st.ExitCode != 0 || !strings.Contains(told, want) || (want == "") != (told == "") {
				t.Errorf("job %d is %s with %q, %v, want %q", i, st.State, told, err, want)
			}
			err = n.service.Output(t.Context(), ids[i], jobs.OutputQuery{Rank: -1}, func(jobs.Output) error { return nil })
			if errors.Is(err, jobs.ErrDamaged) != (i < 3) || i < 3 && !strings.HasSuffix(err.Error(), want) {
				t.Errorf("the output of job %d: %v", i, err)
			}
		}
		if got := g.output(0, ids[3], 1); got != "hello\n" {
			t.Errorf("the sound job wrote %q", got)
		}
		if st := g.await(0, g.submit(0, jobs.Spec{Args: []string{"echo"}, Min: 1, Max: 1}), time.Minute, final); st.State != jobs.Completed {
			t.Errorf("the next job is %s: %s", st.State, st.Reason)
		}
	})
}

// meter is a store that somebody looks through, and limp a journal likewise.
type meter struct {
	transfer.PinStore
	synced atomic.Int64
}

func (m *meter) Sync(hashes ...transfer.Hash) error {
	m.synced.Add(int64(len(hashes)))
	return m.PinStore.Sync(hashes...)
}

type plainStore struct{ transfer.PinStore }

type plainJournal struct{ journal.Journal }

// Who wraps a store or a journal does not turn off what makes them durable.
func TestDecoratorsDoNotTurnDurabilityOff(t *testing.T) {
	bubble(t, 2, 1, func(t *testing.T, g *grid) {
		count := &meter{PinStore: g.node(0).store}
		disk := newFaulty(g.node(0).log)
		g.node(0).stop()
		g.node(0).wrapStore = func(transfer.PinStore) transfer.PinStore { return plainStore{count} }
		g.node(0).wrap = func(m *journal.Memory) journal.Journal { disk.Memory = m; return plainJournal{disk} }
		g.node(0).start()
		spec := jobs.Spec{Args: []string{"tick", "1"}, Min: 1, Max: 1, Slots: 1, Outputs: []string{"left"}}
		if st := g.await(0, g.submit(0, spec), time.Minute, final); st.State != jobs.Completed || count.synced.Load() == 0 {
			t.Errorf("the job is %s, %d blobs of its outputs were synced", st.State, count.synced.Load())
		}
		disk.full = true
		if _, err := g.node(0).service.Submit(t.Context(), spec); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("submission to a full disk: got %v", err)
		}
	})
}

// spoilt is a journal on a disk that cannot be written from some time on, though it is not full.
type spoilt struct {
	journal.Journal
	fails atomic.Bool
}

func (s *spoilt) Append(entries []journal.Entry, done func(error)) {
	if s.fails.Load() {
		go done(syscall.EIO)
		return
	}
	s.Journal.Append(entries, done)
}

// A node that cannot write its journal stops, and says why; its jobs go on when it is started again.
func TestNodeStopsWhenItsJournalFails(t *testing.T) {
	bubble(t, 2, 1, func(t *testing.T, g *grid) {
		disk, origin := &spoilt{}, g.node(0)
		origin.stop()
		origin.wrap = func(m *journal.Memory) journal.Journal { disk.Journal = m; return disk }
		origin.start()
		id := g.submit(0, jobs.Spec{Args: ticking(20), Min: 2, Max: 2, Outputs: []string{"left"}})
		g.await(0, id, time.Minute, func(st jobs.Status) bool { return st.State == jobs.Running })
		disk.fails.Store(true)
		select {
		case err := <-origin.done:
			if !errors.Is(err, syscall.EIO) || !strings.HasPrefix(err.Error(), "write the journal: ") {
				t.Errorf("the node stops with %v", err)
			}
			origin.done <- nil
		case <-time.After(time.Minute):
			t.Error("the node runs on for a minute")
		}
		origin.stop()
		disk.fails.Store(false)
		origin.start()
		g.sameAttempts(0, id, 20)
	})
}
