package agent_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/agent"
	"zorilla/jobs/process"
	"zorilla/jobs/work"
)

// unable is a runner on a machine that cannot start some workers. The trials of
// its node are workers, too.
type unable struct {
	agent.Runner
	fails  func(process.Spec) bool
	starts atomic.Int64 // that failed
	late   bool         // the supervisor starts, but not its worker
}

func (u *unable) Start(ctx context.Context, spec process.Spec) (process.Worker, error) {
	if !u.fails(spec) {
		return u.Runner.Start(ctx, spec)
	}
	u.starts.Add(1)
	if !u.late {
		return nil, errors.New("start supervisor: resource temporarily unavailable")
	}
	spec.Args = []string{"broken"} // which ends at once, and writes nothing
	w, err := u.Runner.Start(ctx, spec)
	return notBegun{w}, err
}

// notBegun is a worker whose supervisor could not start it.
type notBegun struct{ process.Worker }

func (notBegun) Exit() work.Exit {
	return work.Exit{Code: 125, Cause: work.Unstarted, Detail: "fork: resource temporarily unavailable"}
}

func isTrial(spec process.Spec) bool { return filepath.Base(spec.Root) == "trial" }

// cripple makes a node unable to start what fails tells.
func (n *gridNode) cripple(late bool, fails func(process.Spec) bool) *unable {
	u := &unable{Runner: n.runner, fails: fails, late: late}
	n.stop()
	n.wrapRunner = func(agent.Runner) agent.Runner { return u }
	n.start()
	return u
}

// A node that cannot start workers costs the jobs near it nothing: their ranks
// run elsewhere, without --retries, and after three starts it offers nothing.
func TestJobsBesideANodeThatCannotStartWorkers(t *testing.T) {
	for name, spec := range map[string]jobs.Spec{
		"rigid":     {Args: ticking(3), Min: 3, Max: 3},
		"malleable": {Args: ticking(3), Min: 2, Max: 3},
		"array":     {Args: ticking(1), Min: 1, Max: 3, Array: &jobs.Array{Tasks: []work.TaskIDs{{First: 1, Last: 9, Step: 1}}}},
	} {
		for _, late := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				bubble(t, 3, 2, func(t *testing.T, g *grid) {
					bad := g.node(0)
					u := bad.cripple(late, func(process.Spec) bool { return true })
					for range 3 {
						id := g.submit(0, spec)
						st := g.await(0, id, 5*time.Minute, final)
						if st.State != jobs.Completed {
							t.Errorf("it is %s: %s", st.State, st.Reason)
						}
						for _, w := range st.Workers {
							if w.Node == bad.self.ID {
								t.Errorf("rank %d ran where nothing can", w.Rank)
							}
						}
						time.Sleep(time.Minute) // until it is not avoided any more
					}
					if why := bad.service.Broken(); !strings.Contains(why, "resource temporarily unavailable") || bad.service.Busy() != 0 {
						t.Errorf("it says %q of itself, %d slots are busy", why, bad.service.Busy())
					}
					if n := u.starts.Load(); n > 30 {
						t.Errorf("%d starts were tried", n)
					}
				})
			})
		}
	}
}

// It tries by itself, and offers again when it can.
func TestNodeOffersAgainWhenItCanStartWorkers(t *testing.T) {
	bubble(t, 1, 2, func(t *testing.T, g *grid) {
		n := g.node(0)
		var well atomic.Bool
		n.cripple(false, func(process.Spec) bool { return !well.Load() })
		id := g.submit(0, jobs.Spec{Args: ticking(1), Min: 1, Max: 1})
		g.await(0, id, time.Minute, func(st jobs.Status) bool { return len(st.Warnings) > 0 })
		wantRow(t, "could not start it", g.declined(id))
		g.await(0, id, 5*time.Minute, func(jobs.Status) bool { return n.service.Broken() != "" })
		time.Sleep(time.Minute)
		ex, err := n.service.Explain(id)
		if err != nil {
			t.Fatal(err)
		}
		if st := g.await(0, id, time.Minute, func(jobs.Status) bool { return true }); st.State != jobs.Pending || !strings.Contains(st.Reason+strings.Join(reasonsOf(ex), " "), "cannot start workers: start supervisor: resource temporarily unavailable") {
			t.Errorf("the job is %s: %s, %v", st.State, st.Reason, reasonsOf(ex))
		}
		wantRow(t, "cannot start workers", g.declined(id))
		well.Store(true)
		if st := g.await(0, id, 3*time.Minute, final); st.State != jobs.Completed || n.service.Broken() != "" {
			t.Errorf("the job is %s: %s; the node says %q", st.State, st.Reason, n.service.Broken())
		}
	})
}

func reasonsOf(ex jobs.Explanation) (list []string) {
	for why := range ex.Declined {
		list = append(list, why)
	}
	return list
}

// What a job alone cannot do is its own fault: it fails, and the node goes on.
func TestWhatATrialShows(t *testing.T) {
	bubble(t, 1, 2, func(t *testing.T, g *grid) {
		n := g.node(0)
		n.cripple(true, func(spec process.Spec) bool { return !isTrial(spec) && len(spec.Args) > 2 })
		for range 4 {
			id := g.submit(0, jobs.Spec{Args: []string{"tick", "1", "absurd"}, Min: 1, Max: 1})
			if st := g.await(0, id, time.Minute, final); st.State != jobs.Failed || st.ExitCode != 125 || !strings.Contains(st.Reason, "fork: resource temporarily unavailable") {
				t.Errorf("the job is %s with %d: %s", st.State, st.ExitCode, st.Reason)
			}
		}
		if why := n.service.Broken(); why != "" {
			t.Errorf("the node says %q", why)
		}
		id := g.submit(0, jobs.Spec{Args: []string{"no-such-command"}, Min: 1, Max: 1})
		if st := g.await(0, id, time.Minute, final); st.ExitCode != 127 {
			t.Errorf("the job is %s with %d: %s", st.State, st.ExitCode, st.Reason)
		}
		id = g.submit(0, jobs.Spec{Args: ticking(1), Min: 1, Max: 1})
		if st := g.await(0, id, time.Minute, final); st.State != jobs.Completed {
			t.Errorf("the next job is %s: %s", st.State, st.Reason)
		}
	})
}

// A moment without room for a process costs nobody anything.
func TestStartThatFailsOnceIsTriedAgain(t *testing.T) {
	bubble(t, 1, 2, func(t *testing.T, g *grid) {
		var failed atomic.Bool
		g.node(0).cripple(true, func(process.Spec) bool { return !failed.Swap(true) })
		id := g.submit(0, jobs.Spec{Args: ticking(1), Min: 2, Max: 2})
		if st := g.await(0, id, time.Minute, final); st.State != jobs.Completed || len(st.Warnings) > 0 || g.output(0, id, 0) != ticks(0, 1) || g.output(0, id, 1) != ticks(1, 1) {
			t.Errorf("the job is %s (%s), warned %v", st.State, st.Reason, st.Warnings)
		}
	})
}
