package agent_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/agent"
	"zorilla/jobs/journal"
	"zorilla/transfer"
	"zorilla/vicinity"
)

func TestJobRunsOnSeveralNodesAndItsFilesComeBack(t *testing.T) {
	bubble(t, 3, 2, func(t *testing.T, g *grid) {
		origin := g.node(0)
		file := filepath.Join(t.TempDir(), "data.txt")
		if err := os.WriteFile(file, []byte("input"), 0o644); err != nil {
			t.Fatal(err)
		}
		inputs, err := transfer.ExpandInputs([]string{file})
		if err != nil {
			t.Fatal(err)
		}
		tree, err := transfer.Ingest(t.Context(), origin.store, inputs)
		if err != nil {
			t.Fatal(err)
		}
		hash, err := transfer.SaveManifest(origin.store, tree)
		if err != nil {
			t.Fatal(err)
		}
		id := g.submit(0, jobs.Spec{Args: []string{"write", "out", "rank $ZORILLA_RANK of $ZORILLA_SIZE"}, Min: 6, Max: 6, Inputs: hash, Outputs: []string{"out", "missing-*"}})
		st := g.await(0, id, time.Minute, final)
		if st.State != jobs.Completed || len(st.Outputs) != 6 {
			t.Fatalf("got %s (%s) with %d outputs", st.State, st.Reason, len(st.Outputs))
		}
		for _, out := range st.Outputs {
			m, err := transfer.LoadManifest(origin.store, out.Manifest)
			if err != nil {
				t.Fatal(err)
			}
			b, err := origin.store.Get(m.Entries[0].Chunks[0], nil)
			if want := fmt.Sprintf("rank %d of 6\n", out.Rank); err != nil || string(b) != want {
				t.Errorf("rank %d left %q, %v, want %q", out.Rank, b, err, want)
			}
		}
		if len(st.Warnings) != 1 || !strings.Contains(st.Warnings[0], "missing-*") {
			t.Errorf("got warnings %q, want one for all, that no rank has missing-*", st.Warnings)
		}
		nodes := map[vicinity.ID]int{}
		for _, w := range st.Workers {
			nodes[w.Node]++
		}
		if len(nodes) != 3 {
			t.Errorf("the workers ran on %v, want all three nodes", nodes)
		}
	})
}

func TestSecondJobWaitsForRoomAndOutputIsKeptApart(t *testing.T) {
	bubble(t, 2, 2, func(t *testing.T, g *grid) {
		first := g.submit(0, jobs.Spec{Args: []string{"sleep", "10"}, Min: 4, Max: 4})
		g.await(0, first, time.Minute, func(st jobs.Status) bool { return st.State == jobs.Running })
		second := g.submit(1, jobs.Spec{Args: []string{"echo", "rank $ZORILLA_RANK"}, Min: 3, Max: 3})
		begun := time.Now()
		time.Sleep(5 * time.Second)
		e, err := g.node(1).service.Explain(second)
		if err != nil || e.Declined["busy"] != 2 {
			t.Errorf("got %+v, %v, want two busy nodes", e, err)
		}
		g.await(0, first, time.Minute, final)
		st := g.await(1, second, time.Minute, final)
		if st.State != jobs.Completed {
			t.Fatalf("got %s: %s", st.State, st.Reason)
		}
		if d := time.Since(begun); d > 12*time.Second {
			t.Errorf("the second job ended %v after the first began, want it to use the room at once", d)
		}
		for rank := range 3 {
			if got, want := g.output(1, second, rank), fmt.Sprintf("rank %d\n", rank); got != want {
				t.Errorf("rank %d wrote %q, want %q", rank, got, want)
			}
		}
	})
}

func TestExitCodesOfJobs(t *testing.T) {
	bubble(t, 2, 4, func(t *testing.T, g *grid) {
		for _, c := range []struct {
			args  []string
			spec  jobs.Spec
			state jobs.State
			code  int
		}{
			{[]string{"echo"}, jobs.Spec{Min: 2, Max: 2}, jobs.Completed, 0},
			{[]string{"fail", "7"}, jobs.Spec{Min: 2, Max: 2}, jobs.Failed, 7},
			{[]string{"sleep", "100"}, jobs.Spec{Min: 2, Max: 2, Walltime: codec.Duration(3 * time.Second)}, jobs.Timeout, 124},
			{[]string{"sleep", "1"}, jobs.Spec{Min: 100, Max: 100, GiveUp: codec.Duration(9 * time.Second)}, jobs.Failed, 125},
			{[]string{"no such program"}, jobs.Spec{Min: 1, Max: 1}, jobs.Failed, 127},
		} {
			c.spec.Args = c.args
			st := g.await(0, g.submit(0, c.spec), time.Minute, final)
			if st.State != c.state || st.ExitCode != c.code {
				t.Errorf("%v ended as %s with %d (%s), want %s with %d", c.args, st.State, st.ExitCode, st.Reason, c.state, c.code)
			}
		}
		id := g.submit(0, jobs.Spec{Args: []string{"sleep", "1000"}, Min: 3, Max: 3})
		g.await(0, id, time.Minute, func(st jobs.Status) bool { return st.State == jobs.Running })
		if err := g.node(0).service.Cancel(id, "enough", false); err != nil {
			t.Fatal(err)
		}
		if st := g.await(0, id, time.Second, final); st.State != jobs.Cancelled || st.ExitCode != 130 {
			t.Errorf("got %s with %d", st.State, st.ExitCode)
		}
		time.Sleep(10 * time.Second)
		for i := range 2 {
			if n := g.node(i).runner.Running(); n != 0 {
				t.Errorf("%d workers run at node %d after the end of all jobs", n, i)
			}
			if n := g.node(i).service.Busy(); n != 0 {
				t.Errorf("%d slots are busy at node %d after the end of all jobs", n, i)
			}
		}
	})
}

func TestNodeVanishes(t *testing.T) {
	bubble(t, 4, 2, func(t *testing.T, g *grid) {
		malleable := g.submit(0, jobs.Spec{Args: []string{"sleep", "60"}, Min: 2, Max: 4})
		g.await(0, malleable, time.Minute, func(st jobs.Status) bool { return st.State == jobs.Running && len(st.Workers) == 4 })
		rigid := g.submit(3, jobs.Spec{Args: []string{"sleep", "60"}, Min: 4, Max: 4})
		st := g.await(3, rigid, time.Minute, func(st jobs.Status) bool { return st.State == jobs.Running })
		var victim vicinity.ID
		for _, w := range st.Workers {
			if w.Node != g.order[3] {
				victim = w.Node
			}
		}
		g.nodes[victim].kill()
		if st := g.await(3, rigid, 20*time.Second, final); st.State != jobs.NodeFail || st.ExitCode != 125 {
			t.Errorf("the rigid job is %s with %d", st.State, st.ExitCode)
		}
		// Take a node away from the malleable job as well.
		st, _, err := g.node(0).service.Status(malleable)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range st.Workers {
			if n := g.nodes[w.Node]; w.Node != g.order[0] && n.live.Load() != nil {
				n.kill()
				break
			}
		}
		st = g.await(0, malleable, 3*time.Minute, final)
		if st.State != jobs.Completed || len(st.Workers) < 4 {
			t.Errorf("the malleable job is %s (%s) with %d workers", st.State, st.Reason, len(st.Workers))
		}
		again := false
		for _, w := range st.Workers {
			again = again || w.Attempt > 1
		}
		if !again {
			t.Errorf("no rank has a second attempt: %+v", st.Workers)
		}
	})
}

func TestOriginIsKilledAndComesBack(t *testing.T) {
	bubble(t, 3, 2, func(t *testing.T, g *grid) {
		done := g.submit(0, jobs.Spec{Args: []string{"echo", "hello"}, Min: 1, Max: 1})
		g.await(0, done, time.Minute, final)
		// All slots of the origin are taken, so that the next job runs elsewhere.
		local := g.submit(0, jobs.Spec{Args: []string{"sleep", "1000"}, Min: 2, Max: 2})
		g.await(0, local, time.Minute, func(st jobs.Status) bool { return st.State == jobs.Running })
		away := g.submit(0, jobs.Spec{Args: []string{"sleep", "30"}, Min: 2, Max: 2})
		g.await(0, away, time.Minute, func(st jobs.Status) bool { return st.State == jobs.Running })
		g.node(0).kill()
		time.Sleep(5 * time.Second)
		g.node(0).start()
		if st := g.await(0, done, time.Second, final); st.State != jobs.Completed || g.output(0, done, 0) != "hello\n" {
			t.Errorf("the finished job is %s with output %q", st.State, g.output(0, done, 0))
		}
		if st := g.await(0, away, time.Minute, final); st.State != jobs.Completed {
			t.Errorf("the job elsewhere is %s: %s", st.State, st.Reason)
		}
		if st := g.await(0, local, time.Minute, final); st.State != jobs.NodeFail {
			t.Errorf("the job whose workers died with the origin is %s: %s", st.State, st.Reason)
		}
	})
}

func TestNodeThatTakesItsWorkersAlongTellsOrigins(t *testing.T) {
	bubble(t, 3, 2, func(t *testing.T, g *grid) {
		for i := range 3 {
			g.node(i).stop()
		}
		g.nodeLimit = -1
		for i := range 3 {
			g.node(i).start()
		}
		id := g.submit(0, jobs.Spec{Args: []string{"sleep", "20"}, Min: 5, Max: 5})
		st := g.await(0, id, time.Minute, func(st jobs.Status) bool { return st.State == jobs.Running })
		time.Sleep(time.Second) // now it does
		begun := time.Now()
		g.nodes[st.Workers[4].Node].stop()
		st = g.await(0, id, time.Minute, final)
		if st.State != jobs.NodeFail || !strings.Contains(st.Reason, "leaving") {
			t.Errorf("got %s: %s", st.State, st.Reason)
		}
		if d := time.Since(begun); d > 8*time.Second {
			t.Errorf("it took %v to hear of it", d)
		}
	})
}

func TestStdinReachesRankZero(t *testing.T) {
	bubble(t, 2, 1, func(t *testing.T, g *grid) {
		id := g.submit(0, jobs.Spec{Args: []string{"cat"}, Min: 2, Max: 2, Stdin: true})
		r, w := io.Pipe()
		go func() {
			for i := range 5 {
				fmt.Fprintln(w, "line", i)
				time.Sleep(time.Second)
			}
			w.Close()
		}()
		if err := g.node(0).service.Stdin(t.Context(), id, r); err != nil {
			t.Fatal(err)
		}
		st := g.await(0, id, time.Minute, final)
		if got := g.output(0, id, 0); st.State != jobs.Completed || got != "line 0\nline 1\nline 2\nline 3\nline 4\n" {
			t.Errorf("got %s and %q", st.State, got)
		}
		if got := g.output(0, id, 1); got != "" {
			t.Errorf("rank 1 got %q", got)
		}
	})
}

func TestOutputThatCannotBeStoredIsNotALostNode(t *testing.T) {
	bubble(t, 2, 1, func(t *testing.T, g *grid) {
		id := g.submit(0, jobs.Spec{Args: []string{"echo", "hello"}, Min: 2, Max: 2})
		dir := filepath.Join(g.node(0).dir, "jobs")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		blocked := filepath.Join(dir, string(id))
		if err := os.WriteFile(blocked, nil, 0o644); err != nil { // as bad as a full disk
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		st, _, err := g.node(0).service.Status(id)
		if err != nil || st.State != jobs.Running || !strings.Contains(st.Reason, "its origin cannot store output, which waits at its nodes") {
			t.Fatalf("got %s (%s), %v", st.State, st.Reason, err)
		}
		wantRow(t, "the origin cannot keep output", seen(st))
		if err := os.Remove(blocked); err != nil {
			t.Fatal(err)
		}
		if st := g.await(0, id, time.Minute, final); st.State != jobs.Completed || st.Reason != "" || g.output(0, id, 1) != "hello\n" {
			t.Errorf("got %s (%s)", st.State, st.Reason)
		}
	})
}

// broken is a journal that cannot be read.
type broken struct{ journal.Journal }

func (broken) Load(func(journal.Entry) error) error { return errors.New("disk on fire") }

func TestNobodyWaitsForAServiceThatCannotStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := agent.New(agent.Config{Self: vicinity.Member{ID: vicinity.ID("z" + strings.Repeat("a", 26)), Slots: 1}, Store: transfer.NewMemStore(0), Journal: broken{}, Rand: rand.New(rand.NewPCG(1, 1))})
		submitted := make(chan error)
		go func() {
			_, err := s.Submit(context.Background(), jobs.Spec{Args: []string{"echo"}, Min: 1, Max: 1, Slots: 1})
			submitted <- err
		}()
		if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "on fire") {
			t.Errorf("got %v", err)
		}
		if err := <-submitted; err == nil {
			t.Error("a job was accepted")
		}
		s.List(-1)
	})
}

// Nodes measure the distances between each other for a job that wants them.
func TestBoundOnPairs(t *testing.T) {
	bubble(t, 3, 2, func(t *testing.T, g *grid) {
		spec := jobs.Spec{Args: []string{"tick", "1"}, Min: 6, Max: 6, Placing: jobs.Placing{MaxRTT: codec.Duration(2 * hop)}}
		st := g.await(0, g.submit(0, spec), time.Minute, final)
		if w := st.Worst; st.State != jobs.Completed || w == nil || w.Estimated || time.Duration(w.RTT) != 2*hop {
			t.Errorf("the job is %s: %s; worst pair %v", st.State, st.Reason, w)
		}
		spec.MaxRTT, spec.GiveUp = codec.Duration(hop), codec.Duration(10*time.Second)
		id := g.submit(0, spec)
		time.Sleep(5 * time.Second)
		st, _, err := g.node(0).service.Status(id)
		if err != nil {
			t.Fatal(err)
		}
		wantRow(t, "enough is offered, by nodes too far apart", seen(st))
		st = g.await(0, id, time.Minute, final)
		if st.State != jobs.Failed || !strings.Contains(st.Reason, "up to 2ms apart, want 1ms") {
			t.Errorf("the job is %s: %s", st.State, st.Reason)
		}
	})
}

// A job that no member can run says so, and is given up after ten minutes.
func TestGivesUpWhatNobodyCanRun(t *testing.T) {
	bubble(t, 3, 2, func(t *testing.T, g *grid) {
		id := g.submit(0, jobs.Spec{Args: []string{"tick", "1"}, Min: 1, Max: 1, Slots: 9})
		time.Sleep(9 * time.Minute)
		st, _, err := g.node(0).service.Status(id)
		if err != nil {
			t.Fatal(err)
		}
		wantRow(t, "no member can run it", seen(st))
		wantRow(t, "for ten minutes no member could run it", seen(g.await(0, id, 2*time.Minute, final)))
	})
}

// What nodes have measured long ago they measure again for a job to which it matters.
func TestOldPairsAreMeasuredAgain(t *testing.T) {
	bubble(t, 3, 2, func(t *testing.T, g *grid) {
		for i := 1; i < 3; i++ {
			g.node(i).moved.Store(true)
		}
		spec := jobs.Spec{Args: []string{"tick", "1"}, Min: 6, Max: 6, Placing: jobs.Placing{MaxRTT: codec.Duration(3 * hop)}}
		st := g.await(0, g.submit(0, spec), time.Minute, final)
		if w := st.Worst; st.State != jobs.Completed || w == nil || w.Estimated || time.Duration(w.RTT) != 3*hop {
			t.Errorf("the job is %s: %s; worst pair %v, want 3 hops", st.State, st.Reason, w)
		}
	})
}
