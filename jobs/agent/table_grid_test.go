package agent_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/testnet"
)

// listen is a program that prints its hosts whenever it is told of a change,
// and ends after a minute.
func listen(ctx context.Context, w *testnet.FakeWorker) int {
	end := time.After(time.Minute)
	for told := "start"; ; {
		epoch, err := os.ReadFile(w.Getenv("ZORILLA_EPOCH_FILE"))
		if err != nil {
			return 3
		}
		hosts, err := os.ReadFile(w.Getenv("ZORILLA_HOSTFILE"))
		if err != nil {
			return 4
		}
		fmt.Fprintf(w.Stdout, "%s epoch %s %s\n", told, strings.TrimSpace(string(epoch)), strings.ReplaceAll(strings.TrimSpace(string(hosts)), "\n", ", "))
		select {
		case n := <-w.Signals:
			told = fmt.Sprint("signal ", n)
		case <-end:
			return 0
		case <-ctx.Done():
			return 1
		}
	}
}

// hostsOf is the host file of a job with one rank on each of the nodes, by rank.
func hostsOf(nodes ...*gridNode) string {
	var lines []string
	for _, n := range nodes {
		lines = append(lines, strings.TrimSuffix(n.self.Addrs[0], ":5444")+" slots=1")
	}
	return strings.Join(lines, ", ")
}

// lastLine returns what a rank wrote last.
func (g *grid) lastLine(i int, id jobs.ID, rank int) string {
	lines := strings.Split(strings.TrimSpace(g.output(i, id, rank)), "\n")
	return lines[len(lines)-1]
}

// spread runs a job of listeners, one on each node, and returns the node of
// each rank.
func (g *grid) spread(n int) (jobs.ID, []*gridNode) {
	g.t.Helper()
	id := g.submit(0, jobs.Spec{Args: []string{"listen"}, Min: 1, Max: n, Notices: jobs.Notices{SignalOnChange: "USR2"}})
	st := g.await(0, id, time.Minute, func(st jobs.Status) bool {
		if st.State != jobs.Running || len(st.Workers) < n {
			return false
		}
		for _, w := range st.Workers {
			if w.State != jobs.WorkerRunning {
				return false
			}
		}
		return true
	})
	var nodes []*gridNode
	for _, w := range st.Workers {
		nodes = append(nodes, g.nodes[w.Node])
	}
	return id, nodes
}

func TestWorkersLearnOfChanges(t *testing.T) {
	bubble(t, 4, 1, func(t *testing.T, g *grid) {
		id, at := g.spread(4)
		time.Sleep(5 * time.Second)
		all := hostsOf(at...)
		for rank := range 4 {
			if got := g.lastLine(0, id, rank); !strings.HasSuffix(got, " "+all) {
				t.Errorf("rank %d knows %q, want %q", rank, got, all)
			}
		}
		var gone int
		for rank, n := range at {
			if n != g.node(0) {
				gone = rank
			}
		}
		before := g.lastLine(0, id, (gone+1)%4)
		at[gone].kill()
		time.Sleep(partSilent + 4*time.Second)
		left := append(append([]*gridNode{}, at[:gone]...), at[gone+1:]...)
		for rank := range 4 {
			got := g.lastLine(0, id, rank)
			if rank != gone && (!strings.HasPrefix(got, "signal 12 epoch ") || !strings.HasSuffix(got, " "+hostsOf(left...)) || got == before) {
				t.Errorf("rank %d knows %q, want %q", rank, got, hostsOf(left...))
			}
		}
		at[gone].start() // its room is used for the rank again
		time.Sleep(20 * time.Second)
		for rank := range 4 {
			if got := g.lastLine(0, id, rank); !strings.HasSuffix(got, " "+all) {
				t.Errorf("rank %d knows %q after the rank was replaced, want %q", rank, got, all)
			}
		}
		if st := g.await(0, id, 5*time.Minute, final); st.State != jobs.Completed {
			t.Errorf("the job is %s: %s", st.State, st.Reason)
		}
	})
}

// partSilent is how long a node may be silent.
const partSilent = 10 * time.Second

// A node that was down when the table changed tells its workers after its start,
// and does not tell what they know.
func TestWorkersLearnOfChangesAfterARestart(t *testing.T) {
	bubble(t, 4, 1, func(t *testing.T, g *grid) {
		id, at := g.spread(4)
		time.Sleep(5 * time.Second)
		var others []int
		for rank, n := range at {
			if n != g.node(0) {
				others = append(others, rank)
			}
		}
		down, gone := others[0], others[1]
		said := g.output(0, id, down)
		for range 2 { // nothing has changed
			at[down].crash()
			time.Sleep(2 * time.Second)
			at[down].start()
			time.Sleep(5 * time.Second)
		}
		if got := g.output(0, id, down); got != said {
			t.Errorf("after a restart without a change it wrote %q", strings.TrimPrefix(got, said))
		}
		at[gone].kill()
		time.Sleep(partSilent - 2*time.Second)
		at[down].crash()
		time.Sleep(4 * time.Second)
		at[down].start()
		time.Sleep(5 * time.Second)
		left := append(append([]*gridNode{}, at[:gone]...), at[gone+1:]...)
		if got := g.lastLine(0, id, down); !strings.HasPrefix(got, "signal 12 epoch ") || !strings.HasSuffix(got, " "+hostsOf(left...)) {
			t.Errorf("it knows %q, want %q", got, hostsOf(left...))
		}
		g.node(0).crash() // the origin goes on counting
		time.Sleep(2 * time.Second)
		g.node(0).start()
		at[gone].start()
		time.Sleep(20 * time.Second)
		for rank := range 4 {
			if got := g.lastLine(0, id, rank); !strings.HasSuffix(got, " "+hostsOf(at...)) {
				t.Errorf("rank %d knows %q, want %q", rank, got, hostsOf(at...))
			}
		}
		if st := g.await(0, id, 5*time.Minute, final); st.State != jobs.Completed {
			t.Errorf("the job is %s: %s", st.State, st.Reason)
		}
	})
}
