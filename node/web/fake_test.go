package web

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/work"
	"zorilla/node/api"
	"zorilla/node/usage"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// fake is a node that a test plays: it keeps jobs and their output, versions
// them, and tells of every change, as api.Service promises.
type fake struct {
	mu      sync.Mutex // guards the fields below
	self    api.NodeInfo
	nodes   []api.NodeInfo
	list    []jobs.ID // newest first
	jobs    map[jobs.ID]*fakeJob
	queue   []jobs.Waiting
	changed chan struct{}
	broken  error // what every call returns
	store   *transfer.MemStore
	acts    []string // what was changed
}

type fakeJob struct {
	status  jobs.Status
	why     jobs.Explanation
	version uint64
	output  []jobs.Output
	codes   []int8 // of an array's tasks; -1 = not done
}

var _ Service = (*fake)(nil)

func newFake(nodes []api.NodeInfo) *fake {
	return &fake{self: nodes[0], nodes: nodes, jobs: make(map[jobs.ID]*fakeJob), store: transfer.NewMemStore(1 << 30), changed: make(chan struct{})}
}

func (f *fake) change(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
	close(f.changed)
	f.changed = make(chan struct{})
}

// put adds a job or replaces its status.
func (f *fake) put(st jobs.Status) {
	f.change(func() {
		j := f.jobs[st.ID]
		if j == nil {
			j = &fakeJob{why: jobs.Explanation{ID: st.ID}}
			f.jobs[st.ID] = j
			f.list = slices.Insert(f.list, 0, st.ID)
		}
		j.status = st
		j.version++
	})
}

func (f *fake) explain(ex jobs.Explanation) {
	f.change(func() { f.jobs[ex.ID].why = ex })
}

// print makes output of a rank.
func (f *fake) print(id jobs.ID, rank int, s work.Stream, text string) {
	f.change(func() {
		j := f.jobs[id]
		w := &j.status.Workers[rank]
		o := jobs.Output{Rank: rank, Attempt: 1, Stream: s, Offset: w.Stdout, Data: []byte(text)}
		if s == work.Stderr {
			o.Offset = w.Stderr
			w.Stderr += int64(len(text))
		} else {
			w.Stdout += int64(len(text))
		}
		j.output = append(j.output, o)
		j.version++
	})
}

func (f *fake) Changes() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changed
}

func (f *fake) Node(context.Context) (api.NodeInfo, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.self, f.broken
}

func (f *fake) Nodes(context.Context) ([]api.NodeInfo, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.nodes), f.broken
}

func (f *fake) Survey(ctx context.Context) ([]api.NodeInfo, error) { return f.Nodes(ctx) }

func (f *fake) Chunk(_ context.Context, _ string, h transfer.Hash) ([]byte, error) {
	data, err := f.store.Get(h, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", api.ErrNotFound, err)
	}
	return data, nil
}

func (f *fake) Select(_ context.Context, q jobs.Selection) (d jobs.Selected, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range f.list {
		st := f.copyLocked(f.jobs[id])
		d.Add(&q, st.Summary())
	}
	d.Sort()
	d.Ended = d.Ended[min(q.Skip, len(d.Ended)):]
	d.Ended = d.Ended[:min(q.Limit, len(d.Ended))]
	return d, f.broken
}

func (f *fake) Queue(context.Context) ([]jobs.Waiting, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.queue), f.broken
}

func (f *fake) copyLocked(j *fakeJob) jobs.Status {
	st := j.status
	st.Workers = slices.Clone(st.Workers)
	st.Rounds = slices.Clone(st.Rounds)
	return st
}

func (f *fake) findLocked(name string) (*fakeJob, error) {
	if f.broken != nil {
		return nil, f.broken
	}
	var found *fakeJob
	for id, j := range f.jobs {
		switch {
		case string(id) == name:
			return j, nil
		case strings.HasPrefix(string(id), name) && found != nil:
			return nil, fmt.Errorf("job %q: %w", name, api.ErrAmbiguous)
		case strings.HasPrefix(string(id), name):
			found = j
		}
	}
	if found == nil {
		return nil, fmt.Errorf("job %q: %w", name, api.ErrNotFound)
	}
	return found, nil
}

func (f *fake) Job(_ context.Context, name string) (jobs.Status, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	j, err := f.findLocked(name)
	if err != nil {
		return jobs.Status{}, err
	}
	return f.copyLocked(j), nil
}

func (f *fake) Explain(_ context.Context, name string) (jobs.Explanation, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	j, err := f.findLocked(name)
	if err != nil {
		return jobs.Explanation{}, err
	}
	return j.why, nil
}

// Tasks sums an array up as a node does.
func (f *fake) Tasks(_ context.Context, name string, q jobs.TaskQuery) (page jobs.TaskPage, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	j, err := f.findLocked(name)
	if err != nil {
		return page, err
	}
	for place := q.From; place < len(j.codes); place++ {
		if q.Failed && j.codes[place] <= 0 {
			continue
		}
		if q.Limit > 0 && len(page.Tasks) == q.Limit {
			page.Next = place
			break
		}
		page.Tasks = append(page.Tasks, jobs.TaskStatus{ID: place + 1, Done: true, Code: int(j.codes[place]), Tries: 1, Node: nodeID(1), Took: codec.Duration(time.Second)})
	}
	picture := []byte(strings.Repeat(string(jobs.CellDone), min(q.Cells, len(j.codes))))
	for place, code := range j.codes[:len(j.codes)*min(len(picture), 1)] {
		switch cell := place * len(picture) / len(j.codes); {
		case code > 0:
			picture[cell] = jobs.CellFailed
		case code < 0 && picture[cell] == jobs.CellDone:
			picture[cell] = jobs.CellWaits
		}
	}
	page.Picture = string(picture)
	return page, nil
}

func (f *fake) Await(ctx context.Context, name string, since uint64) (jobs.Status, uint64, error) {
	for {
		changed := f.Changes()
		f.mu.Lock()
		j, err := f.findLocked(name)
		if err != nil || j.version != since {
			defer f.mu.Unlock()
			if err != nil {
				return jobs.Status{}, 0, err
			}
			return f.copyLocked(j), j.version, nil
		}
		f.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return jobs.Status{}, 0, fmt.Errorf("await job %s: %w", name, ctx.Err())
		}
	}
}

func (f *fake) Output(ctx context.Context, name string, q api.OutputQuery, do func(jobs.Output) error) error {
	for at := 0; ; {
		changed := f.Changes()
		f.mu.Lock()
		j, err := f.findLocked(name)
		if err != nil {
			f.mu.Unlock()
			return err
		}
		pieces, final := j.output[at:], j.status.State.Final()
		f.mu.Unlock()
		at += len(pieces)
		for _, o := range pieces {
			if (q.Rank < 0 || q.Rank == o.Rank) && (o.Stream == work.Files) == q.Files {
				if err := do(o); err != nil {
					return err
				}
			}
		}
		if final || !q.Follow {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// nodeID is the ID of the nth node of all tests.
func nodeID(n int) vicinity.ID {
	seed := make([]byte, ed25519.SeedSize)
	seed[0], seed[1] = byte(n), byte(n>>8)
	return vicinity.IDFromKey(ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey))
}

// network makes nodes at a few sites, with places (in ms) and round trips that fit.
func network(n int) []api.NodeInfo {
	rnd := rand.New(rand.NewPCG(7, 7))
	sites := []struct {
		name  string
		place []float64
	}{{"amsterdam", []float64{0, 0, 0}}, {"delft", []float64{3, 4, 1}}, {"leiden", []float64{6, -3, 0}}, {"rennes", []float64{-14, 8, 2}}}
	names := strings.Fields("anteater badger caracal dingo ermine fossa genet hyena ibex jackal kinkajou lynx marten numbat otter polecat quoll ratel stoat tayra")
	var out []api.NodeInfo
	for i := range n {
		site := sites[i%len(sites)]
		v := api.NodeInfo{Member: vicinity.Member{
			ID: nodeID(i), Name: names[i%len(names)], Site: site.name, Slots: 4 << (i % 3), Memory: 16 << 30, Platform: "linux/amd64", Enforces: []string{"landlock", "memory"},
		}}
		v.Cluster = site.name
		if i%5 == 4 {
			v.Site = "" // an owner who gave none; the cluster has a name all the same
		}
		if i > 0 && i <= 64 {
			v.Told, v.Busy = time.Now(), (i*7%9)*v.Slots/8
			v.Lately = lately(i)
		}
		if i == 7 {
			v.State = "draining"
		}
		for _, x := range site.place {
			v.Position = append(v.Position, x+rnd.NormFloat64()*.35)
		}
		if i == 0 {
			v.Self, v.Started, v.Release, v.Busy = true, time.Now().Add(-3*time.Hour-12*time.Minute), "0.1.0", 3
			v.Traffic, v.Lately = traffic(n), lately(0)
		} else {
			sum := 0.05
			for d, x := range v.Position {
				sum += (x - out[0].Position[d]) * (x - out[0].Position[d])
			}
			v.RTT = codec.Duration(time.Duration(sum*100) * time.Millisecond / 1000)
		}
		out = append(out, v)
	}
	for i := 1; i < n && i <= 5; i++ {
		out[min(n-1, 4*i)%n].Neighbour = "near"
	}
	if n > 8 {
		out[3].Neighbour, out[6].Neighbour = "far", "far"
	}
	out[0].Neighbour = ""
	for i := 1; i < n && i <= 64; i++ { // the next ones of its site, and one somewhere else
		for _, l := range []int{i + 4, i + 8, i + 12, i*7 + 2} {
			kind := "near"
			if l == i*7+2 {
				kind = "far"
			}
			if l < n {
				out[i].Links = append(out[i].Links, api.Link{ID: nodeID(l), Kind: kind})
			}
		}
	}
	return out
}

// lately is how the ith node was used.
func lately(i int) *usage.Lately {
	l := &usage.Lately{Load: 1.5, Free: 9 << 30}
	for m := range usage.Minutes - i%20 {
		busy := byte(80 + 60*math.Sin(float64(m+3*i)/7) + float64(m*i*7%40))
		l.Busy, l.Shut = append(l.Busy, busy), append(l.Shut, 0)
		if i == 7 && m > 30 {
			l.Shut[m] = 200 - busy
		}
	}
	return l
}

// traffic is what a node of a network of n has counted.
func traffic(n int) api.Traffic {
	return api.Traffic{
		{Group: "gossip", Name: "packets sent", Value: 120_482, Help: "to members, by this node's parts"},
		{Group: "gossip", Name: "packets received", Value: 131_007, Help: "the same of others"},
		{Group: "gossip", Name: "packets refused", Value: 212, Bad: true, Recent: 12, Help: "packets of another network, or damaged: they do not decrypt"},
		{Group: "gossip", Name: "strangers refused", Value: 3, Bad: true, Recent: 3, Help: "connections with nodes of other networks"},
		{Group: "gossip", Name: "members malformed", Bad: true, Help: "members that describe themselves wrongly"},
		{Group: "vicinity", Name: "number of links", Value: int64(min(8, n-1)), Help: "neighbours now, near and far"},
		{Group: "vicinity", Name: "number of members measured", Value: int64(min(57, n-1)), Help: "members whose round trip is known now"},
		{Group: "vicinity", Name: "messages sent", Value: 17_204, Help: "pings and lists, with their answers"},
		{Group: "vicinity", Name: "bytes sent", Value: 1_620_404, Help: "in these messages"},
		{Group: "vicinity", Name: "malformed", Bad: true, Help: "messages of wrong form"},
		{Group: "flood", Name: "started", Value: 41, Help: "floods of jobs that were submitted here"},
		{Group: "flood", Name: "copies forwarded", Value: 1204, Help: "of floods of others"},
		{Group: "flood", Name: "duplicates", Value: 388, Help: "copies of what had come before: floods run in circles"},
		{Group: "flood", Name: "limited", Value: 17, Help: "floods beyond what one node may send"},
		{Group: "jobs", Name: "forged", Bad: true, Help: "answers that are not signed by the node that they are said to be from"},
	}
}

// sample is a job of n workers, submitted some time ago.
func sample(id string, state jobs.State, nodes []api.NodeInfo, n int, past time.Duration, args ...string) jobs.Status {
	now := time.Now()
	st := jobs.Status{
		ID: jobs.ID(id), Origin: nodes[0].ID, State: state, ExitCode: -1, Submitted: now.Add(-past),
		Spec: jobs.Spec{Args: args, Min: n, Max: n, Slots: 1, Memory: 200e6, Walltime: codec.Duration(10 * time.Minute), Outputs: []string{"part-*"}},
	}
	for i := range n {
		w := jobs.WorkerStatus{Rank: i, Attempt: 1, State: jobs.WorkerWanted}
		if state != jobs.Pending {
			at := nodes[i%len(nodes)]
			w.Node, w.Name, w.RTT, w.State = at.ID, at.Name, at.RTT, jobs.WorkerRunning
		}
		st.Workers = append(st.Workers, w)
	}
	if state != jobs.Pending {
		st.Started = st.Submitted.Add(past / 5)
		st.Staged.Total, st.Staged.Fetched, st.Staged.Cached = 48e6, 96e6, 144e6
	}
	if state.Final() {
		st.Ended, st.ExitCode = now.Add(-past/4), 0
		for i := range st.Workers {
			st.Workers[i].State = jobs.WorkerEnded
			st.Workers[i].Exit = &work.Exit{Cause: work.Exited, Started: st.Started, Ended: st.Ended, CPU: 3.2, Peak: 41e6}
		}
	}
	return st
}

const testToken = "0123456789abcdef0123456789"

func newPage(t *testing.T, s Service) *Handler {
	t.Helper()
	owner, _ := s.(Owner)
	h, err := New(Config{Service: s, Owner: owner, Token: testToken})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// listen takes an address that was in use a moment ago.
func listen(address string) (net.Listener, error) { return net.Listen("tcp", address) }
