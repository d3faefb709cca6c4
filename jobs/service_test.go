package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/journal"
	"zorilla/testnet"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// grid is a few services that reach each other by function calls, with a
// millisecond of virtual time on the way.
type grid struct {
	t     *testing.T
	nodes map[vicinity.ID]*gridNode
	order []vicinity.ID
}

type gridNode struct {
	g         *grid
	self      vicinity.Member
	dir       string
	log       *journal.Memory
	store     *transfer.MemStore
	runner    *testnet.Runner
	cancel    context.CancelFunc
	closeDisk context.CancelFunc
	done      chan error

	service *jobs.Service // for the test itself
	live    atomic.Pointer[gridLife]
}

// gridLife is what others reach of a node, nil while it is down.
type gridLife struct {
	service *jobs.Service
	handler http.Handler
}

const hop = time.Millisecond

func newGrid(t *testing.T, nodes, slots int) *grid {
	g := &grid{t: t, nodes: map[vicinity.ID]*gridNode{}}
	for i := range nodes {
		id := vicinity.ID(fmt.Sprintf("z%cbcd%s", 'a'+i, strings.Repeat("a", 22)))
		n := &gridNode{g: g, dir: filepath.Join(t.TempDir(), "n"), log: journal.NewMemory(), store: transfer.NewMemStore(1 << 30), runner: testnet.NewRunner(nil),
			self: vicinity.Member{ID: id, Name: fmt.Sprint("node", i), Addrs: []string{fmt.Sprintf("10.0.0.%d:5444", i+1)}, Slots: slots}}
		g.nodes[id] = n
		g.order = append(g.order, id)
		n.start()
	}
	return g
}

func (g *grid) node(i int) *gridNode { return g.nodes[g.order[i]] }

// start starts the node, anew after stop or kill.
func (n *gridNode) start() {
	client := &http.Client{Transport: n}
	rnd := rand.New(rand.NewPCG(1, uint64(n.self.ID[1])))
	fetch := transfer.NewFetcher(transfer.FetcherConfig{Store: n.store, Rand: rnd,
		Source: transfer.HTTPSource(client, func(id vicinity.ID) string { return "https://" + string(id) })})
	n.service = jobs.New(jobs.Config{
		Self: n.self, Dir: n.dir, Overlay: n, Client: client,
		PeerID:  func(r *http.Request) (vicinity.ID, error) { return vicinity.ID(r.Header.Get("From-Node")), nil },
		Sign:    func(string, []byte) []byte { return make([]byte, 96) },
		Verify:  func(string, vicinity.ID, []byte, []byte) error { return nil },
		Journal: n.log, Store: n.store, Fetch: fetch.Fetch, Runner: n.runner, CleanRoot: os.RemoveAll, Rand: rnd,
	})
	mux := http.NewServeMux()
	mux.Handle(jobs.PeerPrefix, n.service.PeerHandler())
	mux.Handle("/v1/blobs/", transfer.Handler(n.store))
	n.live.Store(&gridLife{n.service, mux})
	ctx, cancel := context.WithCancel(context.Background())
	n.cancel, n.done = cancel, make(chan error, 1)
	disk, closeDisk := context.WithCancel(context.Background())
	n.closeDisk = closeDisk
	go n.log.Run(disk)
	go func() { n.done <- n.service.Run(ctx) }()
	synctest.Wait()
}

// stop ends the node as SIGTERM does.
func (n *gridNode) stop() {
	n.cancel()
	if err := <-n.done; err != nil {
		n.g.t.Errorf("node %s: %v", n.self.Name, err)
	}
	n.closeDisk()
	n.live.Store(nil)
}

// kill makes the node vanish: nobody reaches it, it reaches nobody, what it
// had not journalled is lost.
func (n *gridNode) kill() {
	n.live.Store(nil)
	n.closeDisk()
	n.log = n.log.Reopen()
	n.runner.Kill()
	n.cancel()
	<-n.done
}

func (n *gridNode) Flood(_ int, payload []byte) int {
	for _, o := range n.g.nodes {
		if o != n {
			time.AfterFunc(hop, func() {
				if to := o.live.Load(); to != nil && n.live.Load() != nil && to.service.CheckAdvertisement(n.self.ID, payload) == nil {
					to.service.Advertised(payload)
				}
			})
		}
	}
	return len(n.g.nodes) - 1
}

func (n *gridNode) Send(to vicinity.ID, payload []byte) {
	time.AfterFunc(hop, func() {
		if o := n.g.nodes[to].live.Load(); o != nil && n.live.Load() != nil {
			o.service.Receive(n.self.ID, payload)
		}
	})
}

func (n *gridNode) Member(id vicinity.ID) (vicinity.Member, time.Duration, bool) {
	o := n.g.nodes[id]
	return o.self, 2 * hop, true
}

func (n *gridNode) Learn(vicinity.ID, []string) {}

// RoundTrip carries a request to the handler of the node that it is for.
func (n *gridNode) RoundTrip(r *http.Request) (*http.Response, error) {
	o := n.g.nodes[vicinity.ID(r.URL.Host)]
	time.Sleep(hop)
	if o == nil || o.live.Load() == nil || n.live.Load() == nil {
		return nil, errors.New("no route to host")
	}
	handler := o.live.Load().handler
	r = r.Clone(r.Context())
	r.Header.Set("From-Node", string(n.self.ID))
	if r.Body == nil {
		r.Body = http.NoBody
	}
	body, w := io.Pipe()
	answer := &response{header: http.Header{}, body: w, status: make(chan int, 1)}
	go func() {
		defer w.Close()
		defer answer.WriteHeader(http.StatusOK)
		handler.ServeHTTP(answer, r)
	}()
	select {
	case code := <-answer.status:
		context.AfterFunc(r.Context(), func() { body.CloseWithError(r.Context().Err()) })
		return &http.Response{StatusCode: code, Status: http.StatusText(code), Header: answer.header, Body: body, ContentLength: -1, Request: r}, nil
	case <-r.Context().Done():
		body.CloseWithError(r.Context().Err())
		return nil, r.Context().Err()
	}
}

type response struct {
	header http.Header
	body   *io.PipeWriter
	status chan int
	sent   bool
}

func (r *response) Header() http.Header { return r.header }
func (r *response) Flush()              { r.WriteHeader(http.StatusOK) }
func (r *response) WriteHeader(code int) {
	if !r.sent {
		r.sent = true
		r.status <- code
	}
}
func (r *response) Write(p []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return r.body.Write(p)
}

// submit submits a job at node i.
func (g *grid) submit(i int, spec jobs.Spec) jobs.ID {
	g.t.Helper()
	if spec.Slots == 0 {
		spec.Slots = 1
	}
	id, err := g.node(i).service.Submit(g.t.Context(), spec)
	if err != nil {
		g.t.Fatal(err)
	}
	return id
}

// await waits until the job of node i is as ok wants.
func (g *grid) await(i int, id jobs.ID, limit time.Duration, ok func(jobs.Status) bool) jobs.Status {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), limit)
	defer cancel()
	since := uint64(0)
	for {
		st, version, err := g.node(i).service.Await(ctx, id, since)
		if err != nil {
			g.t.Fatalf("job %s is %s (%s) with %+v after %v: %v", id, st.State, st.Reason, st.Workers, limit, err)
		}
		if ok(st) {
			return st
		}
		since = version
	}
}

func final(st jobs.Status) bool { return st.State.Final() }

func (g *grid) stop() {
	for _, id := range g.order {
		if n := g.nodes[id]; n.live.Load() != nil {
			n.stop()
		}
	}
	time.Sleep(time.Minute)
	for _, id := range g.order {
		if busy, _ := filepath.Glob(filepath.Join(g.nodes[id].dir, "work", "*")); len(busy) > 0 {
			g.t.Errorf("work directories are left: %v", busy)
		}
	}
}

// output returns what a rank wrote to its standard output.
func (g *grid) output(i int, id jobs.ID, rank int) string {
	var b strings.Builder
	err := g.node(i).service.Output(g.t.Context(), id, rank, false, func(o jobs.Output) error {
		b.Write(o.Data)
		return nil
	})
	if err != nil {
		g.t.Fatal(err)
	}
	return b.String()
}

func bubble(t *testing.T, nodes, slots int, f func(t *testing.T, g *grid)) {
	synctest.Test(t, func(t *testing.T) {
		g := newGrid(t, nodes, slots)
		f(t, g)
		g.stop()
	})
}

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
		if len(st.Warnings) != 6 || !strings.Contains(st.Warnings[0], "missing-*") {
			t.Errorf("got warnings %q, want one for each rank that has no missing-*", st.Warnings)
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
		if err := g.node(0).service.Cancel(id, "enough"); err != nil {
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

func TestLeavingNodeTellsOrigins(t *testing.T) {
	bubble(t, 3, 2, func(t *testing.T, g *grid) {
		id := g.submit(0, jobs.Spec{Args: []string{"sleep", "20"}, Min: 5, Max: 5})
		st := g.await(0, id, time.Minute, func(st jobs.Status) bool { return st.State == jobs.Running })
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
