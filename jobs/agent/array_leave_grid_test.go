package agent_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/work"
	"zorilla/testnet"
	"zorilla/transfer"
)

// runs counts how often the tasks of jobs were begun.
var runs = struct {
	sync.Mutex
	of map[string]int
}{of: map[string]int{}}

// leave prints how often its task was begun, and leaves a file of that name. The
// first run of every third task fails, and has left more.
func leave(ctx context.Context, w *testnet.FakeWorker) int {
	task := w.Getenv("ZORILLA_TASK_ID")
	key := w.Getenv("ZORILLA_JOB_ID") + "/" + task
	runs.Lock()
	runs.of[key]++
	n := runs.of[key]
	runs.Unlock()
	name := fmt.Sprintf("run-%d", n)
	fmt.Fprintln(w.Stdout, name)
	fmt.Fprintln(w.Stderr, "error of", task)
	if err := os.WriteFile(filepath.Join(w.Dir, name), []byte("of "+task), 0o644); err != nil {
		return 2
	}
	select {
	case <-time.After(300 * time.Millisecond):
	case <-ctx.Done():
		return 1
	}
	if n == 1 && strings.HasSuffix(task, "3") {
		if err := os.WriteFile(filepath.Join(w.Dir, "failed"), nil, 0o644); err != nil {
			return 2
		}
		return 1
	}
	return 0
}

// taskFiles returns what the tasks of an array left.
func (g *grid) taskFiles(i int, id jobs.ID) map[int]map[string]string {
	g.t.Helper()
	packs := map[int][]byte{}
	err := g.node(i).service.Output(g.t.Context(), id, jobs.OutputQuery{Rank: -1, Files: true}, func(o jobs.Output) error {
		if o.Stream != work.Files || o.Offset != int64(len(packs[o.Rank])) {
			g.t.Errorf("files of task %d: %v from %d on, want %d", o.Rank, o.Stream, o.Offset, len(packs[o.Rank]))
		}
		packs[o.Rank] = append(packs[o.Rank], o.Data...)
		return nil
	})
	if err != nil {
		g.t.Fatal(err)
	}
	all := map[int]map[string]string{}
	for task, pack := range packs {
		all[task] = map[string]string{}
		for r := transfer.NewPackReader(bytes.NewReader(pack)); ; {
			text := ""
			e, err := r.Next(transfer.PutterFunc(func(_ transfer.Hash, data []byte) error { text = string(data); return nil }))
			if err == io.EOF {
				break
			}
			if err != nil {
				g.t.Fatalf("task %d: %v", task, err)
			}
			all[task][e.Path] = text
		}
	}
	return all
}

// A task that is tried again, and one whose node was lost, has the files of the
// run that counts and no others; so has a job whose origin was lost and came back.
func TestTaskTriedAgainReplacesItsFiles(t *testing.T) {
	bubble(t, 4, 2, func(t *testing.T, g *grid) {
		const n = 100
		spec := jobs.Spec{Args: []string{"leave"}, Min: 1, Max: 8, Failing: jobs.Failing{Retries: 1}, Outputs: []string{"*"}, Array: &jobs.Array{Tasks: []work.TaskIDs{{First: 1, Last: n, Step: 1}}}}
		id := g.submit(0, spec)
		done := func(k int) func(jobs.Status) bool {
			return func(st jobs.Status) bool { return st.Array != nil && st.Array.Done >= k }
		}
		g.await(0, id, time.Minute, done(20))
		g.node(2).kill() // with all it works on
		g.await(0, id, time.Minute, done(40))
		g.node(3).crash() // its workers go on
		g.node(3).start()
		g.await(0, id, time.Minute, done(60))
		g.node(0).crash() // the origin itself
		synctest.Wait()
		g.node(0).start()
		if st := g.await(0, id, 10*time.Minute, final); st.State != jobs.Completed || st.Array.Done != n || len(st.Outputs) > 0 {
			t.Fatalf("%s: %s, %+v", st.State, st.Reason, st.Array)
		}
		told := map[int]string{}
		err := g.node(0).service.Output(t.Context(), id, jobs.OutputQuery{Rank: -1}, func(o jobs.Output) error {
			if o.Stream == work.Stdout {
				told[o.Rank] += string(o.Data)
			} else if want := fmt.Sprintf("error of %d\n", o.Rank); string(o.Data) != want {
				t.Errorf("standard error of task %d: %q", o.Rank, o.Data)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		files := g.taskFiles(0, id)
		for task := 1; task <= n; task++ {
			name := strings.TrimSpace(told[task])
			if f := files[task]; len(f) != 1 || f[name] != fmt.Sprintf("of %d", task) || task%10 == 3 && name == "run-1" {
				t.Errorf("task %d told of %q and left %q", task, name, f)
			}
		}
		page, err := g.node(0).service.Tasks(id, jobs.TaskQuery{From: 2, Limit: 1})
		if err != nil || page.Tasks[0].Files == 0 || page.Tasks[0].Stderr != int64(len("error of 3\n")) || page.Tasks[0].Tries != 2 {
			t.Errorf("%+v, %v", page, err)
		}
	})
}
