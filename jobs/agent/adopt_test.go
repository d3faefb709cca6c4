package agent_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/agent"
	"zorilla/jobs/process"
	"zorilla/jobs/remover"
	"zorilla/transfer"
)

// ticking is a job whose ranks write a line a second, and leave a file.
func ticking(seconds int) []string {
	return []string{"tick", fmt.Sprint(seconds)}
}

func ticks(rank, seconds int) string {
	var b strings.Builder
	for i := range seconds {
		fmt.Fprintf(&b, "rank %d at %d\n", rank, i)
	}
	return b.String()
}

// sameAttempts fails the test unless each rank ran once and left all it should.
func (g *grid) sameAttempts(i int, id jobs.ID, seconds int) {
	g.t.Helper()
	st := g.await(i, id, 5*time.Minute, final)
	if st.State != jobs.Completed {
		g.t.Fatalf("the job is %s: %s", st.State, st.Reason)
	}
	for _, w := range st.Workers {
		if got := g.output(i, id, w.Rank); w.Attempt != 1 || got != ticks(w.Rank, seconds) {
			g.t.Errorf("rank %d, attempt %d wrote %q", w.Rank, w.Attempt, got)
		}
	}
	if len(st.Outputs) != len(st.Workers) {
		g.t.Errorf("%d of %d ranks left a file", len(st.Outputs), len(st.Workers))
	}
	for _, out := range st.Outputs {
		m, err := transfer.LoadManifest(g.node(i).store, out.Manifest)
		if err != nil || len(m.Entries) != 1 || m.Entries[0].Path != "left" {
			g.t.Errorf("rank %d left %+v, %v", out.Rank, m.Entries, err)
		}
	}
}

func TestNodesAreStartedAgainWhileWorkersRun(t *testing.T) {
	for name, down := range map[string]struct {
		end   func(*gridNode)
		nodes []int
		away  time.Duration
	}{
		"participant crashes":           {(*gridNode).crash, []int{1}, 4 * time.Second},
		"participant is stopped":        {(*gridNode).stop, []int{1}, time.Minute},
		"origin crashes":                {(*gridNode).crash, []int{0}, 4 * time.Second},
		"origin is down for long":       {(*gridNode).crash, []int{0}, 10 * time.Minute},
		"origin is stopped":             {(*gridNode).stop, []int{0}, time.Minute},
		"both crash, origin last":       {(*gridNode).crash, []int{1, 0}, 4 * time.Second},
		"both are stopped, origin last": {(*gridNode).stop, []int{1, 0}, 30 * time.Second},
		"both are stopped":              {(*gridNode).stop, []int{0, 1}, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 2, 2, func(t *testing.T, g *grid) {
				const seconds = 20
				id := g.submit(0, jobs.Spec{Args: ticking(seconds), Min: 4, Max: 4, Outputs: []string{"left"}})
				g.await(0, id, time.Minute, func(st jobs.Status) bool { return st.State == jobs.Running })
				time.Sleep(5 * time.Second)
				for range 2 { // twice in a row
					for _, i := range down.nodes {
						down.end(g.node(i))
					}
					time.Sleep(down.away)
					for i := len(down.nodes) - 1; i >= 0; i-- {
						n := g.node(down.nodes[i])
						n.start()
						if busy, running := n.service.Busy(), n.runner.Running(); busy != running {
							t.Errorf("%d slots are busy at %s after its start, %d workers run", busy, n.self.Name, running)
						}
					}
					time.Sleep(100 * time.Millisecond)
				}
				g.sameAttempts(0, id, seconds)
				time.Sleep(5 * time.Second)
				for i := range 2 {
					if n := g.node(i).runner.Started(); n != 2 {
						t.Errorf("%d workers were started at node %d, want 2", n, i)
					}
					if n := g.node(i).service.Busy(); n != 0 {
						t.Errorf("%d slots are busy at node %d", n, i)
					}
				}
			})
		})
	}
}

// An origin that was paused has not heard its participants, which is not their
// fault.
func TestOriginIsPaused(t *testing.T) {
	for _, nap := range []time.Duration{4 * time.Second, 15 * time.Second, 2 * time.Minute} {
		bubble(t, 2, 3, func(t *testing.T, g *grid) {
			const seconds = 20
			id := g.submit(0, jobs.Spec{Args: ticking(seconds), Min: 4, Max: 4, Outputs: []string{"left"}})
			g.await(0, id, time.Minute, func(st jobs.Status) bool { return st.State == jobs.Running })
			time.Sleep(5 * time.Second)
			g.node(0).nap.Store(int64(nap))
			other := g.submit(0, jobs.Spec{Args: []string{"echo"}, Min: 1, Max: 1})
			g.sameAttempts(0, id, seconds)
			g.await(0, other, time.Minute, final)
		})
	}
}

// A node dies while it removes a worker: what is left of that must not be taken
// for a worker of its next life.
func TestNodeDiesWhileItRemovesAWorker(t *testing.T) {
	bubble(t, 2, 2, func(t *testing.T, g *grid) {
		n := g.node(1)
		n.stop()
		begun := make(chan string, 4)
		n.clean = func(root string, _ remover.Pace, _ ...string) error {
			if err := os.RemoveAll(filepath.Join(root, "work")); err != nil {
				t.Error(err)
			}
			begun <- root
			time.Sleep(time.Millisecond) // its death is sooner: until then no time passes
			return nil
		}
		n.start()
		// Rank 0, at the origin, waits for its input; the others end at once.
		id := g.submit(0, jobs.Spec{Args: []string{"cat"}, Min: 4, Max: 4, Stdin: true})
		root := <-begun
		if _, err := process.Noted(root, "claim"); err == nil {
			t.Error("the claim of a worker that is being removed is still there")
		}
		n.clean = nil
		n.crash()
		n.start()
		time.Sleep(5 * time.Second)
		if err := g.node(0).service.Stdin(t.Context(), id, strings.NewReader("go on")); err != nil {
			t.Error(err)
		}
		if st := g.await(0, id, time.Minute, final); st.State != jobs.Completed {
			t.Errorf("the job is %s: %s", st.State, st.Reason)
		}
		if got := g.node(0).runner.Started() + n.runner.Started(); got != 4 {
			t.Errorf("%d workers were started, want 4", got)
		}
	})
}

// A worker whose origin stopped it ends while its node is down.
func TestStoppedWorkerEndsWithoutItsNode(t *testing.T) {
	bubble(t, 2, 1, func(t *testing.T, g *grid) {
		id := g.submit(0, jobs.Spec{Args: []string{"part"}, Min: 2, Max: 2})
		g.await(0, id, time.Minute, func(st jobs.Status) bool { return st.State == jobs.Running && st.Workers[0].Exit != nil })
		time.Sleep(time.Second)
		g.node(1).crash()
		time.Sleep(5 * time.Second)
		g.node(1).start()
		st := g.await(0, id, time.Minute, final)
		if st.State != jobs.Failed || st.ExitCode != 3 || len(st.Warnings) > 0 || st.Workers[1].State != jobs.WorkerEnded {
			t.Errorf("the job is %s with %d (%s), rank 1 is %s, warnings %q", st.State, st.ExitCode, st.Reason, st.Workers[1].State, st.Warnings)
		}
		if got := g.output(0, id, 1); got != "last words\n" {
			t.Errorf("rank 1 wrote %q", got)
		}
	})
}

// A worker that had not started is prepared again, even if its START is on its
// way.
func TestNodeCrashesWhileWorkersArePrepared(t *testing.T) {
	for _, state := range []jobs.State{jobs.Staging, jobs.Running} {
		bubble(t, 2, 2, func(t *testing.T, g *grid) {
			id := g.submit(0, jobs.Spec{Args: ticking(5), Min: 4, Max: 4, Outputs: []string{"left"}})
			g.await(0, id, time.Minute, func(st jobs.Status) bool { return st.State == state })
			g.node(1).crash()
			time.Sleep(time.Second)
			g.node(1).start()
			if state == jobs.Running {
				g.sameAttempts(0, id, 5)
			} else if st := g.await(0, id, 5*time.Minute, final); st.State != jobs.Completed { // perhaps the grant had not come
				t.Errorf("the job is %s: %s", st.State, st.Reason)
			}
			if n := g.node(0).runner.Started() + g.node(1).runner.Started(); n != 4 {
				t.Errorf("%d workers were started, want 4", n)
			}
		})
	}
}

func TestWorkersEndWithoutTheirNode(t *testing.T) {
	bubble(t, 2, 1, func(t *testing.T, g *grid) {
		g.node(1).stop()
		g.nodeLimit = time.Minute
		g.node(1).start()
		id := g.submit(0, jobs.Spec{Args: []string{"sleep", "1000"}, Min: 2, Max: 2})
		g.await(0, id, time.Minute, func(st jobs.Status) bool { return st.State == jobs.Running })
		time.Sleep(time.Second)
		begin := time.Now()
		g.node(1).crash()
		st := g.await(0, id, time.Minute, final)
		if st.State != jobs.NodeFail || time.Since(begin) > 15*time.Second {
			t.Errorf("after %v the job is %s: %s", time.Since(begin), st.State, st.Reason)
		}
		time.Sleep(time.Minute - time.Since(begin) - time.Second)
		if n := g.node(1).runner.Running(); n != 1 {
			t.Errorf("%d workers run before their limit", g.node(1).runner.Running())
		}
		time.Sleep(stopGrace)
		if g.node(1).runner.Running() != 0 {
			t.Error("the worker goes on after its limit")
		}
		g.node(1).start()
		time.Sleep(5 * time.Second)
	})
}

// A node that comes back when its rank runs elsewhere has to end its own.
func TestSupersededWorkerIsEnded(t *testing.T) {
	bubble(t, 3, 1, func(t *testing.T, g *grid) {
		id := g.submit(0, jobs.Spec{Args: ticking(60), Min: 1, Max: 2, Outputs: []string{"left"}})
		st := g.await(0, id, time.Minute, func(st jobs.Status) bool {
			return st.State == jobs.Running && len(st.Workers) == 2 && st.Workers[1].State == jobs.WorkerRunning
		})
		victim := g.nodes[st.Workers[1].Node]
		if st.Workers[1].Node == g.order[0] {
			t.Fatalf("rank 1 is at the origin: %+v", st.Workers)
		}
		time.Sleep(time.Second)
		victim.crash()
		g.await(0, id, time.Minute, func(st jobs.Status) bool {
			return st.Workers[1].Attempt == 2 && st.Workers[1].State == jobs.WorkerRunning
		})
		if victim.runner.Running() != 1 {
			t.Fatal("the first attempt does not go on without its node")
		}
		victim.start()
		time.Sleep(10 * time.Second)
		if victim.runner.Running() != 0 || victim.service.Busy() != 0 {
			t.Error("the superseded attempt goes on")
		}
		if st := g.await(0, id, 5*time.Minute, final); st.State != jobs.Completed || g.output(0, id, 1) != ticks(1, 60) {
			t.Errorf("the job is %s (%s) with output %q", st.State, st.Reason, g.output(0, id, 1))
		}
	})
}

// What an earlier life left is removed if nothing can be made of it.
func TestWorkDirectoriesThatNobodyKnows(t *testing.T) {
	bubble(t, 1, 1, func(t *testing.T, g *grid) {
		n := g.node(0)
		n.stop()
		work, me := filepath.Join(n.dir, "work"), string(n.self.ID)
		for name, claim := range map[string]string{"aaaaa": "", "bbbbb": "\x85\xa7version", "ccccc": "\x81\xa7version\x07"} {
			root := filepath.Join(work, name+"@"+me+"-0-1")
			if err := errors.Join(os.MkdirAll(work, 0o755), process.MakeRoot(root, me), os.WriteFile(filepath.Join(root, "claim"), []byte(claim), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Mkdir(filepath.Join(work, "ddddd@"+me+"-0-1"), 0o755); err != nil { // the node died while it made it
			t.Fatal(err)
		}
		torn := filepath.Join(work, "fffff@"+me+"-0-1") // a little later
		if err := errors.Join(process.MakeRoot(torn, me), os.Truncate(filepath.Join(torn, "entries"), 7)); err != nil {
			t.Fatal(err)
		}
		old := filepath.Join(work, "eeeee@zabcd-0-1") // of protocol version 1, which knew no marks
		spec := codec.MustMarshal(map[string]any{"version": 1, "spec": process.Spec{Root: old}})
		if err := errors.Join(os.Mkdir(old, 0o755), os.WriteFile(filepath.Join(old, "spec"), spec, 0o600), os.WriteFile(filepath.Join(old, "claim"), []byte("\x81\xa7version\x01"), 0o600)); err != nil {
			t.Fatal(err)
		}
		if err := agent.CheckWork(work, n.self.ID); err != nil {
			t.Fatal(err)
		}
		n.start()
		left, err := os.ReadDir(work)
		if err != nil || len(left) != 0 || n.service.Busy() != 0 {
			t.Errorf("left %v, %v, busy %d", left, err, n.service.Busy())
		}
		if st := g.await(0, g.submit(0, jobs.Spec{Args: []string{"echo"}, Min: 1, Max: 1}), time.Minute, final); st.State != jobs.Completed {
			t.Errorf("the next job is %s: %s", st.State, st.Reason)
		}
	})
}

// A worker that was given up before it had started is not prepared again in the
// node's next life: others may have its room by then.
func TestWorkerThatWasGivenUpDoesNotComeBack(t *testing.T) {
	bubble(t, 2, 2, func(t *testing.T, g *grid) {
		id := g.submit(0, jobs.Spec{Args: ticking(5), Min: 4, Max: 4})
		g.await(0, id, time.Minute, func(st jobs.Status) bool { return st.State == jobs.Staging })
		n := g.node(1)
		for len(claims(t, n)) == 0 {
			time.Sleep(100 * time.Microsecond)
		}
		g.node(0).crash()
		n.service.Drain(true, false)
		time.Sleep(time.Second)
		if busy := n.service.Busy(); busy != 0 {
			t.Errorf("%d slots are busy", busy)
		}
		n.crash()
		n.start()
		time.Sleep(time.Second)
		if busy := n.service.Busy(); busy != 0 {
			t.Errorf("%d slots are busy after the start", busy)
		}
		g.node(0).start()
		if st := g.await(0, id, 5*time.Minute, final); st.State != jobs.Completed || n.runner.Started() != 2 {
			t.Errorf("%s: %s; %d workers ran", st.State, st.Reason, n.runner.Started())
		}
		time.Sleep(time.Second)
		if left := claims(t, n); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
	})
}

// claims lists the workers that a node has written down.
func claims(t *testing.T, n *gridNode) []string {
	list, err := filepath.Glob(filepath.Join(n.dir, "work", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(list, func(root string) bool { _, err := process.Noted(root, "claim"); return err != nil })
}
