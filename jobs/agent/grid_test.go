package agent_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"zorilla/flood"
	"zorilla/jobs"
	"zorilla/jobs/agent"
	"zorilla/jobs/journal"
	"zorilla/jobs/process"
	"zorilla/jobs/remover"
	"zorilla/testnet"
	"zorilla/transfer"
	"zorilla/transfer/exchange"
	"zorilla/vicinity"
)

// grid is a few services that reach each other by function calls, with a
// millisecond of virtual time on the way.
type grid struct {
	t     *testing.T
	nodes map[vicinity.ID]*gridNode
	order []vicinity.ID

	nodeLimit time.Duration
	hook      atomic.Pointer[func(from, to *gridNode, path string) error]
	tap       func(from vicinity.ID, flooded bool, payload []byte) // sees all packets; set before any is sent
}

type gridNode struct {
	g          *grid
	self       vicinity.Member
	dir        string
	log        *journal.Memory
	wrap       func(*journal.Memory) journal.Journal // nil = as it is
	wrapStore  func(transfer.PinStore) transfer.PinStore
	store      *transfer.MemStore
	runner     *testnet.Runner
	wrapRunner func(agent.Runner) agent.Runner
	runAs      *jobs.User
	cancel     context.CancelFunc
	closeDisk  context.CancelFunc
	clean      func(root string, pace remover.Pace, keep ...string) error // nil = process.CleanFiles
	nap        atomic.Int64                                               // how long its loop stands still when it floods next
	done       chan error
	moved      atomic.Bool           // its round trips were measured long ago, and are 3 hops since then
	probed     atomic.Bool           // they have been measured again
	freeDisk   func() (int64, error) // nil = without limit
	keepFree   int64
	touchDisk  func() error // nil = the disk is taken to answer
	limits     func() jobs.Limits
	hooks      agent.HookRunner // nil = none

	service *agent.Service // for the test itself
	live    atomic.Pointer[gridLife]
}

// gridLife is what others reach of a node, nil while it is down.
type gridLife struct {
	service *agent.Service
	handler http.Handler
}

const (
	hop       = time.Millisecond
	stopGrace = 5 * time.Second
)

func newGrid(t *testing.T, nodes, slots int) *grid {
	g := &grid{t: t, nodes: map[vicinity.ID]*gridNode{}}
	for i := range nodes {
		id := vicinity.ID(fmt.Sprintf("z%cbcd%s", 'a'+i, strings.Repeat("a", 22)))
		n := &gridNode{g: g, dir: filepath.Join(t.TempDir(), "n"), log: journal.NewMemory(), store: transfer.NewMemStore(1 << 30), runner: testnet.NewRunner(map[string]testnet.Program{"tick": tick, "copy": copyOf, "tell": tell, "part": part, "listen": listen, "vanish": vanish, "leave": leave, "keepsake": keepsake, "swell": swell, "flood": floods, "falter": falter}),
			self: vicinity.Member{ID: id, Name: fmt.Sprint("node", i), Addrs: []string{fmt.Sprintf("10.0.0.%d:5444", i+1)}, Slots: slots, Version: 4}}
		g.nodes[id] = n
		g.order = append(g.order, id)
		n.start()
	}
	return g
}

// tick writes a line a second and leaves a file.
func tick(ctx context.Context, w *testnet.FakeWorker) int {
	n, err := strconv.Atoi(w.Args[1])
	if err != nil {
		return 2
	}
	for i := range n {
		fmt.Fprintf(w.Stdout, "rank %s at %d\n", w.Getenv("ZORILLA_RANK"), i)
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return 1
		}
	}
	if err := os.WriteFile(filepath.Join(w.Dir, "left"), []byte(w.Getenv("ZORILLA_RANK")), 0o644); err != nil {
		return 3
	}
	return 0
}

// part fails as rank 0 after a second; other ranks wait to be stopped and take
// three seconds for their last words.
func part(ctx context.Context, w *testnet.FakeWorker) int {
	if w.Getenv("ZORILLA_RANK") == "0" {
		time.Sleep(time.Second)
		return 3
	}
	<-ctx.Done()
	time.Sleep(3 * time.Second)
	fmt.Fprintln(w.Stdout, "last words")
	return 0
}

func (g *grid) node(i int) *gridNode { return g.nodes[g.order[i]] }

// during has f called whenever a request comes, before it is served.
func (g *grid) during(f func(from, to *gridNode, path string) error) { g.hook.Store(&f) }

// start starts the node, anew after stop or kill.
func (n *gridNode) start() {
	client := &http.Client{Transport: n}
	rnd := rand.New(rand.NewPCG(1, uint64(n.self.ID[1])))
	id := func(r *http.Request) (vicinity.ID, error) { return vicinity.ID(r.Header.Get("From-Node")), nil }
	peers := &exchange.HTTP{Client: client, URL: func(id vicinity.ID) string { return "https://" + string(id) }}
	files := exchange.New(exchange.Config{Self: n.self.ID, Store: n.store, Source: peers.Blob, Trees: peers, PeerID: id, Rand: rand.New(rand.NewPCG(2, uint64(n.self.ID[1])))})
	var log journal.Journal = n.log
	if n.wrap != nil {
		log = n.wrap(n.log)
	}
	var store transfer.PinStore = n.store
	if n.wrapStore != nil {
		store = n.wrapStore(store)
	}
	var runner agent.Runner = n.runner
	if n.wrapRunner != nil {
		runner = n.wrapRunner(runner)
	}
	clean := n.clean
	if clean == nil {
		clean = process.CleanFiles
	}
	n.service = agent.New(agent.Config{
		Self: n.self, Dir: n.dir, Overlay: n, Client: client, Knock: n.knock,
		PeerID:  id,
		Sign:    func(string, []byte) []byte { return make([]byte, 96) },
		Verify:  func(string, vicinity.ID, []byte, []byte) error { return nil },
		Journal: log, Store: store, Fetch: files.Fetch, Rand: rnd, Workers: agent.Workers{Runner: runner, RunAs: n.runAs, CleanRoot: clean, KeepFree: n.keepFree, NodeLimit: n.g.nodeLimit, Limits: n.limits},
		Disk: agent.Disk{Free: n.freeDisk, Touch: n.touchDisk}, Hooks: n.hooks,
	})
	mux := http.NewServeMux()
	mux.Handle(agent.PeerPrefix, n.service.PeerHandler())
	mux.Handle(exchange.BlobPath, files.Handler())
	mux.Handle(exchange.TreePath, files.Handler())
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
	n.log = n.log.Reopen()
	n.live.Store(nil)
}

// kill makes the node's machine vanish: nobody reaches it, it reaches nobody,
// what it had not journalled is lost.
func (n *gridNode) kill() {
	n.runner.Kill()
	n.crash()
}

// crash makes the node vanish, but not its workers. What its service does to
// their directories while it ends would not happen.
func (n *gridNode) crash() {
	n.live.Store(nil)
	n.closeDisk()
	n.log = n.log.Reopen()
	synctest.Wait() // nobody is at work in a directory now
	work, aside := filepath.Join(n.dir, "work"), n.g.t.TempDir()
	roots, _ := os.ReadDir(work) // there may be none
	for _, r := range roots {
		if err := os.CopyFS(filepath.Join(aside, r.Name()), os.DirFS(filepath.Join(work, r.Name()))); err != nil {
			n.g.t.Error(err)
		}
	}
	n.cancel()
	<-n.done
	for _, r := range roots {
		back, was := filepath.Join(work, r.Name()), filepath.Join(aside, r.Name())
		var err error
		if _, gone := os.Stat(back); gone != nil {
			err = errors.Join(os.Rename(was, back), process.MarkRoot(back, string(n.self.ID)))
		} else {
			err = os.Rename(filepath.Join(was, "entries"), filepath.Join(back, "entries"))
		}
		if err != nil {
			n.g.t.Error(err)
		}
	}
}

func (n *gridNode) Flood(_ int, payload []byte) flood.Flood {
	time.Sleep(time.Duration(n.nap.Swap(0)))
	if n.g.tap != nil {
		n.g.tap(n.self.ID, true, payload)
	}
	for _, o := range n.g.nodes {
		if o != n {
			time.AfterFunc(hop, func() {
				if to := o.live.Load(); to != nil && n.live.Load() != nil && to.service.CheckAdvertisement(n.self.ID, payload) == nil {
					to.service.Advertised(flood.Message{Payload: payload, TTL: 1, Hops: 1})
				}
			})
		}
	}
	return flood.Flood{Copies: len(n.g.nodes) - 1}
}

func (n *gridNode) Extend(flood.Flood, []flood.Reach) {
	n.g.t.Error("extended a flood that reaches everybody")
}

func (n *gridNode) Measured(_ vicinity.ID, within time.Duration) time.Duration {
	switch {
	case within == 0 || !n.moved.Load():
		return 2 * hop
	case n.probed.Load():
		return 3 * hop
	}
	return 0
}

func (n *gridNode) Nearer(time.Duration, int) []vicinity.Measured { return nil }

func (n *gridNode) Distance(a, b vicinity.ID) time.Duration { return 2 * hop }

func (n *gridNode) Bearings() []byte { return nil }

func (n *gridNode) Placed(id vicinity.ID, _ []byte) { n.g.t.Errorf("took a place of node %s", id) }

func (n *gridNode) Probe(vicinity.ID) {
	if n.probed.Store(true); !n.moved.Load() {
		n.g.t.Error("had a node measured whose distance is known")
	}
}

func (n *gridNode) Send(to vicinity.ID, payload []byte) {
	if n.g.tap != nil {
		n.g.tap(n.self.ID, false, payload)
	}
	time.AfterFunc(hop, func() {
		if o := n.g.nodes[to].live.Load(); o != nil && n.live.Load() != nil {
			o.service.Receive(n.self.ID, payload)
		}
	})
}

func (n *gridNode) Member(id vicinity.ID) (vicinity.Member, bool) {
	o := n.g.nodes[id]
	if o == nil { // as that of a rank that is looked for
		return vicinity.Member{}, false
	}
	return o.self, true
}

func (n *gridNode) Size() int { return len(n.g.nodes) }

func (n *gridNode) Learn(vicinity.ID, []string) {}

func (n *gridNode) knock(ctx context.Context, id vicinity.ID) error {
	o := n.g.nodes[id]
	time.Sleep(2 * hop)
	if o.live.Load() == nil || n.live.Load() == nil {
		return syscall.ECONNREFUSED
	}
	return ctx.Err()
}

// RoundTrip carries a request to the handler of the node that it is for.
func (n *gridNode) RoundTrip(r *http.Request) (*http.Response, error) {
	o := n.g.nodes[vicinity.ID(r.URL.Host)]
	time.Sleep(hop)
	if o == nil || o.live.Load() == nil || n.live.Load() == nil {
		return nil, errors.New("no route to host")
	}
	if hook := n.g.hook.Load(); hook != nil {
		if err := (*hook)(n, o, r.URL.Path); err != nil {
			return nil, err
		}
	}
	live := o.live.Load() // it may have died meanwhile
	if live == nil {
		return nil, errors.New("connection reset")
	}
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
		defer func() {
			if why := recover(); why == http.ErrAbortHandler {
				_ = w.CloseWithError(io.ErrUnexpectedEOF)
			} else if why != nil {
				panic(why)
			}
		}()
		live.handler.ServeHTTP(answer, r)
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

// stop ends all nodes that live, which must have nothing left by then.
func (g *grid) stop() {
	time.Sleep(2 * stopGrace)
	for _, id := range g.order {
		if n := g.nodes[id]; n.live.Load() != nil {
			n.stop()
			if busy, _ := filepath.Glob(filepath.Join(n.dir, "work", "*")); len(busy) > 0 {
				g.t.Errorf("work directories are left: %v", busy)
			}
		}
	}
	time.Sleep(time.Minute)
}

// output returns what a rank wrote to its standard output.
func (g *grid) output(i int, id jobs.ID, rank int) string {
	var b strings.Builder
	err := g.node(i).service.Output(g.t.Context(), id, jobs.OutputQuery{Rank: rank}, func(o jobs.Output) error {
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
