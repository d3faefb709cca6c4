package origin_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/origin"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/journal"
	"zorilla/jobs/work"
	"zorilla/transfer"
)

// A job whose journal lost an entry, whichever it is, is told as damaged; nothing
// after that is believed, and the other jobs are as they were.
func TestDamagedEntries(t *testing.T) {
	atHome(t, func(t *testing.T, h *home) {
		sound := h.submit(jobs.Spec{Args: []string{"echo", "hello"}})
		h.await(sound)
		for lost := 1; ; lost++ {
			id := h.submit(jobs.Spec{Args: []string{"say", "text"}, Min: 2, Outputs: []string{"left"}})
			h.await(id)
			entries, err := h.log.Read(string(id))
			if err != nil {
				t.Fatal(err)
			}
			if lost > len(entries) {
				break
			}
			h.log.Spoil(string(id), lost)
			for range 2 { // each start tells the same
				h.stop()
				h.start()
				st, _, err := h.Status(id)
				if err != nil || st.State != jobs.Failed || st.ExitCode != 125 || !strings.Contains(st.Broken, "is damaged") || !strings.Contains(st.Reason, "its journal is damaged: ") {
					t.Errorf("entry %d: %s with %d, %q, %v", lost, st.State, st.ExitCode, st.Broken, err)
				}
				err = h.Output(t.Context(), id, jobs.OutputQuery{Rank: -1}, func(jobs.Output) error { return nil })
				if !errors.Is(err, jobs.ErrDamaged) {
					t.Errorf("entry %d: its output: %v", lost, err)
				}
			}
			if st, _, err := h.Status(sound); err != nil || st.State != jobs.Completed || st.Broken != "" || h.printed(sound, 0) != "hello\n" {
				t.Errorf("entry %d: the other job is %s, %v", lost, st.State, err)
			}
		}
	})
}

// Output that is gone is missed.
func TestDamagedDirectoryOfJobs(t *testing.T) {
	atHome(t, func(t *testing.T, h *home) {
		id := h.submit(jobs.Spec{Args: []string{"echo", "hello"}})
		h.await(id)
		h.stop()
		if err := os.RemoveAll(filepath.Join(h.dir, "jobs")); err != nil {
			t.Fatal(err)
		}
		h.start()
		st, _, err := h.Status(id)
		if err != nil || st.State != jobs.Completed || st.ExitCode != 0 || strings.Join(st.Damaged, "") != "rank 0: standard output: bytes 0 to 5" {
			t.Errorf("%s with %d, damaged: %q, %v", st.State, st.ExitCode, st.Damaged, err)
		}
		if err := h.Output(t.Context(), id, jobs.OutputQuery{Rank: -1}, func(jobs.Output) error { return nil }); !errors.Is(err, jobs.ErrDamaged) {
			t.Errorf("its output: %v", err)
		}
	})
}

// Inputs that share a blob are all here as long as that is.
func TestLostInputInABundle(t *testing.T) {
	from, store := t.TempDir(), transfer.NewMemStore(0)
	for _, name := range []string{"a", "b"} {
		if err := os.WriteFile(filepath.Join(from, name), []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tree, err := transfer.Ingest(t.Context(), store, []transfer.Input{{Path: from, Name: "."}})
	if err != nil {
		t.Fatal(err)
	}
	for _, to := range []transfer.PinStore{store, transfer.NewMemStore(0)} {
		inputs, err := transfer.SaveManifest(to, tree)
		if err != nil {
			t.Fatal(err)
		}
		want := ""
		if to != store {
			want = `its input "a" is damaged: the disk of its origin lost some of it`
		}
		if got := origin.LostInput(to, inputs); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// late is a journal whose disk is full just after somebody asked.
type late struct {
	*faulty
	asked atomic.Int64
}

func (l *late) Stalled() error {
	if l.asked.Add(1) == 1 {
		return nil
	}
	return l.faulty.Stalled()
}

// Who waits for a disk that got full is told, and does not hang.
func TestFullDiskIsTold(t *testing.T) {
	atHome(t, func(t *testing.T, h *home) {
		running := h.submit(jobs.Spec{Args: []string{"wait"}})
		h.await(running, jobs.Running)
		disk := &late{}
		h.stop()
		h.wrap = func(m *journal.Memory) journal.Journal { disk.faulty = &faulty{Memory: m}; return disk }
		h.start()
		disk.fill(true)
		began := time.Now()
		_, err := h.Submit(t.Context(), jobs.Spec{Args: []string{"say"}, Min: 1, Max: 1, Slots: 1})
		told := h.Cancel(running, "by a user", true)
		for _, err := range []error{err, told} {
			if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "when there is room") {
				t.Errorf("got %v", err)
			}
		}
		if d := time.Since(began); d > 5*time.Second {
			t.Errorf("told after %v", d)
		}
		disk.fill(false)
		if st := h.await(running); st.State != jobs.Cancelled {
			t.Errorf("the job is %s", st.State)
		}
	})
}

// A report whose output could not be stored is served all the same: else its job would stay in memory
// for ever, and its node would never count as silent.
func TestReportsThatCannotBeStoredAreServed(t *testing.T) {
	atHome(t, func(t *testing.T, h *home) {
		id := h.submit(jobs.Spec{Args: []string{"wait"}})
		h.await(id, jobs.Running)
		blocked := filepath.Join(h.dir, "jobs", string(id))
		if err := errors.Join(os.MkdirAll(filepath.Dir(blocked), 0o700), os.WriteFile(blocked, nil, 0o600)); err != nil { // as bad as a full disk
			t.Fatal(err)
		}
		ra := jobs.RankAttempt{Attempt: 1}
		rep := &wire.Report{Job: id, Workers: []wire.WorkerReport{{RankAttempt: ra, State: jobs.WorkerRunning, Stdout: 3}},
			Output: []jobs.Output{{Attempt: ra.Attempt, Stream: work.Stdout, Data: []byte("lo\n")}}}
		if _, err := h.own.Report(h.other.ID, rep); err == nil {
			t.Fatal("it is stored in a file that is no directory")
		}
		synctest.Wait()
		h.loop.Call(func() {
			if n := len(h.core.Jobs[id].Serving); n != 0 {
				t.Errorf("reports of %d nodes wait for an answer", n)
			}
		})
	})
}
