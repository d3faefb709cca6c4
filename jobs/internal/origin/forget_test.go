package origin_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/journal"
)

// wantForgotten checks all that is said of a job whose results are not
// kept.
func (h *home) wantForgotten(id jobs.ID, state jobs.State, code int) {
	h.t.Helper()
	st, _, err := h.Status(id)
	if err != nil || st.State != state || st.ExitCode != code || st.Forgotten.IsZero() || !st.Brief || st.Ended.IsZero() || st.Size != 0 {
		h.t.Fatalf("%s is %+v, %v", id, st, err)
	}
	if st, _, err := h.Await(h.t.Context(), id, 0); err != nil || st.ExitCode != code {
		h.t.Errorf("waiting for %s: %+v, %v", id, st, err)
	}
	want := fmt.Sprintf("job %s ended with %d; its output was forgotten on ", id.Short(), code)
	read := h.Output(h.t.Context(), id, jobs.OutputQuery{Rank: -1, Follow: true}, func(jobs.Output) error { return errors.New("there is output") })
	_, explain := h.Explain(id)
	_, tasks := h.Tasks(id, jobs.TaskQuery{})
	for what, err := range map[string]error{"output": read, "explain": explain, "tasks": tasks, "files": st.Gone()} {
		if !errors.Is(err, jobs.ErrForgotten) || !strings.HasPrefix(err.Error(), want) {
			h.t.Errorf("%s of %s: got %v, want %s...", what, id, err, want)
		}
	}
	if err := h.Cancel(id, "too late", true); err != nil {
		h.t.Errorf("cancelling %s: %v", id, err)
	}
	if !h.Owns(id) {
		h.t.Errorf("%s is not known", id)
	}
	if left, _ := filepath.Glob(filepath.Join(h.dir, "jobs", string(id)+"*")); len(left) > 0 {
		h.t.Errorf("%s left %v", id, left)
	}
}

// wantWhole checks that a job is kept with all it had.
func (h *home) wantWhole(id jobs.ID, text string) {
	h.t.Helper()
	st, _, err := h.Status(id)
	if err != nil || st.State != jobs.Completed || st.Gone() != nil || st.Brief || len(st.Outputs) != 1 || len(st.Warnings) > 0 || st.Size <= int64(len(text)) {
		h.t.Fatalf("%s is %+v, %v", id, st, err)
	}
	if got := h.printed(id, 0); got != text+"\n" {
		h.t.Errorf("%s wrote %q, want %q", id, got, text)
	}
	if !h.store.Has(st.Outputs[0].Manifest) {
		h.t.Errorf("the files of %s are gone", id)
	}
}

// noJobs is the journal's and the disk's view: nothing is left.
func (h *home) noJobs() {
	h.t.Helper()
	if err := h.log.Load(func(e journal.Entry) error { return errors.New(e.Key) }); err != nil {
		h.t.Errorf("the journal holds %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(h.dir, "jobs", "*")); len(left) > 0 {
		h.t.Errorf("left is %v", left)
	}
	if u := h.store.Usage(); u.Blobs != 0 {
		h.t.Errorf("the store holds %+v", u)
	}
}

// A result is there after any number of later jobs, also of those that are not in
// memory any more.
func TestResultsOutliveLaterJobs(t *testing.T) {
	atHome(t, func(t *testing.T, h *home) {
		first := h.one("first")
		failed := h.submit(jobs.Spec{Args: []string{"fail", "3"}})
		h.await(failed)
		const later = 2300
		for range later - 1 { // they end without a worker
			h.submit(jobs.Spec{Args: []string{"echo"}, After: []jobs.Dependency{{Kind: jobs.AfterOK, Job: failed}}})
		}
		time.Sleep(time.Minute)
		last := h.submit(jobs.Spec{Args: []string{"echo"}})
		h.await(last)
		for life := range 2 {
			h.wantWhole(first, "first")
			if st, _, err := h.Status(failed); err != nil || st.ExitCode != 3 || st.State != jobs.Failed || len(st.Workers) != 1 {
				t.Errorf("life %d: %+v, %v", life, st, err)
			}
			all, some := h.List(-1), h.List(10)
			if len(all) != later+2 || len(some) != 10 || some[0].ID != last || all[0].ID != last || !all[later+1].Brief || all[0].Brief || all[later+1].Spec.Name != "say first" {
				t.Errorf("life %d: lists of %d and %d jobs", life, len(all), len(some))
			}
			if id, err := h.Find(string(first[:4])); err != nil || id != first {
				t.Errorf("life %d: found %q, %v", life, id, err)
			}
			if id, err := h.Find("last"); err != nil || id != last {
				t.Errorf("life %d: last is %q, %v, want %s", life, id, err, last)
			}
			h.stop()
			h.start()
		}
	})
}

func TestForgottenResults(t *testing.T) {
	atHome(t, func(t *testing.T, h *home) {
		first := h.one("one")
		failed := h.submit(jobs.Spec{Args: []string{"fail", "3"}, Min: 2})
		h.await(failed)
		time.Sleep(6 * 24 * time.Hour)
		second := h.one("two")
		h.wantWhole(first, "one")
		time.Sleep(25 * time.Hour)
		h.wantForgotten(first, jobs.Completed, 0)
		h.wantForgotten(failed, jobs.Failed, 3)
		h.wantWhole(second, "two")
		for kind, want := range map[jobs.DependencyKind]jobs.State{jobs.AfterOK: jobs.Failed, jobs.AfterNotOK: jobs.Completed, jobs.AfterAny: jobs.Completed} {
			id := h.submit(jobs.Spec{Args: []string{"echo"}, After: []jobs.Dependency{{Kind: kind, Job: failed}}})
			if st := h.await(id); st.State != want {
				t.Errorf("after a forgotten job that failed, %s: %s (%s)", kind, st.State, st.Reason)
			}
		}
		h.stop()
		h.start()
		h.wantForgotten(first, jobs.Completed, 0)
		h.wantForgotten(failed, jobs.Failed, 3)
		h.wantWhole(second, "two")
		if r := h.Results(); r.Jobs != 6 || r.Forgotten != 2 || r.Bytes < 6 {
			t.Errorf("%+v", r)
		}
		time.Sleep(71 * 24 * time.Hour)
		if list := h.List(-1); len(list) != 0 {
			t.Errorf("%d records are left after ten weeks", len(list))
		}
		if _, _, err := h.Status(first); !errors.Is(err, jobs.ErrNotFound) {
			t.Errorf("got %v", err)
		}
		h.noJobs()
	})
}

func TestForgottenByRequest(t *testing.T) {
	atHome(t, func(t *testing.T, h *home) {
		older, id := h.one("older"), h.one("text")
		runs := h.submit(jobs.Spec{Args: []string{"wait"}})
		h.await(runs, jobs.Running)
		err := h.Remove(runs)
		if want := fmt.Sprintf("refused: job %s is RUNNING: 'zorilla cancel %s' ends it", runs.Short(), runs.Short()); !errors.Is(err, jobs.ErrRefused) || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		if err := h.Cancel(runs, "enough", true); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute) // its worker is gone
		for _, id := range []jobs.ID{runs, id} {
			if err := h.Remove(id); err != nil {
				t.Error(err)
			}
			if _, _, err := h.Status(id); !errors.Is(err, jobs.ErrNotFound) {
				t.Errorf("%s after its removal: %v", id, err)
			}
			if err := h.Remove(id); !errors.Is(err, jobs.ErrNotFound) {
				t.Errorf("%s is removed again: %v", id, err)
			}
		}
		if last, err := h.Find("last"); err != nil || last != older {
			t.Errorf("last is %s, %v", last, err)
		}
		h.wantWhole(older, "older")
		h.stop()
		h.start()
		if list := h.List(-1); len(list) != 1 {
			t.Errorf("%d jobs are left", len(list))
		}
		if err := h.Remove(older); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		h.noJobs()
	})
}

func TestForgottenForRoom(t *testing.T) {
	atHome(t, func(t *testing.T, h *home) {
		h.stop()
		h.limit = 300 // of more than 80 bytes each
		h.start()
		var ids []jobs.ID
		for i := range 4 {
			ids = append(ids, h.one(fmt.Sprint("text number ", i)))
			time.Sleep(time.Minute)
		}
		if r := h.Results(); !r.Full || r.Forgotten != 0 || r.Bytes <= r.Limit {
			t.Errorf("nobody has read anything: %+v", r)
		}
		h.Read(ids[1])
		time.Sleep(time.Hour + 2*time.Minute)
		h.wantForgotten(ids[1], jobs.Completed, 0)
		for _, i := range []int{0, 2, 3} {
			h.wantWhole(ids[i], fmt.Sprint("text number ", i))
		}
		if r := h.Results(); r.Full || r.Forgotten != 1 {
			t.Errorf("%+v", r)
		}
	})
}

// The journal cannot be written until a result is removed, which makes room.
func TestForgetOnAFullDisk(t *testing.T) {
	atHome(t, func(t *testing.T, h *home) {
		disk := h.faulty()
		first, second := h.one("one"), h.one("two")
		disk.fill(true)
		if _, err := h.Submit(t.Context(), jobs.Spec{Args: []string{"say"}, Min: 1, Max: 1, Slots: 1}); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("submitted on a full disk: %v", err)
		}
		before := h.store.Usage().Bytes
		removed := make(chan error, 1)
		go func() { removed <- h.Remove(first) }()
		select {
		case err := <-removed:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(time.Second):
			t.Error("a job cannot be removed, since the disk has no room to write that down")
		}
		if left, _ := filepath.Glob(filepath.Join(h.dir, "jobs", string(first)+"*", "*")); len(left) > 0 || h.store.Usage().Bytes >= before {
			t.Errorf("no room was made: %v, %d of %d bytes in the store", left, h.store.Usage().Bytes, before)
		}
		h.crash() // before the journal could be written
		h.wrap = nil
		h.start()
		time.Sleep(time.Second)
		if _, _, err := h.Status(first); !errors.Is(err, jobs.ErrNotFound) {
			t.Errorf("after a restart: %v", err)
		}
		h.wantWhole(second, "two")
		if err := h.Remove(second); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		h.noJobs()
	})
}

// The origin dies between any two steps of forgetting, and within them, and is
// started again: the job is whole or forgotten, and no file is left of one that is.
func TestOriginDiesWhileItForgets(t *testing.T) {
	for _, remove := range []bool{false, true} {
		for _, whole := range []bool{false, true} { // of a step, or part of it
			for steps := range 5 {
				t.Run(fmt.Sprintf("remove %v, %d steps, all of the last %v", remove, steps, whole), func(t *testing.T) {
					atHome(t, func(t *testing.T, h *home) { dieWhileForgetting(t, h, remove, steps, whole) })
				})
			}
		}
	}
}

func dieWhileForgetting(t *testing.T, h *home, remove bool, steps int, whole bool) {
	id, other := h.one("text"), h.one("other")
	if err := os.WriteFile(filepath.Join(h.dir, "jobs", string(id), "stdin"), []byte("input"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(h.dir, "jobs", string(id))
	erase := h.own.Erasing(id, remove)
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
	h.crash()
	h.start()
	time.Sleep(time.Second)
	h.wantWhole(other, "other")
	switch {
	case steps == 0:
		h.wantWhole(id, "text")
	case remove:
		if _, _, err := h.Status(id); !errors.Is(err, jobs.ErrNotFound) {
			t.Errorf("got %v", err)
		}
		if left, _ := filepath.Glob(dir + "*"); len(left) > 0 {
			t.Errorf("left is %v", left)
		}
	default:
		h.wantForgotten(id, jobs.Completed, 0)
		h.stop()
		h.start()
		h.wantForgotten(id, jobs.Completed, 0)
	}
	for _, id := range []jobs.ID{id, other} {
		if err := h.Remove(id); err != nil && !errors.Is(err, jobs.ErrNotFound) {
			t.Error(err)
		}
	}
	time.Sleep(time.Second)
	if left, _ := filepath.Glob(filepath.Join(h.dir, "jobs", "*")); len(left) > 0 {
		t.Errorf("at the end there is %v", left)
	}
}

// The key of a submission names its job as long as its record is kept.
func TestForgottenJobKeepsItsKey(t *testing.T) {
	atHome(t, func(t *testing.T, h *home) {
		spec := jobs.Spec{Key: "nightly", Args: []string{"echo"}}
		id := h.submit(spec)
		h.await(id)
		time.Sleep(8 * 24 * time.Hour)
		for range 3 {
			h.wantForgotten(id, jobs.Completed, 0)
			if again := h.submit(spec); again != id {
				t.Fatalf("submitted again it is %s, want %s", again, id)
			}
			h.stop()
			h.start()
		}
		if err := h.Remove(id); err != nil {
			t.Fatal(err)
		}
		if st := h.await(h.submit(spec)); st.Gone() != nil {
			t.Error("the key of a removed job is kept")
		}
	})
}

// slow is a journal that takes a minute to read, once it is told to.
type slow struct {
	*journal.Memory
	is atomic.Bool
}

func (s *slow) Read(key string) ([]journal.Entry, error) {
	list, err := s.Memory.Read(key)
	if s.is.Load() {
		time.Sleep(time.Minute)
	}
	return list, err
}

// A job that is removed while its results are being forgotten does not come back.
func TestRemovedWhileItIsForgotten(t *testing.T) {
	atHome(t, func(t *testing.T, h *home) {
		log := &slow{}
		h.stop()
		h.wrap = func(m *journal.Memory) journal.Journal { log.Memory = m; return log }
		h.start()
		id := h.one("text")
		log.is.Store(true)
		go func() {
			for _, step := range h.own.Erasing(id, false) {
				if err := step(); err != nil {
					t.Error(err)
				}
			}
		}()
		time.Sleep(time.Second)
		if err := h.Remove(id); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		log.is.Store(false)
		h.stop()
		h.start()
		if st, _, err := h.Status(id); !errors.Is(err, jobs.ErrNotFound) {
			t.Errorf("it is %s, and %v", st.State, err)
		}
	})
}
