// Package apitest has what tests of clients need: [Fake], an api.Service in
// memory whose jobs do what a test tells them, and [Suite], which says how
// every api.Service behaves and is run against the Fake both directly and
// through Handler and Client.
package apitest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"zorilla/jobs"
	"zorilla/node/api"
	"zorilla/transfer"
	"zorilla/vicinity"
)

var _ api.Service = (*Fake)(nil)

// Fake is a Service in memory. Set the exported fields before its first use.
type Fake struct {
	Members []api.NodeInfo // the first one is the node itself
	Token   string
	Page    string
	Waiting []jobs.Waiting // the queue
	// OnSubmit is called in a goroutine of its own for each accepted job.
	OnSubmit func(*Job)

	mu      sync.Mutex
	rnd     *rand.Rand
	jobs    []*Job // oldest first
	chunks  map[transfer.Hash][]byte
	limits  jobs.Limits
	changed chan struct{}
	asked   api.OutputQuery
}

// New returns a Fake of one node.
func New() *Fake {
	self := api.NodeInfo{
		Member: vicinity.Member{
			ID: "zeb2aaaaaaaaaaaaaaaaaaaaaaa", Name: "here", Site: "delft", Addrs: []string{"127.0.0.1:5444"},
			Slots: 4, Memory: 8 << 30, Platform: "linux/amd64", Version: 1,
		},
		Self: true, Release: "test",
		Traffic: api.Traffic{
			{Group: "gossip", Name: "packets sent", Value: 7, Help: "to members"},
			{Group: "gossip", Name: "packets refused", Value: 3, Bad: true, Recent: 1, Help: "of another network"},
		},
	}
	return &Fake{
		Members: []api.NodeInfo{self},
		Token:   "zor1.token",
		Page:    "http://127.0.0.1:5446/?token=t",
		rnd:     rand.New(rand.NewPCG(1, 2)),
		chunks:  map[transfer.Hash][]byte{},
		changed: make(chan struct{}),
	}
}

// Job is a job of a Fake. Its methods may be called from any goroutine.
type Job struct {
	fake    *Fake
	status  jobs.Status
	version uint64
	output  []jobs.Output
	cancel  chan struct{}
	stdin   *io.PipeReader
	stdinW  *io.PipeWriter
}

// Status returns the job's status.
func (j *Job) Status() jobs.Status {
	j.fake.mu.Lock()
	defer j.fake.mu.Unlock()
	return j.copyLocked()
}

func (j *Job) copyLocked() jobs.Status {
	s := j.status
	s.Workers = slices.Clone(s.Workers)
	s.Rounds = slices.Clone(s.Rounds)
	s.Outputs = slices.Clone(s.Outputs)
	s.Warnings = slices.Clone(s.Warnings)
	return s
}

// Update changes the job's status.
func (j *Job) Update(f func(*jobs.Status)) {
	j.fake.change(func() {
		f(&j.status)
		j.version++
		if j.status.State.Final() {
			_ = j.stdin.Close() // never fails; a writer learns that nobody reads
		}
	})
}

// Emit adds output.
func (j *Job) Emit(o jobs.Output) {
	o.Data = bytes.Clone(o.Data)
	j.fake.change(func() { j.output = append(j.output, o) })
}

// Stdin is what clients send to rank 0.
func (j *Job) Stdin() io.Reader { return j.stdin }

// Cancelled is closed when a client cancels the job.
func (j *Job) Cancelled() <-chan struct{} { return j.cancel }

// change runs f with the lock held and tells everybody.
func (f *Fake) change(g func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	g()
	close(f.changed)
	f.changed = make(chan struct{})
}

// Add makes a job with the status, as if it had been submitted long ago.
func (f *Fake) Add(s jobs.Status) *Job {
	r, w := io.Pipe()
	j := &Job{fake: f, status: s, version: 1, cancel: make(chan struct{}), stdin: r, stdinW: w}
	f.change(func() { f.jobs = append(f.jobs, j) })
	return j
}

// Find returns the job with a name as clients give it.
func (f *Fake) Find(name string) (*Job, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.findLocked(name)
}

func (f *Fake) findLocked(name string) (*Job, error) {
	if name == "last" && len(f.jobs) > 0 {
		return f.jobs[len(f.jobs)-1], nil
	}
	var found []*Job
	for _, j := range f.jobs {
		if name != "" && strings.HasPrefix(string(j.status.ID), name) {
			found = append(found, j)
		}
	}
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("job %s: %w: 'zorilla ps' lists the jobs", name, api.ErrNotFound)
	case 1:
		return found[0], nil
	}
	return nil, fmt.Errorf("job %s: %w: %d jobs begin so", name, api.ErrAmbiguous, len(found))
}

// Node implements api.Service.
func (f *Fake) Node(context.Context) (api.NodeInfo, error) { return f.Members[0], nil }

// Nodes implements api.Service.
func (f *Fake) Nodes(context.Context) ([]api.NodeInfo, error) { return slices.Clone(f.Members), nil }

// Survey implements api.Service.
func (f *Fake) Survey(ctx context.Context) ([]api.NodeInfo, error) { return f.Nodes(ctx) }

// Submit implements api.Service.
func (f *Fake) Submit(_ context.Context, spec jobs.Spec) (jobs.ID, error) {
	if err := spec.Validate(); err != nil {
		return "", err
	}
	f.mu.Lock()
	for _, j := range f.jobs {
		if spec.Key != "" && j.status.Spec.Key == spec.Key {
			id := j.status.ID
			f.mu.Unlock()
			return id, nil
		}
	}
	id := jobs.NewID(f.rnd, f.Members[0].ID)
	f.mu.Unlock()
	j := f.Add(jobs.Status{ID: id, Origin: f.Members[0].ID, Spec: spec, State: jobs.Pending, ExitCode: -1, Submitted: time.Now().UTC()})
	if f.OnSubmit != nil {
		go f.OnSubmit(j)
	}
	return id, nil
}

// Jobs implements api.Service.
func (f *Fake) Jobs(context.Context, bool) ([]jobs.Status, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []jobs.Status
	for _, j := range slices.Backward(f.jobs) {
		all = append(all, j.copyLocked())
	}
	return all, nil
}

// Summaries implements api.Service.
func (f *Fake) Summaries(ctx context.Context, all bool) (short []jobs.Summary, err error) {
	list, err := f.Jobs(ctx, all)
	for i := range list {
		short = append(short, list[i].Summary())
	}
	return short, err
}

// Job implements api.Service.
func (f *Fake) Job(_ context.Context, name string) (jobs.Status, error) {
	j, err := f.Find(name)
	if err != nil {
		return jobs.Status{}, err
	}
	return j.Status(), nil
}

// Await implements api.Service.
func (f *Fake) Await(ctx context.Context, name string, since uint64) (jobs.Status, uint64, error) {
	j, err := f.Find(name)
	if err != nil {
		return jobs.Status{}, 0, err
	}
	for {
		f.mu.Lock()
		s, version, changed := j.copyLocked(), j.version, f.changed
		f.mu.Unlock()
		if version != since {
			return s, version, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return jobs.Status{}, 0, ctx.Err()
		}
	}
}

// Tasks implements api.Service: no job is an array.
func (f *Fake) Tasks(_ context.Context, name string, _ jobs.TaskQuery) (jobs.TaskPage, error) {
	j, err := f.Find(name)
	if err == nil {
		err = fmt.Errorf("%w: job %s has no tasks", jobs.ErrNotFound, j.Status().ID)
	}
	return jobs.TaskPage{}, err
}

// Explain implements api.Service.
func (f *Fake) Explain(_ context.Context, name string) (jobs.Explanation, error) {
	j, err := f.Find(name)
	if err != nil {
		return jobs.Explanation{}, err
	}
	s := j.Status()
	e := jobs.Explanation{ID: s.ID, State: s.State, Summary: s.Reason, Rounds: s.Rounds, Declined: map[string]int{}}
	for i, m := range f.Members {
		a := jobs.NodeAnswer{Node: m.ID, Name: m.Name, RTT: m.RTT, At: s.Submitted}
		if i == 0 {
			a.Offered = m.Slots
			e.Offered++
		} else {
			a.Reason = "busy"
			e.Declined[a.Reason]++
		}
		e.Asked++
		e.Nodes = append(e.Nodes, a)
	}
	e.Wanted = max(0, s.Spec.Min-f.Members[0].Slots)
	return e, nil
}

// Remove implements api.Service.
func (f *Fake) Remove(_ context.Context, name string) error {
	j, err := f.Find(name)
	if err != nil {
		return err
	}
	if st := j.Status(); !st.State.Final() {
		return fmt.Errorf("%w: job %s is %s", api.ErrRefused, st.ID.Short(), st.State)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.jobs = slices.DeleteFunc(f.jobs, func(o *Job) bool { return o == j })
	return nil
}

// Cancel implements api.Service.
func (f *Fake) Cancel(_ context.Context, name string, _ bool) error {
	j, err := f.Find(name)
	if err != nil {
		return err
	}
	j.Update(func(s *jobs.Status) {
		if !s.State.Final() {
			s.State, s.Reason, s.ExitCode, s.Ended = jobs.Cancelled, "cancelled by the user", jobs.CodeCancelled, time.Now().UTC()
			close(j.cancel)
		}
	})
	return nil
}

// Asked returns what was asked for of output last.
func (f *Fake) Asked() api.OutputQuery {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked
}

// Output implements api.Service.
func (f *Fake) Output(ctx context.Context, name string, q api.OutputQuery, out func(jobs.Output) error) error {
	j, err := f.Find(name)
	if err != nil {
		return err
	}
	for sent := 0; ; {
		f.mu.Lock()
		f.asked = q
		news, final, changed := j.output[sent:], j.status.State.Final(), f.changed
		f.mu.Unlock()
		for _, o := range news {
			if q.Rank < 0 || q.Rank == o.Rank {
				if err := out(o); err != nil {
					return err
				}
			}
		}
		sent += len(news)
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

// Stdin implements api.Service.
func (f *Fake) Stdin(ctx context.Context, name string, r io.Reader) error {
	j, err := f.Find(name)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = j.stdinW.CloseWithError(ctx.Err()) })()
	_, err = io.Copy(j.stdinW, r)
	_ = j.stdinW.CloseWithError(err) // never fails
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == io.ErrClosedPipe:
		return fmt.Errorf("job %s: %w: it reads no standard input any more", name, api.ErrUnavailable)
	}
	return err
}

// Drain implements api.Service: it has no workers of its own.
func (f *Fake) Drain(_ context.Context, d api.Drain) (jobs.Drained, error) {
	if err := d.Check(); err != nil {
		return jobs.Drained{}, err
	}
	return jobs.Drained{Draining: !d.Undo, Workers: 3, Jobs: 2}, nil
}

// Invite implements api.Service.
func (f *Fake) Invite(context.Context) (string, error) { return f.Token, nil }

// Web implements api.Service.
func (f *Fake) Web(_ context.Context, readOnly bool) (string, error) {
	if f.Page == "" {
		return "", fmt.Errorf("%w: this node has no page", api.ErrUnavailable)
	}
	if readOnly {
		return f.Page + "-read-only", nil
	}
	return f.Page, nil
}

// Changes implements api.Service.
func (f *Fake) Changes() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changed
}
