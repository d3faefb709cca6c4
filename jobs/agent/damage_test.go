package agent_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/journal"
)

// A job whose journal lost an entry, whichever it is, is told as damaged; nothing
// after that is believed, and the other jobs are as they were.
func TestDamagedEntries(t *testing.T) {
	bubble(t, 2, 2, func(t *testing.T, g *grid) {
		n := g.node(0)
		sound := g.submit(0, jobs.Spec{Args: []string{"echo", "hello"}, Min: 1, Max: 1})
		g.await(0, sound, time.Minute, final)
		for lost := 1; ; lost++ {
			id := g.submit(0, jobs.Spec{Args: []string{"tick", "2"}, Min: 2, Max: 2, Outputs: []string{"left"}})
			g.await(0, id, time.Minute, final)
			entries, err := n.log.Read(string(id))
			if err != nil {
				t.Fatal(err)
			}
			if lost > len(entries) {
				break
			}
			n.log.Spoil(string(id), lost)
			for range 2 { // each start tells the same
				n.stop()
				n.start()
				st, _, err := n.service.Status(id)
				if err != nil || st.State != jobs.Failed || st.ExitCode != 125 || !strings.Contains(st.Broken, "is damaged") || !strings.Contains(st.Reason, "its journal is damaged: ") {
					t.Errorf("entry %d: %s with %d, %q, %v", lost, st.State, st.ExitCode, st.Broken, err)
				}
				err = n.service.Output(t.Context(), id, jobs.OutputQuery{Rank: -1}, func(jobs.Output) error { return nil })
				if !errors.Is(err, jobs.ErrDamaged) {
					t.Errorf("entry %d: its output: %v", lost, err)
				}
			}
			if st, _, err := n.service.Status(sound); err != nil || st.State != jobs.Completed || st.Broken != "" || g.output(0, sound, 0) != "hello\n" {
				t.Errorf("entry %d: the other job is %s, %v", lost, st.State, err)
			}
		}
	})
}

// Workers of a job that was running when its journal was damaged are let go.
func TestDamagedJournalOfARunningJob(t *testing.T) {
	bubble(t, 2, 2, func(t *testing.T, g *grid) {
		n := g.node(0)
		id := g.submit(0, jobs.Spec{Args: []string{"tick", "600"}, Min: 4, Max: 4})
		g.await(0, id, time.Minute, func(st jobs.Status) bool { return st.State == jobs.Running })
		n.log.Spoil(string(id), 2)
		n.stop()
		n.start()
		if st, _, err := n.service.Status(id); err != nil || st.State != jobs.Failed || st.ExitCode != 125 {
			t.Fatalf("%s with %d, %v", st.State, st.ExitCode, err)
		}
		time.Sleep(30 * time.Second)
		for i := range 2 {
			if busy := g.node(i).service.Busy(); busy != 0 {
				t.Errorf("node %d has %d slots in use", i, busy)
			}
		}
		if st := g.await(0, g.submit(0, jobs.Spec{Args: []string{"echo"}, Min: 4, Max: 4}), time.Minute, final); st.State != jobs.Completed {
			t.Errorf("the next job is %s: %s", st.State, st.Reason)
		}
	})
}

// Output that is gone is missed.
func TestDamagedDirectoryOfJobs(t *testing.T) {
	bubble(t, 1, 2, func(t *testing.T, g *grid) {
		n := g.node(0)
		id := g.submit(0, jobs.Spec{Args: []string{"echo", "hello"}, Min: 1, Max: 1})
		g.await(0, id, time.Minute, final)
		n.stop()
		if err := os.RemoveAll(filepath.Join(n.dir, "jobs")); err != nil {
			t.Fatal(err)
		}
		n.start()
		st, _, err := n.service.Status(id)
		if err != nil || st.State != jobs.Completed || st.ExitCode != 0 || strings.Join(st.Damaged, "") != "rank 0: standard output: bytes 0 to 5" {
			t.Errorf("%s with %d, damaged: %q, %v", st.State, st.ExitCode, st.Damaged, err)
		}
		if err := n.service.Output(t.Context(), id, jobs.OutputQuery{Rank: -1}, func(jobs.Output) error { return nil }); !errors.Is(err, jobs.ErrDamaged) {
			t.Errorf("its output: %v", err)
		}
	})
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
	bubble(t, 1, 2, func(t *testing.T, g *grid) {
		n := g.node(0)
		running := g.submit(0, jobs.Spec{Args: ticking(600), Min: 1, Max: 1})
		g.await(0, running, time.Minute, func(st jobs.Status) bool { return st.State == jobs.Running })
		disk := &late{faulty: newFaulty(n.log)}
		n.stop()
		n.wrap = func(m *journal.Memory) journal.Journal { disk.Memory = m; return disk }
		n.start()
		disk.mu.Lock()
		disk.full = true
		disk.mu.Unlock()
		began := time.Now()
		_, err := n.service.Submit(t.Context(), jobs.Spec{Args: []string{"echo"}, Min: 1, Max: 1, Slots: 1})
		told := n.service.Cancel(running, "by a user")
		for _, err := range []error{err, told} {
			if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "when there is room") {
				t.Errorf("got %v", err)
			}
		}
		if d := time.Since(began); d > 5*time.Second {
			t.Errorf("told after %v", d)
		}
		disk.makeRoom()
		if st := g.await(0, running, time.Minute, final); st.State != jobs.Cancelled {
			t.Errorf("the job is %s", st.State)
		}
	})
}
