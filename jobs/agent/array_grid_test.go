package agent_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/work"
	"zorilla/testnet"
)

// numbered is an array whose tasks print their number after a while.
func numbered(n int, seconds string) jobs.Spec {
	return jobs.Spec{Args: []string{"tell", seconds}, Min: 1, Max: 6, Array: &jobs.Array{Tasks: []work.TaskIDs{{First: 1, Last: n, Step: 1}}}}
}

// tell is the program of such a task.
func tell(ctx context.Context, w *testnet.FakeWorker) int {
	d, err := time.ParseDuration(w.Args[1] + "s")
	if err != nil {
		return 2
	}
	fmt.Fprintln(w.Stdout, "begin", w.Getenv("ZORILLA_TASK_ID"))
	select {
	case <-time.After(d):
	case <-ctx.Done():
		return 1
	}
	fmt.Fprintln(w.Stdout, "end", w.Getenv("ZORILLA_TASK_ID"))
	return 0
}

// eachOnce checks that a job has the output of each task once, in one piece.
func (g *grid) eachOnce(i int, id jobs.ID, n int) {
	g.t.Helper()
	got := map[int]string{}
	err := g.node(i).service.Output(g.t.Context(), id, jobs.OutputQuery{Rank: -1}, func(o jobs.Output) error {
		got[o.Rank] += string(o.Data)
		return nil
	})
	if err != nil || len(got) != n {
		g.t.Errorf("output of %d tasks, want %d: %v", len(got), n, err)
	}
	for task, text := range got {
		if text != fmt.Sprintf("begin %d\nend %d\n", task, task) {
			g.t.Errorf("task %d: %q", task, text)
		}
	}
	if one := g.output(i, id, 3); one != "begin 3\nend 3\n" {
		g.t.Errorf("task 3 alone: %q", one)
	}
}

func TestArrayRunsEachTaskOnce(t *testing.T) {
	bubble(t, 3, 2, func(t *testing.T, g *grid) {
		const n = 500
		id := g.submit(0, numbered(n, "0.05"))
		begun := time.Now()
		st := g.await(0, id, 10*time.Minute, final)
		if st.State != jobs.Completed || st.Array.Done != n {
			t.Fatalf("%s: %s, %+v", st.State, st.Reason, st.Array)
		}
		if took := time.Since(begun); took > 12*time.Second {
			t.Errorf("took %v on six slots, at best 8.4 s", took)
		}
		g.eachOnce(0, id, n)
		page, err := g.node(0).service.Tasks(id, jobs.TaskQuery{From: 100, Limit: 10})
		if err != nil || len(page.Tasks) != 10 || page.Next != 110 || page.Tasks[0].ID != 101 || !page.Tasks[0].Done {
			t.Errorf("%+v, %v", page, err)
		}
	})
}

func TestArrayOutlivesNodes(t *testing.T) {
	bubble(t, 4, 2, func(t *testing.T, g *grid) {
		const n = 200
		id := g.submit(0, numbered(n, "0.5"))
		some := func(k int) func(jobs.Status) bool {
			return func(st jobs.Status) bool { return st.Array != nil && st.Array.Done >= k }
		}
		g.await(0, id, time.Minute, some(20))
		g.node(2).kill() // with all it works on
		g.await(0, id, time.Minute, some(40))
		g.node(3).crash() // its workers go on
		g.node(3).start()
		g.await(0, id, time.Minute, some(60))
		g.node(0).crash() // the origin itself
		synctest.Wait()
		g.node(0).start()
		st := g.await(0, id, 10*time.Minute, final)
		if st.State != jobs.Completed || st.Array.Done != n {
			t.Fatalf("%s: %s, %+v", st.State, st.Reason, st.Array)
		}
		g.eachOnce(0, id, n)
	})
}

// What the disk lost of one task is named; the others are told.
func TestDamagedOutputOfTasks(t *testing.T) {
	bubble(t, 1, 2, func(t *testing.T, g *grid) {
		n := g.node(0)
		id := g.submit(0, numbered(20, "0.05"))
		g.await(0, id, time.Minute, final)
		n.stop()
		path := filepath.Join(n.dir, "jobs", string(id), "output")
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b[bytes.Index(b, []byte("begin 7\n"))] ^= 1
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		n.start()
		told := map[int]string{}
		err = n.service.Output(t.Context(), id, jobs.OutputQuery{Rank: -1}, func(o jobs.Output) error { told[o.Rank] += string(o.Data); return nil })
		if !errors.Is(err, jobs.ErrDamaged) || !strings.Contains(err.Error(), "task 7: standard output: bytes 0 to ") {
			t.Errorf("got %v", err)
		}
		for task := 1; task <= 20; task++ {
			if want := fmt.Sprintf("begin %d\nend %d\n", task, task); told[task] != want && !strings.Contains(err.Error(), fmt.Sprintf("task %d:", task)) || task == 7 && strings.Contains(told[7], "begin") {
				t.Errorf("task %d: %q", task, told[task])
			}
		}
		if err := n.service.Output(t.Context(), id, jobs.OutputQuery{Rank: 19}, func(jobs.Output) error { return nil }); err != nil && strings.Contains(err.Error(), "task 7") {
			t.Errorf("task 19 alone: %v", err)
		}
	})
}

// An array that was ended early has no task that runs: not in its counts, nor in
// its picture, nor after a restart.
func TestArrayThatIsCancelledRunsNoTask(t *testing.T) {
	bubble(t, 2, 2, func(t *testing.T, g *grid) {
		const n = 100
		id := g.submit(0, numbered(n, "1"))
		g.await(0, id, time.Minute, func(st jobs.Status) bool { return st.Array != nil && st.Array.Done >= 10 && st.Array.Running == 4 })
		if err := g.node(0).service.Cancel(id, "enough", false); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			st := g.await(0, id, time.Minute, final)
			if a := st.Array; a.Running != 0 || a.Done < 10 || a.Left != n-a.Done || a.Tasks != n {
				t.Errorf("it is %s with %+v", st.State, *a)
			}
			page, err := g.node(0).service.Tasks(id, jobs.TaskQuery{Cells: n})
			if err != nil || strings.Count(page.Picture, string(jobs.CellDone)) != st.Array.Done || strings.Count(page.Picture, string(jobs.CellWaits)) != st.Array.Left {
				t.Errorf("its tasks are %s, %v", page.Picture, err)
			}
			g.node(0).stop()
			g.node(0).start()
		}
	})
}
