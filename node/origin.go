package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"zorilla/jobs"
	"zorilla/jobs/agent"
	"zorilla/node/api"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// origin answers about this node and about the jobs that were submitted here,
// and only those, so that requests are never forwarded twice: other nodes ask
// it, and for clients of this one jobService does.
type origin struct {
	self      *self
	jobs      *agent.Service
	blobs     *blobService
	measuring *oneAtATime
}

var _ api.Peer = origin{}

// Node leaves out what is of use only on this machine.
func (o origin) Node(context.Context) (api.NodeInfo, error) { return o.self.info(), nil }

// Measure pings a member from here, and connects to it.
func (o origin) Measure(ctx context.Context, from, to string, pings int) (api.Measurement, error) {
	if err := api.CheckPings(pings); err != nil {
		return api.Measurement{}, err
	}
	if from != "self" {
		return api.Measurement{}, fmt.Errorf("%w: from %.40q: a node measures for others only from itself", api.ErrInvalid, from)
	}
	id := vicinity.ID(to)
	if !id.Valid() || id == o.self.net.self {
		return api.Measurement{}, fmt.Errorf("%w: to %.40q: want the whole ID of another node", api.ErrInvalid, to)
	}
	if _, ok := o.self.net.overlay.Member(id); !ok {
		return api.Measurement{}, fmt.Errorf("node %s %w: it is no member here", id.Short(), api.ErrNotFound)
	}
	done, ok := o.measuring.acquire(asker(ctx))
	if !ok {
		return api.Measurement{}, fmt.Errorf("%w: it measures already: try again when that is done", api.ErrRefused)
	}
	defer done()
	return o.self.measure(ctx, id, pings), nil
}

// maxMeasuring is for how many other nodes this one measures at the same time.
const maxMeasuring = 16

// oneAtATime holds who is being served, each at most once.
type oneAtATime struct {
	mu   sync.Mutex // guards busy
	busy map[vicinity.ID]bool
}

func newOneAtATime() *oneAtATime { return &oneAtATime{busy: map[vicinity.ID]bool{}} }

// acquire reports whether id may be served now; the caller calls done then.
func (t *oneAtATime) acquire(id vicinity.ID) (done func(), ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.busy[id] || len(t.busy) >= maxMeasuring {
		return nil, false
	}
	t.busy[id] = true
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.busy, id)
	}, true
}

// own returns the ID of a job if it is named by that and originates here.
func (o origin) own(ref string) (jobs.ID, error) {
	id := jobs.ID(ref)
	if !id.Valid() || !o.jobs.Owns(id) {
		return "", fmt.Errorf("job %.40q %w: it does not originate here, or is forgotten", strings.ToValidUTF8(ref, "?"), api.ErrNotFound)
	}
	return id, nil
}

// Jobs lists the jobs that the node originates or works for.
func (o origin) Jobs(context.Context, bool) ([]jobs.Status, error) {
	return o.jobs.List(jobs.ListEnded), nil
}

// Summaries lists them in short.
func (o origin) Summaries(context.Context, bool) ([]jobs.Summary, error) {
	return o.jobs.Summaries(jobs.ListEnded), nil
}

// Job returns one job.
func (o origin) Job(_ context.Context, ref string) (jobs.Status, error) {
	id, err := o.own(ref)
	if err != nil {
		return jobs.Status{}, err
	}
	st, _, err := o.jobs.Status(id)
	return st, err
}

// Await returns a job's status when it has changed. Nobody at this node need
// have read it.
func (o origin) Await(ctx context.Context, ref string, since uint64) (jobs.Status, uint64, error) {
	id, err := o.own(ref)
	if err != nil {
		return jobs.Status{}, 0, err
	}
	return o.jobs.Await(ctx, id, since)
}

// Tasks lists tasks of an array.
func (o origin) Tasks(_ context.Context, ref string, q jobs.TaskQuery) (jobs.TaskPage, error) {
	id, err := o.own(ref)
	if err != nil {
		return jobs.TaskPage{}, err
	}
	return o.jobs.Tasks(id, q)
}

// Explain reports why a job waits.
func (o origin) Explain(_ context.Context, ref string) (jobs.Explanation, error) {
	id, err := o.own(ref)
	if err != nil {
		return jobs.Explanation{}, err
	}
	return o.jobs.Explain(id)
}

// Cancel ends a job.
func (o origin) Cancel(_ context.Context, ref string, atOnce bool) error {
	id, err := o.own(ref)
	if err != nil {
		return err
	}
	return o.jobs.Cancel(id, "cancelled by a user", atOnce)
}

// Output reports what a job's workers wrote.
func (o origin) Output(ctx context.Context, ref string, q api.OutputQuery, f func(jobs.Output) error) error {
	id, err := o.own(ref)
	if err != nil {
		return err
	}
	if err = o.jobs.Output(ctx, id, q, f); err == nil {
		o.jobs.Read(id)
	}
	return err
}

// Stdin feeds rank 0.
func (o origin) Stdin(ctx context.Context, ref string, r io.Reader) error {
	id, err := o.own(ref)
	if err != nil {
		return err
	}
	err = o.jobs.Stdin(ctx, id, r)
	if errors.Is(err, jobs.ErrEnded) {
		err = fmt.Errorf("%w: %w", api.ErrUnavailable, err)
	}
	return err
}

// Chunk returns one chunk that this node holds.
func (o origin) Chunk(_ context.Context, _ string, h transfer.Hash) ([]byte, error) {
	return o.blobs.chunk(h)
}

// forOthers is an origin as other nodes see it: without what is its owner's business alone.
type forOthers struct{ origin }

// Jobs lists the jobs that the node originates or works for.
func (o forOthers) Jobs(ctx context.Context, all bool) ([]jobs.Status, error) {
	list, err := o.origin.Jobs(ctx, all)
	for i := range list {
		list[i] = list[i].Discreet()
	}
	return list, err
}

// Job returns one job.
func (o forOthers) Job(ctx context.Context, ref string) (jobs.Status, error) {
	st, err := o.origin.Job(ctx, ref)
	return st.Discreet(), err
}

// Await returns a job's status when it has changed.
func (o forOthers) Await(ctx context.Context, ref string, since uint64) (jobs.Status, uint64, error) {
	st, version, err := o.origin.Await(ctx, ref, since)
	return st.Discreet(), version, err
}
