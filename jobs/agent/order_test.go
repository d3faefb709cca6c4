package agent_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"zorilla/internal/codec"
	"zorilla/internal/steps"
	"zorilla/jobs"
	"zorilla/jobs/agent"
	"zorilla/jobs/internal/participant"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/journal"
	"zorilla/jobs/process"
	"zorilla/jobs/remover"
	"zorilla/transfer"
)

// inSteps has all that a grid does to disks, processes and other nodes logged. Nodes 0 and 1 are
// started anew with that.
func inSteps(g *grid) *steps.Log {
	log := &steps.Log{}
	g.during(func(_, _ *gridNode, path string) error {
		log.Did("request", path)
		return nil
	})
	for i := range 2 {
		n := g.node(i)
		n.stop()
		n.wrap = func(m *journal.Memory) journal.Journal { return steppedJournal{m, log} }
		n.wrapStore = func(s transfer.PinStore) transfer.PinStore { return steppedStore{s, log} }
		n.wrapRunner = func(r agent.Runner) agent.Runner { return steppedRunner{r, log} }
		n.clean = func(root string, pace remover.Pace, keep ...string) error {
			if len(keep) == 0 {
				log.Did("remove", filepath.Base(root), claimIn(root))
			}
			return process.CleanFiles(root, pace, keep...)
		}
		n.start()
	}
	return log
}

// steppedJournal logs what is to be written, and when it is durable: a while later, in which nobody
// is to have heard of it.
type steppedJournal struct {
	journal.Journal
	log *steps.Log
}

func (j steppedJournal) Append(entries []journal.Entry, done func(error)) {
	var events []string
	for _, e := range entries {
		var ev record.Event
		if err := codec.Unmarshal(e.Data, &ev); err != nil {
			panic(err)
		}
		what := string(ev.Kind)
		for _, ra := range ev.Ranks {
			what += fmt.Sprintf(" %d.%d", ra.Rank, ra.Attempt)
		}
		events = append(events, what)
		j.log.Did("write", what)
	}
	j.Journal.Append(entries, func(err error) {
		time.AfterFunc(20*hop, func() {
			for _, what := range events {
				j.log.Did("durable", what, err)
			}
			done(err)
		})
	})
}

// steppedStore logs which blobs are durable.
type steppedStore struct {
	transfer.PinStore
	log *steps.Log
}

func (s steppedStore) Sync(hashes ...transfer.Hash) error {
	err := s.PinStore.Sync(hashes...)
	for _, h := range hashes {
		s.log.Did("durable", h, err)
	}
	return err
}

// steppedRunner logs what becomes of processes.
type steppedRunner struct {
	agent.Runner
	log *steps.Log
}

func (r steppedRunner) Start(ctx context.Context, spec process.Spec) (process.Worker, error) {
	name := filepath.Base(spec.Root)
	r.log.Did("start", name, claimIn(spec.Root))
	w, err := r.Runner.Start(ctx, spec)
	if err != nil {
		return w, err
	}
	stepped := &steppedWorker{w, r.log, name, make(chan struct{})}
	go func() {
		<-w.Done()
		r.log.Did("ended", name)
		close(stepped.done)
	}()
	return stepped, nil
}

type steppedWorker struct {
	process.Worker
	log  *steps.Log
	name string
	done chan struct{} // closed when that it has ended is logged
}

func (w *steppedWorker) Done() <-chan struct{} { return w.done }

func (w *steppedWorker) Stop(notice, grace time.Duration) {
	w.log.Did("stop", w.name)
	w.Worker.Stop(notice, grace)
}

// claimIn says what claim a worker's directory has.
func claimIn(root string) string {
	switch c, err := participant.LoadClaim(root); {
	case err != nil:
		return "without a claim"
	case c.Start == nil:
		return "with a claim that does not let it start"
	}
	return "with its claim"
}

// What is named is durable before it is named, and what is durable is told afterwards: blobs before
// the journal names them, events before anybody hears of them, a claim before its process, the files
// of a worker until its origin has them.
func TestOrderOfStepsOfAJob(t *testing.T) {
	bubble(t, 2, 1, func(t *testing.T, g *grid) {
		log := inSteps(g)
		input := []byte("input")
		tree, err := transfer.NewManifest([]transfer.Entry{{
			Path: "in", Size: int64(len(input)), Chunks: transfer.HashList{transfer.HashOf(input)},
		}})
		if err != nil {
			t.Fatal(err)
		}
		inputs, err := transfer.SaveManifest(g.node(0).store, tree)
		if err != nil || g.node(0).store.Put(transfer.HashOf(input), input) != nil {
			t.Fatal(err)
		}
		id := g.submit(0, jobs.Spec{Args: ticking(2), Min: 2, Max: 2, Inputs: inputs, Outputs: []string{"left"}})
		st := g.await(0, id, time.Minute, final)
		if st.State != jobs.Completed || len(st.Outputs) != 2 {
			t.Fatalf("the job is %s: %s", st.State, st.Reason)
		}
		time.Sleep(stopGrace) // until the workers are removed
		for _, h := range []transfer.Hash{inputs, transfer.HashOf(input)} {
			log.InOrder(t, fmt.Sprint("durable ", h, " <nil>"), "write submitted", "durable submitted <nil>", "write granted 0.1")
		}
		log.InOrder(t, "durable granted 0.1 <nil>", "request /v1/peer/grant")
		for _, o := range st.Outputs {
			ra := fmt.Sprintf("%d.%d", o.Rank, o.Attempt)
			name := participant.RootName(id, jobs.RankAttempt{Rank: o.Rank, Attempt: o.Attempt})
			log.InOrder(t, "durable started 0.1 1.1 <nil>", "start "+name+" with its claim", "ended "+name, "write exited "+ra, "durable exited "+ra+" <nil>",
				fmt.Sprint("durable ", o.Manifest, " <nil>"), "write collected "+ra, "durable collected "+ra+" <nil>", "remove "+name+" without a claim")
			log.InOrder(t, "write collected "+ra, "write ended")
		}
	})
}

// The directory of a worker is removed when its process has ended: else nobody would find that again.
func TestOrderOfStepsOfACancelledJob(t *testing.T) {
	bubble(t, 2, 1, func(t *testing.T, g *grid) {
		log := inSteps(g)
		id := g.submit(0, jobs.Spec{Args: []string{"part"}, Min: 2, Max: 2}) // whose ranks take a while to end
		g.await(0, id, time.Minute, func(st jobs.Status) bool { return st.State == jobs.Running })
		if err := g.node(0).service.Cancel(id, "cancelled by a user", true); err != nil {
			t.Fatal(err)
		}
		g.await(0, id, time.Minute, final)
		time.Sleep(2 * stopGrace)
		for rank := range 2 {
			name := participant.RootName(id, jobs.RankAttempt{Rank: rank, Attempt: 1})
			log.InOrder(t, "start "+name+" with its claim", "stop "+name, "ended "+name, "remove "+name+" without a claim")
		}
		log.InOrder(t, "durable ended <nil>", "request /v1/peer/release")
	})
}
