package agent_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/journal"
	"zorilla/testnet"
)

// keepsake prints a text and leaves it in a file.
func keepsake(_ context.Context, w *testnet.FakeWorker) int {
	fmt.Fprintln(w.Stdout, w.Args[1])
	if err := os.WriteFile(filepath.Join(w.Dir, "left"), []byte(w.Args[1]), 0o644); err != nil {
		return 3
	}
	return 0
}

// one submits a job at node 0 that prints a line and leaves a file, and waits for
// its end.
func (g *grid) one(text string) jobs.ID {
	g.t.Helper()
	id := g.submit(0, jobs.Spec{Name: "say " + text, Args: []string{"keepsake", text}, Min: 1, Max: 1, Outputs: []string{"left"}})
	if st := g.await(0, id, time.Minute, final); st.State != jobs.Completed || len(st.Outputs) != 1 {
		g.t.Fatalf("%s is %s: %s, with %d outputs", id, st.State, st.Reason, len(st.Outputs))
	}
	return id
}

// wantForgotten checks all that is said of a job of node 0 whose results are not
// kept.
func (g *grid) wantForgotten(id jobs.ID, state jobs.State, code int) {
	g.t.Helper()
	s := g.node(0).service
	st, _, err := s.Status(id)
	if err != nil || st.State != state || st.ExitCode != code || st.Forgotten.IsZero() || !st.Brief || st.Ended.IsZero() || st.Size != 0 {
		g.t.Fatalf("%s is %+v, %v", id, st, err)
	}
	if st, _, err := s.Await(g.t.Context(), id, 0); err != nil || st.ExitCode != code {
		g.t.Errorf("waiting for %s: %+v, %v", id, st, err)
	}
	want := fmt.Sprintf("job %s ended with %d; its output was forgotten on ", id.Short(), code)
	read := s.Output(g.t.Context(), id, jobs.OutputQuery{Rank: -1, Follow: true}, func(jobs.Output) error { return errors.New("there is output") })
	_, explain := s.Explain(id)
	_, tasks := s.Tasks(id, jobs.TaskQuery{})
	for what, err := range map[string]error{"output": read, "explain": explain, "tasks": tasks, "files": st.Gone()} {
		if !errors.Is(err, jobs.ErrForgotten) || !strings.HasPrefix(err.Error(), want) {
			g.t.Errorf("%s of %s: got %v, want %s...", what, id, err, want)
		}
	}
	if err := s.Cancel(id, "too late"); err != nil {
		g.t.Errorf("cancelling %s: %v", id, err)
	}
	if !s.Owns(id) {
		g.t.Errorf("%s is not known", id)
	}
	if left, _ := filepath.Glob(filepath.Join(g.node(0).dir, "jobs", string(id)+"*")); len(left) > 0 {
		g.t.Errorf("%s left %v", id, left)
	}
}

// wantWhole checks that a job of node 0 is kept with all it had.
func (g *grid) wantWhole(id jobs.ID, text string) {
	g.t.Helper()
	st, _, err := g.node(0).service.Status(id)
	if err != nil || st.State != jobs.Completed || st.Gone() != nil || st.Brief || len(st.Outputs) != 1 || len(st.Warnings) > 0 || st.Size <= int64(len(text)) {
		g.t.Fatalf("%s is %+v, %v", id, st, err)
	}
	if got := g.output(0, id, 0); got != text+"\n" {
		g.t.Errorf("%s wrote %q, want %q", id, got, text)
	}
	if !g.node(0).store.Has(st.Outputs[0].Manifest) {
		g.t.Errorf("the files of %s are gone", id)
	}
}

// noJobs is the journal's and the disk's view of node 0: nothing is left.
func (g *grid) noJobs() {
	g.t.Helper()
	if err := g.node(0).log.Load(func(e journal.Entry) error { return errors.New(e.Key) }); err != nil {
		g.t.Errorf("the journal holds %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(g.node(0).dir, "jobs", "*")); len(left) > 0 {
		g.t.Errorf("left is %v", left)
	}
	if u := g.node(0).store.Usage(); u.Blobs != 0 {
		g.t.Errorf("the store holds %+v", u)
	}
}

// A result is there after any number of later jobs, also of those that are not in
// memory any more.
func TestResultsOutliveLaterJobs(t *testing.T) {
	bubble(t, 1, 50, func(t *testing.T, g *grid) {
		first := g.one("first")
		failed := g.submit(0, jobs.Spec{Args: []string{"fail", "3"}, Min: 1, Max: 1})
		g.await(0, failed, time.Minute, final)
		const later = 2300
		for range later - 1 { // they end without a worker
			g.submit(0, jobs.Spec{Args: []string{"echo"}, Min: 1, Max: 1, After: []jobs.Dependency{{Kind: jobs.AfterOK, Job: failed}}})
		}
		time.Sleep(time.Minute)
		last := g.submit(0, jobs.Spec{Args: []string{"echo"}, Min: 1, Max: 1})
		g.await(0, last, time.Minute, final)
		for life := range 2 {
			g.wantWhole(first, "first")
			if st, _, err := g.node(0).service.Status(failed); err != nil || st.ExitCode != 3 || st.State != jobs.Failed || len(st.Workers) != 1 {
				t.Errorf("life %d: %+v, %v", life, st, err)
			}
			all, some := g.node(0).service.List(-1), g.node(0).service.List(10)
			if len(all) != later+2 || len(some) != 10 || some[0].ID != last || all[0].ID != last || !all[later+1].Brief || all[0].Brief || all[later+1].Spec.Name != "say first" {
				t.Errorf("life %d: lists of %d and %d jobs", life, len(all), len(some))
			}
			if id, err := g.node(0).service.Find(string(first[:4])); err != nil || id != first {
				t.Errorf("life %d: found %q, %v", life, id, err)
			}
			if id, err := g.node(0).service.Find("last"); err != nil || id != last {
				t.Errorf("life %d: last is %q, %v, want %s", life, id, err, last)
			}
			g.node(0).stop()
			g.node(0).start()
		}
	})
}

func TestForgottenResults(t *testing.T) {
	bubble(t, 1, 2, func(t *testing.T, g *grid) {
		n := g.node(0)
		first := g.one("one")
		failed := g.submit(0, jobs.Spec{Args: []string{"fail", "3"}, Min: 2, Max: 2})
		g.await(0, failed, time.Minute, final)
		time.Sleep(6 * 24 * time.Hour)
		second := g.one("two")
		g.wantWhole(first, "one")
		time.Sleep(25 * time.Hour)
		g.wantForgotten(first, jobs.Completed, 0)
		g.wantForgotten(failed, jobs.Failed, 3)
		g.wantWhole(second, "two")
		for kind, want := range map[jobs.DependencyKind]jobs.State{jobs.AfterOK: jobs.Failed, jobs.AfterNotOK: jobs.Completed, jobs.AfterAny: jobs.Completed} {
			id := g.submit(0, jobs.Spec{Args: []string{"echo"}, Min: 1, Max: 1, After: []jobs.Dependency{{Kind: kind, Job: failed}}})
			if st := g.await(0, id, time.Minute, final); st.State != want {
				t.Errorf("after a forgotten job that failed, %s: %s (%s)", kind, st.State, st.Reason)
			}
		}
		n.stop()
		n.start()
		g.wantForgotten(first, jobs.Completed, 0)
		g.wantForgotten(failed, jobs.Failed, 3)
		g.wantWhole(second, "two")
		if r := n.service.Results(); r.Jobs != 6 || r.Forgotten != 2 || r.Bytes < 6 {
			t.Errorf("%+v", r)
		}
		time.Sleep(71 * 24 * time.Hour)
		if list := n.service.List(-1); len(list) != 0 {
			t.Errorf("%d records are left after ten weeks", len(list))
		}
		if _, _, err := n.service.Status(first); !errors.Is(err, jobs.ErrNotFound) {
			t.Errorf("got %v", err)
		}
		g.noJobs()
	})
}

func TestForgottenByRequest(t *testing.T) {
	bubble(t, 1, 2, func(t *testing.T, g *grid) {
		s := g.node(0).service
		older, id := g.one("older"), g.one("text")
		runs := g.submit(0, jobs.Spec{Args: []string{"sleep", "100"}, Min: 1, Max: 1})
		g.await(0, runs, time.Minute, func(st jobs.Status) bool { return st.State == jobs.Running })
		err := s.Remove(runs)
		if want := fmt.Sprintf("refused: job %s is RUNNING: 'zorilla cancel %s' ends it", runs.Short(), runs.Short()); !errors.Is(err, jobs.ErrRefused) || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		if err := s.Cancel(runs, "enough"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute) // its worker is gone
		for _, id := range []jobs.ID{runs, id} {
			if err := s.Remove(id); err != nil {
				t.Error(err)
			}
			if _, _, err := s.Status(id); !errors.Is(err, jobs.ErrNotFound) {
				t.Errorf("%s after its removal: %v", id, err)
			}
			if err := s.Remove(id); !errors.Is(err, jobs.ErrNotFound) {
				t.Errorf("%s is removed again: %v", id, err)
			}
		}
		if last, err := s.Find("last"); err != nil || last != older {
			t.Errorf("last is %s, %v", last, err)
		}
		g.wantWhole(older, "older")
		g.node(0).stop()
		g.node(0).start()
		if list := g.node(0).service.List(-1); len(list) != 1 {
			t.Errorf("%d jobs are left", len(list))
		}
		if err := g.node(0).service.Remove(older); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		g.noJobs()
	})
}

func TestForgottenForRoom(t *testing.T) {
	bubble(t, 1, 2, func(t *testing.T, g *grid) {
		n := g.node(0)
		n.stop()
		n.keepOutputs = 200 // of more than 50 bytes each
		n.start()
		var ids []jobs.ID
		for i := range 4 {
			ids = append(ids, g.one(fmt.Sprint("text number ", i)))
			time.Sleep(time.Minute)
		}
		if r := n.service.Results(); !r.Full || r.Forgotten != 0 || r.Bytes <= r.Limit {
			t.Errorf("nobody has read anything: %+v", r)
		}
		n.service.Read(ids[1])
		time.Sleep(time.Hour + 2*time.Minute)
		g.wantForgotten(ids[1], jobs.Completed, 0)
		for _, i := range []int{0, 2, 3} {
			g.wantWhole(ids[i], fmt.Sprint("text number ", i))
		}
		if r := n.service.Results(); r.Full || r.Forgotten != 1 {
			t.Errorf("%+v", r)
		}
	})
}

// The journal cannot be written until a result is removed, which makes room.
func TestForgetOnAFullDisk(t *testing.T) {
	bubble(t, 1, 2, func(t *testing.T, g *grid) {
		n := g.node(0)
		var disk *faulty
		n.stop()
		n.wrap = func(m *journal.Memory) journal.Journal { disk = newFaulty(m); return disk }
		n.start()
		first, second := g.one("one"), g.one("two")
		disk.mu.Lock()
		disk.full = true
		disk.mu.Unlock()
		if _, err := n.service.Submit(t.Context(), jobs.Spec{Args: []string{"echo"}, Min: 1, Max: 1, Slots: 1}); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("submitted on a full disk: %v", err)
		}
		before := n.store.Usage().Bytes
		removed := make(chan error, 1)
		go func() { removed <- n.service.Remove(first) }()
		select {
		case err := <-removed:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(time.Second):
			t.Error("a job cannot be removed, since the disk has no room to write that down")
		}
		if left, _ := filepath.Glob(filepath.Join(n.dir, "jobs", string(first)+"*", "*")); len(left) > 0 || n.store.Usage().Bytes >= before {
			t.Errorf("no room was made: %v, %d of %d bytes in the store", left, n.store.Usage().Bytes, before)
		}
		n.crash() // before the journal could be written
		n.wrap = nil
		n.start()
		time.Sleep(time.Second)
		if _, _, err := n.service.Status(first); !errors.Is(err, jobs.ErrNotFound) {
			t.Errorf("after a restart: %v", err)
		}
		g.wantWhole(second, "two")
		if err := n.service.Remove(second); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		g.noJobs()
	})
}

// The origin dies between any two steps of forgetting, and within them, and is
// started again: the job is whole or forgotten, and no file is left of one that is.
func TestOriginDiesWhileItForgets(t *testing.T) {
	for _, remove := range []bool{false, true} {
		for _, whole := range []bool{false, true} { // of a step, or part of it
			for steps := range 5 {
				t.Run(fmt.Sprintf("remove %v, %d steps, all of the last %v", remove, steps, whole), func(t *testing.T) {
					bubble(t, 1, 2, func(t *testing.T, g *grid) { dieWhileForgetting(t, g, remove, steps, whole) })
				})
			}
		}
	}
}

func dieWhileForgetting(t *testing.T, g *grid, remove bool, steps int, whole bool) {
	n := g.node(0)
	id, other := g.one("text"), g.one("other")
	if err := os.WriteFile(filepath.Join(n.dir, "jobs", string(id), "stdin"), []byte("input"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(n.dir, "jobs", string(id))
	erase := n.service.Erasing(id, remove)
	for i := range steps {
		if !whole && i == 1 && steps == 2 { // one file of two
			if files, _ := filepath.Glob(filepath.Join(dir+".*", "output")); len(files) != 1 || os.Remove(files[0]) != nil {
				t.Errorf("there is %v", files)
			}
			break
		}
		if i < len(erase) {
			if err := erase[i](); err != nil {
				t.Fatal(err)
			}
		}
	}
	n.crash()
	n.start()
	time.Sleep(time.Second)
	g.wantWhole(other, "other")
	switch {
	case steps == 0:
		g.wantWhole(id, "text")
	case remove:
		if _, _, err := n.service.Status(id); !errors.Is(err, jobs.ErrNotFound) {
			t.Errorf("got %v", err)
		}
		if left, _ := filepath.Glob(dir + "*"); len(left) > 0 {
			t.Errorf("left is %v", left)
		}
	default:
		g.wantForgotten(id, jobs.Completed, 0)
		n.stop()
		n.start()
		g.wantForgotten(id, jobs.Completed, 0)
	}
	for _, id := range []jobs.ID{id, other} {
		if err := n.service.Remove(id); err != nil && !errors.Is(err, jobs.ErrNotFound) {
			t.Error(err)
		}
	}
	time.Sleep(time.Second)
	if left, _ := filepath.Glob(filepath.Join(n.dir, "jobs", "*")); len(left) > 0 {
		t.Errorf("at the end there is %v", left)
	}
}

// Delete and Replace wait for room, too.
func (f *faulty) Delete(key string, done func(error)) {
	f.whenThereIsRoom(func() { f.Memory.Delete(key, done) })
}

func (f *faulty) Replace(e journal.Entry, done func(error)) {
	f.whenThereIsRoom(func() { f.Memory.Replace(e, done) })
}

func (f *faulty) whenThereIsRoom(write func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.full {
		f.held = append(f.held, write)
	} else {
		write()
	}
}
