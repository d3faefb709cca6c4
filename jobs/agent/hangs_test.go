package agent_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/agent"
	"zorilla/jobs/process"
	"zorilla/transfer"
)

// ice is what a node waits for while its disk is frozen.
type ice struct {
	gate    atomic.Pointer[chan struct{}]
	started atomic.Int64 // processes
}

func (i *ice) freeze() { c := make(chan struct{}); i.gate.Store(&c) }
func (i *ice) thaw()   { close(*i.gate.Swap(nil)) }

func (i *ice) wait() {
	if c := i.gate.Load(); c != nil {
		<-*c
	}
}

// icyStore is a store, and icyRunner a runner, on such a disk.
type (
	icyStore struct {
		transfer.PinStore
		*ice
	}
	icyRunner struct {
		agent.Runner
		*ice
		started *atomic.Int64
	}
)

func (s icyStore) Get(h transfer.Hash, buf []byte) ([]byte, error) {
	s.wait()
	return s.PinStore.Get(h, buf)
}

func (s icyStore) Read(h transfer.Hash, buf []byte, f func(p []byte, size int) error) ([]byte, error) {
	s.wait()
	return s.PinStore.Read(h, buf, f)
}

func (r icyRunner) Start(ctx context.Context, spec process.Spec) (process.Worker, error) {
	r.started.Add(1)
	r.wait()
	return r.Runner.Start(ctx, spec)
}

// hang gives a node a disk that can freeze, under the inputs of workers, what comes before the
// starts of their processes, or these; aware has the node look after it.
func (n *gridNode) hang(where string, aware bool) *ice {
	n.stop()
	i := &ice{}
	if aware {
		n.touchDisk = func() error { i.wait(); return nil }
	}
	frozen := &ice{}
	switch where {
	case "inputs":
		n.wrapStore = func(s transfer.PinStore) transfer.PinStore { return icyStore{s, i} }
	case "before":
		n.limits = func() (l jobs.Limits) { i.wait(); return l }
	case "start":
		frozen = i
	}
	n.wrapRunner = func(r agent.Runner) agent.Runner { return icyRunner{r, frozen, &i.started} }
	n.start()
	return i
}

// What a node was granted whose disk hangs runs elsewhere: the node says so itself after ten
// seconds and offers nothing until its disk answers; of one that does not, its origin finds out.
func TestJobsGoOnBesideADiskThatHangs(t *testing.T) {
	for _, test := range []struct {
		where  string
		aware  bool
		within time.Duration
		why    string
	}{
		{"inputs", true, 20 * time.Second, ": its disk does not answer"},
		{"before", true, 20 * time.Second, " its disk does not answer"},
		{"start", true, 20 * time.Second, " its disk does not answer"},
		{"inputs", false, 80 * time.Second, ": no progress for 1m0s: its disk or program may hang"},
		{"start", false, 80 * time.Second, " no progress for 1m0s: its disk or program may hang"},
	} {
		t.Run(fmt.Sprint(test.where, " ", test.aware), func(t *testing.T) {
			bubble(t, 3, 2, func(t *testing.T, g *grid) {
				n := g.node(1)
				frozen := n.hang(test.where, test.aware)
				frozen.freeze()
				spec := jobs.Spec{Args: ticking(1), Inputs: g.inputsOf(make([]byte, 100)), Min: 3, Max: 3, Strategy: "spread"}
				id := g.submit(0, spec)
				st := g.await(0, id, test.within, final)
				retried := ""
				for _, w := range st.Workers {
					retried += w.Retried + "\n"
				}
				if st.State != jobs.Completed || !strings.Contains(retried, n.self.Name) || !strings.Contains(retried, test.why) {
					t.Errorf("the job is %s: %s; %s", st.State, st.Reason, retried)
				}
				warned := strings.Contains(strings.Join(st.Warnings, "\n"), "placed again: node node1 (zbbcd): no progress for 1m0s: its disk or program may hang")
				if warned == test.aware {
					t.Errorf("warnings: %q", st.Warnings)
				}
				if why := n.service.Broken(); (why == "its disk does not answer") != test.aware {
					t.Errorf("the node says %q", why)
				}
				frozen.thaw()
				time.Sleep(time.Minute)
				if started := frozen.started.Load(); test.where != "start" && started != 0 {
					t.Errorf("%d workers were started that run elsewhere", started)
				}
				spec.Min, spec.Max = 6, 6
				if st := g.await(0, g.submit(0, spec), time.Minute, final); st.State != jobs.Completed || n.service.Broken() != "" {
					t.Errorf("with a disk that answers the job is %s: %s; the node says %q", st.State, st.Reason, n.service.Broken())
				}
			})
		})
	}
}
