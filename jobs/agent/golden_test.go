package agent_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"zorilla/internal/codec"
	"zorilla/internal/golden"
	"zorilla/jobs"
	"zorilla/jobs/journal"
	"zorilla/jobs/process"
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

// goldenSeconds is how long the job runs that had not ended.
const goldenSeconds = 20

// writeGoldenState has two nodes run jobs, lets them crash while one runs and
// another waits for it, and keeps what they leave: the origin's journal, what it
// stored of the output, and the claims of both.
func writeGoldenState(t *testing.T, dir string) {
	var entries []journal.Entry
	synctest.Test(t, func(t *testing.T) {
		g := newGrid(t, 2, 2)
		ended := func(spec jobs.Spec) jobs.ID {
			id := g.submit(0, spec)
			g.await(0, id, time.Minute, final)
			return id
		}
		ended(jobs.Spec{Name: "forgotten", Args: []string{"fail", "4"}, Min: 1, Max: 1})
		time.Sleep(8 * 24 * time.Hour)
		ended(jobs.Spec{Name: "kept", Key: "once", Args: []string{"keepsake", "hello"}, Min: 1, Max: 1, Outputs: []string{"left"}})
		ended(jobs.Spec{Name: "retried", Args: []string{"fail", "7"}, Min: 3, Max: 3, Failing: jobs.Failing{Retries: 1}})
		array := numbered(5, "0.05")
		array.Name = "array"
		ended(array)
		id := g.submit(0, jobs.Spec{Name: "running", Args: ticking(goldenSeconds), Min: 4, Max: 4, Outputs: []string{"left"}})
		g.await(0, id, time.Minute, func(st jobs.Status) bool { return st.State == jobs.Running })
		g.submit(0, jobs.Spec{Name: "waiting", Args: []string{"echo", "at last"}, Min: 1, Max: 1, After: []jobs.Dependency{{Kind: jobs.AfterOK, Job: id}}})
		time.Sleep(5 * time.Second)
		for i := range 2 {
			n := g.node(i)
			n.crash()
			keepGolden(t, n.dir, filepath.Join(dir, fmt.Sprint("node", i)))
			n.runner.Kill()
		}
		if err := g.node(0).log.Load(func(e journal.Entry) error { entries = append(entries, e); return nil }); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
	})
	b, err := journal.Open(filepath.Join(dir, "node0", "journal.db"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	b.Append(entries, func(e error) { err = e; cancel() })
	if err := errors.Join(b.Run(ctx), err); err != nil {
		t.Fatal(err)
	}
}

// keepGolden copies what a node stored of jobs, and its claims.
func keepGolden(t *testing.T, from, to string) {
	roots, err := filepath.Glob(filepath.Join(from, "work", "*"))
	for _, root := range roots {
		at := filepath.Join(to, "work", filepath.Base(root))
		b, readErr := process.Noted(root, "claim")
		err = errors.Join(err, readErr, os.MkdirAll(at, 0o755), os.WriteFile(filepath.Join(at, "claim"), codec.Seal(b), 0o644))
	}
	if stored := filepath.Join(from, "jobs"); err == nil {
		if _, none := os.Stat(stored); none == nil {
			err = os.CopyFS(filepath.Join(to, "jobs"), os.DirFS(stored))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestGoldenState starts nodes on what those of earlier versions left: jobs that
// ended are as they were, and one that ran goes on in the workers that it had.
func TestGoldenState(t *testing.T) {
	golden.Read(t, "state", writeGoldenState, func(t *testing.T, version, dir string) {
		entries := entriesOf(t, filepath.Join(dir, "node0"))
		bubble(t, 2, 2, func(t *testing.T, g *grid) {
			defer func() {
				if t.Failed() { // perhaps by a call that returns at once: no bubble ends while nodes run
					g.stop()
				}
			}()
			time.Sleep(time.Hour) // it is later than when they were stopped
			for i := range 2 {
				g.node(i).stop()
				g.node(i).upgrade(filepath.Join(dir, fmt.Sprint("node", i)))
			}
			g.node(0).append(entries)
			for i := range 2 {
				g.node(i).start()
				if busy := g.node(i).service.Busy(); busy != 2 {
					t.Errorf("%d slots are busy at node %d", busy, i)
				}
			}
			by := g.byName()
			g.wantGolden(by)
			g.sameAttempts(0, by["running"].ID, goldenSeconds)
			if st := g.await(0, by["waiting"].ID, time.Minute, final); st.State != jobs.Completed || g.output(0, st.ID, 0) != "at last\n" {
				t.Errorf("the job that waited is %s: %s", st.State, st.Reason)
			}
			if n := g.node(0).runner.Started() + g.node(1).runner.Started(); n != 4+1 {
				t.Errorf("%d workers were started, want the 4 of before and 1", n)
			}
		})
	})
}

// entriesOf reads a copy of a node's journal: opening it changes it.
func entriesOf(t *testing.T, dir string) (entries []journal.Entry) {
	b, err := os.ReadFile(filepath.Join(dir, "journal.db"))
	path := filepath.Join(t.TempDir(), "journal.db")
	if err := errors.Join(err, os.WriteFile(path, b, 0o600)); err != nil {
		t.Fatal(err)
	}
	bolt, err := journal.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(bolt.Load(func(e journal.Entry) error { entries = append(entries, e); return nil }), bolt.Close())
	if err != nil || len(bolt.Lost()) > 0 {
		t.Fatal(err, bolt.Lost())
	}
	return entries
}

// upgrade gives a stopped node what an earlier one left, and workers in the places
// that its claims name.
func (n *gridNode) upgrade(left string) {
	t := n.g.t
	if err := errors.Join(os.RemoveAll(n.dir), os.CopyFS(n.dir, os.DirFS(left))); err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(n.dir, "work", "*"))
	if err != nil || len(found) == 0 {
		t.Fatalf("no claims: %v", err)
	}
	for _, root := range found {
		claim, err := os.ReadFile(filepath.Join(root, "claim"))
		err = errors.Join(err, os.RemoveAll(root), process.MakeRoot(root, string(n.self.ID)), os.WriteFile(filepath.Join(root, "claim"), claim, 0o600))
		if err != nil {
			t.Fatal(err)
		}
		rank := strings.Split(filepath.Base(root), "-")[1]
		if _, err := n.runner.Start(t.Context(), process.Spec{Root: root, Args: ticking(goldenSeconds), Env: []string{"ZORILLA_RANK=" + rank}}); err != nil {
			t.Fatal(err)
		}
	}
}

// append adds entries to the journal of a stopped node.
func (n *gridNode) append(entries []journal.Entry) {
	ctx, cancel := context.WithCancel(n.g.t.Context())
	n.log.Append(entries, func(err error) {
		if err != nil {
			n.g.t.Error(err)
		}
		cancel()
	})
	if err := n.log.Run(ctx); err != nil {
		n.g.t.Fatal(err)
	}
	n.log = n.log.Reopen()
}

// byName is what node 0 tells of its jobs.
func (g *grid) byName() map[string]jobs.Status {
	by := map[string]jobs.Status{}
	for _, st := range g.node(0).service.List(100) {
		if by[st.Spec.Name] = st; st.Brief {
			continue
		}
		whole, _, err := g.node(0).service.Status(st.ID)
		if err != nil {
			g.t.Fatal(err)
		}
		by[st.Spec.Name] = whole
	}
	return by
}

// wantGolden checks what the journal says of the jobs of writeGoldenState.
func (g *grid) wantGolden(by map[string]jobs.Status) {
	for name, want := range map[string]struct {
		state    jobs.State
		code     int
		attempts []int
		output   string // of rank 0
	}{
		"kept":      {jobs.Completed, 0, []int{1}, "hello\n"},
		"retried":   {jobs.Failed, 7, []int{2, 2, 2}, ""},
		"array":     {jobs.Completed, 0, nil, ""},
		"forgotten": {jobs.Failed, 4, nil, ""},
		"running":   {jobs.Running, -1, []int{1, 1, 1, 1}, ticks(0, 4)},
		"waiting":   {jobs.Pending, -1, []int{0}, ""},
	} {
		st := by[name]
		if st.State != want.state || st.ExitCode != want.code || st.Broken != "" || st.Submitted.IsZero() {
			g.t.Errorf("%s is %s with %d (%s)", name, st.State, st.ExitCode, st.Reason)
			continue
		}
		for rank, attempt := range want.attempts {
			if len(st.Workers) != len(want.attempts) || st.Workers[rank].Attempt != attempt {
				g.t.Errorf("%s: the workers are %+v", name, st.Workers)
				break
			}
		}
		if want.output != "" && !strings.HasPrefix(g.output(0, st.ID, 0), want.output) {
			g.t.Errorf("%s: rank 0 wrote %q", name, g.output(0, st.ID, 0))
		}
	}
	kept, retried, array := by["kept"], by["retried"], by["array"]
	if len(kept.Outputs) != 1 || kept.Outputs[0].Files != 1 || kept.Spec.Key != "once" || len(kept.Damaged) > 0 {
		g.t.Errorf("kept: %+v, damaged %q", kept.Outputs, kept.Damaged)
	}
	if w := retried.Workers[0]; w.Exit == nil || w.Exit.Code != 7 || !strings.Contains(strings.Join(retried.Warnings, "\n"), "trying again") {
		g.t.Errorf("retried: %+v, %q", w, retried.Warnings)
	}
	if a := array.Array; a == nil || a.Done != 5 || a.Tasks != 5 {
		g.t.Errorf("array: %+v", a)
	}
	g.eachOnce(0, array.ID, 5)
	if st := by["forgotten"]; st.State != jobs.Failed || st.ExitCode != 4 || st.Forgotten.IsZero() || !st.Brief {
		g.t.Errorf("forgotten: %+v", st)
	}
}
