package exchange

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"zorilla/transfer"
	"zorilla/transfer/swarm"
	"zorilla/vicinity"
)

// run is one fetch: what its plan asks is asked by a goroutine each.
type run struct {
	beat   func() // called when bytes arrive, or are about to; may be nil
	x      *Exchange
	tree   *tree // nil = the blob is no chunk of a tree
	chunks []transfer.Chunk
	add    func(chunk int, moved bool) // a chunk is here

	mu      sync.Mutex // guards what follows
	plan    *swarm.Plan
	cancels map[*swarm.Request]context.CancelFunc
	why     map[vicinity.ID]error // how each holder failed last
	failed  error                 // of the store: nothing else will help
	stir    chan struct{}         // something became of a request
}

// large reports whether the tree is worth connections of its own, and to ask holders what they have.
func (r *run) large() bool { return len(r.chunks) >= minSwarm }

// do fetches all chunks that are not here.
func (r *run) do(ctx context.Context, have swarm.Set, holders []vicinity.ID) error {
	if have.Count() == len(r.chunks) {
		return nil
	}
	r.plan = swarm.New(swarm.Config{Chunks: len(r.chunks), Have: have, Rand: r.x.split(), Now: time.Now(), Patience: r.x.cfg.Patience,
		NoPolls: r.x.cfg.Trees == nil || !r.large()})
	r.cancels, r.why, r.stir = map[*swarm.Request]context.CancelFunc{}, map[vicinity.ID]error{}, make(chan struct{}, 1)
	r.meet(holders...)
	if r.tree != nil {
		r.tree.runs(r)
		defer r.tree.runs(nil)
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		wake, err := r.next(ctx, &wg)
		if err != nil || wake == 0 {
			return err
		}
		timer.Reset(wake)
		select {
		case <-r.stir:
		case <-timer.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// next asks what is to be asked now. It returns for how long nothing else is to be done,
// unless something becomes of a request; 0 = the fetch has ended.
func (r *run) next(ctx context.Context, wg *sync.WaitGroup) (time.Duration, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	switch {
	case r.failed != nil || r.plan.Left() == 0:
		return 0, r.failed
	case r.plan.Lost(now):
		return 0, fmt.Errorf("fetch %s: %w%s", r.chunks[max(r.plan.Missing(), 0)].Hash, transfer.ErrNoHolder, r.blame())
	}
	ask, wake := r.plan.Next(now)
	for _, q := range ask {
		ctx, cancel := context.WithCancel(ctx)
		r.cancels[q] = cancel
		wg.Go(func() {
			defer cancel()
			r.ask(ctx, q)
		})
	}
	if wake.IsZero() {
		return time.Hour, nil
	}
	return max(wake.Sub(now), time.Millisecond), nil
}

// meet tells the plan of holders.
func (r *run) meet(holders ...vicinity.ID) {
	for _, h := range holders {
		if h != r.x.cfg.Self {
			r.plan.Add(string(h))
		}
	}
}

// learn is meet while the fetch runs.
func (r *run) learn(holders ...vicinity.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.meet(holders...)
	r.stirred()
}

// stirred wakes the fetch.
func (r *run) stirred() {
	select {
	case r.stir <- struct{}{}:
	default:
	}
}

// complete reports to the plan how a request ended.
func (r *run) complete(q *swarm.Request, report func(now time.Time)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.cancels, q)
	report(time.Now())
	r.stirred()
}

func (r *run) ask(ctx context.Context, q *swarm.Request) {
	var err error
	switch q.Kind {
	case swarm.Poll:
		err = r.poll(ctx, q)
	case swarm.Any:
		err = r.any(ctx, q)
	default:
		err = r.one(ctx, q)
	}
	var given *GivenError
	switch {
	case err == nil:
	case ctx.Err() != nil:
		r.complete(q, func(now time.Time) { r.plan.Failed(now, q, swarm.Unwanted) })
	case errors.As(err, &given):
		r.complete(q, func(now time.Time) { r.plan.Gave(now, q, r.others(given.To)...) })
	case errors.Is(err, ErrOlder):
		r.complete(q, func(time.Time) { r.plan.Older(q) })
	default:
		why := swarm.Broken
		if errors.Is(err, transfer.ErrNotFound) {
			why = swarm.Missing
		} else if errors.Is(err, transfer.ErrMismatch) {
			why = swarm.Wrong
		}
		r.complete(q, func(now time.Time) {
			r.why[vicinity.ID(q.Holder)] = err
			r.plan.Failed(now, q, why)
		})
	}
}

// others returns those names of nodes that may be asked.
func (r *run) others(names []string) []string {
	return slices.DeleteFunc(names, func(n string) bool { return !vicinity.ID(n).Valid() || vicinity.ID(n) == r.x.cfg.Self })
}

// pollPause is how long a holder is not asked again what it has: long enough to learn of
// several chunks at once. With each MiB that the answer takes it is a second longer.
const pollPause = 100 * time.Millisecond

func (r *run) poll(ctx context.Context, q *swarm.Request) error {
	ctx, cancel := context.WithTimeout(ctx, pollWait+r.x.cfg.Stall)
	defer cancel()
	s, err := r.x.cfg.Trees.State(ctx, vicinity.ID(q.Holder), r.tree.hash, q.Since)
	if err != nil {
		return err
	}
	s.Peers = r.others(s.Peers)
	pause := pollPause + time.Duration(8*len(s.Has))*time.Second>>20
	r.complete(q, func(now time.Time) { r.plan.Told(now, q, s, pause) })
	return nil
}

// one asks for one chunk, unless another fetch does.
func (r *run) one(ctx context.Context, q *swarm.Request) error {
	c := r.chunks[q.Chunk]
	for {
		other := r.x.join(c.Hash)
		if other == nil {
			break
		}
		select {
		case <-other:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	defer r.x.land(c.Hash)
	if r.x.here(c.Hash) {
		r.have(q, false)
		return nil
	}
	source := r.x.cfg.Source
	if r.large() {
		source = r.x.cfg.Bulk
	}
	p, err := r.begin(ctx, func(ctx context.Context) (io.ReadCloser, error) {
		return source(ctx, vicinity.ID(q.Holder), c.Hash)
	})
	if err != nil {
		return err
	}
	return r.receive(q, p)
}

// any asks for any of the chunks that are wanted.
func (r *run) any(ctx context.Context, q *swarm.Request) error {
	chunk, useful := 0, false
	p, err := r.begin(ctx, func(ctx context.Context) (body io.ReadCloser, err error) {
		chunk, body, err = r.x.cfg.Trees.Chunk(ctx, vicinity.ID(q.Holder), r.tree.hash, Want{q.Want, q.From, q.Insist})
		return body, err
	})
	if err != nil {
		return err
	}
	r.mu.Lock()
	useful = r.plan.Chosen(q, chunk)
	r.mu.Unlock()
	if useful && r.x.here(r.chunks[chunk].Hash) { // another fetch was faster
		p.end()
		r.have(q, false)
		return nil
	}
	if !useful {
		p.end()
		r.complete(q, func(now time.Time) { r.plan.Failed(now, q, swarm.Unwanted) })
		return nil
	}
	return r.receive(q, p)
}

// receive receives a chunk and keeps it.
func (r *run) receive(q *swarm.Request, p *parcel) error {
	defer p.end()
	c := r.chunks[q.Chunk]
	buf := r.x.buffers.Get().(*buffer)
	defer r.x.buffers.Put(buf)
	data, err := p.read(c, buf.bytes)
	if err != nil {
		return err
	}
	if c.Size != anySize { // manifests are rare, and may be large
		buf.bytes = data
	}
	return r.store(q, data)
}

// store puts a chunk that is right into the store.
func (r *run) store(q *swarm.Request, data []byte) error {
	if err := r.x.cfg.Store.PutVerified(r.chunks[q.Chunk].Hash, data); err != nil {
		r.complete(q, func(now time.Time) {
			r.failed = err
			r.plan.Failed(now, q, swarm.Unwanted)
		})
		return nil
	}
	r.have(q, true)
	return nil
}

// have notes that a chunk is here.
func (r *run) have(q *swarm.Request, moved bool) {
	fresh := false
	r.complete(q, func(now time.Time) {
		left := r.plan.Left()
		for _, o := range r.plan.Got(now, q) {
			if cancel := r.cancels[o]; cancel != nil {
				cancel()
			}
		}
		fresh = r.plan.Left() < left
	})
	if fresh {
		r.add(q.Chunk, moved)
	}
}

// blame reports why holders gave nothing, of a few of them.
func (r *run) blame() string {
	const few = 5
	ids := make([]vicinity.ID, 0, len(r.why))
	for id := range r.why {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	var b strings.Builder
	for i, id := range ids {
		if i == few {
			fmt.Fprintf(&b, "; and %d others", len(ids)-few)
			break
		}
		err := r.why[id]
		if errors.Is(err, transfer.ErrNotFound) {
			err = transfer.ErrNotFound
		}
		fmt.Fprintf(&b, "; %s: %.200v", id.Short(), err)
	}
	if len(ids) == 0 {
		return ": no holder is left to ask"
	}
	return b.String()
}
