package exchange

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"zorilla/transfer"
	"zorilla/transfer/swarm"
	"zorilla/vicinity"
)

const (
	// idle is how long a tree that nobody asks for is remembered, and how long who asked
	// for one is named to others.
	idle = 10 * time.Minute
	// maxTrees bounds how many trees that nobody fetches are remembered, maxAskers how
	// many of those who ask for one.
	maxTrees, maxAskers = 64, 1024
	// maxNamed bounds how many are named in one answer.
	maxNamed = 16
)

// trees are those of which this node has something, and that were asked for lately.
type trees struct {
	mu   sync.Mutex // guards what follows
	of   map[transfer.Hash]*tree
	more chan struct{} // closed when there is another one
}

// tree is what a node knows of a tree that it has some of: which chunks are here, who
// asks for them, and what was given to whom.
type tree struct {
	hash   transfer.Hash
	chunks []transfer.Chunk

	fetches int       // guarded by trees.mu, as used
	used    time.Time // at last

	mu      sync.Mutex // guards what follows
	have    swarm.Set
	seed    bool // all was here before anybody asked
	version uint64
	changed chan struct{} // closed at the next version
	ledger  *swarm.Ledger
	rnd     *rand.Rand
	askers  []asker
	run     *run          // the fetch, if there is one
	leads   chan struct{} // closed when the one who fetches has ended; nil = nobody does
}

// asker is a node that asks for a tree.
type asker struct {
	id   vicinity.ID
	seen time.Time
}

func newTree(h transfer.Hash, chunks []transfer.Chunk, rnd *rand.Rand) *tree {
	return &tree{
		hash: h, chunks: chunks, have: swarm.NewSet(len(chunks)), version: rnd.Uint64(),
		changed: make(chan struct{}), ledger: swarm.NewLedger(len(chunks), rnd), rnd: rnd,
	}
}

// fetching returns the tree, which is remembered until fetched is called.
func (ts *trees) fetching(x *Exchange, h transfer.Hash, chunks []transfer.Chunk) *tree {
	rnd := x.split()
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t := ts.of[h]
	if t == nil {
		t = ts.add(newTree(h, chunks, rnd))
	}
	t.fetches++
	return t
}

func (ts *trees) fetched(t *tree) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t.fetches--
	t.used = time.Now()
}

// add makes room for a tree, and remembers it.
func (ts *trees) add(t *tree) *tree {
	now := time.Now()
	var oldest *tree
	kept := 0
	for h, o := range ts.of {
		if o.fetches > 0 {
			continue
		}
		if kept++; now.Sub(o.used) > idle {
			delete(ts.of, h)
			kept--
		} else if oldest == nil || o.used.Before(oldest.used) {
			oldest = o
		}
	}
	if kept >= maxTrees {
		delete(ts.of, oldest.hash)
	}
	t.used = now
	ts.of[t.hash] = t
	close(ts.more)
	ts.more = make(chan struct{})
	return t
}

// find returns a tree of which there is something here. If its manifest is not here it
// waits for that, but not for long.
func (ts *trees) find(ctx context.Context, x *Exchange, h transfer.Hash) (*tree, error) {
	late := time.NewTimer(pollWait)
	defer late.Stop()
	for {
		ts.mu.Lock()
		t, more := ts.of[h], ts.more
		if t != nil {
			t.used = time.Now()
		}
		ts.mu.Unlock()
		if t != nil {
			return t, nil
		}
		if x.cfg.Store.Has(h) {
			return ts.held(x, h)
		}
		select {
		case <-more:
		case <-late.C:
			return nil, transfer.ErrNotFound
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// held remembers a tree that nobody fetches, of which the manifest is here.
func (ts *trees) held(x *Exchange, h transfer.Hash) (*tree, error) {
	m, err := transfer.LoadManifest(x.cfg.Store, h)
	if err != nil {
		return nil, err
	}
	t := newTree(h, m.DistinctChunks(), x.split())
	for i, c := range t.chunks {
		if held, _ := x.cfg.Store.Holds(c.Hash); held {
			t.have.Add(i)
		}
	}
	t.seed = t.have.Count() == len(t.chunks)
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if other := ts.of[h]; other != nil {
		return other, nil
	}
	return ts.add(t), nil
}

// lead waits until nobody else fetches the tree, to whom these holders are named.
func (t *tree) lead(ctx context.Context, holders []vicinity.ID) error {
	for {
		t.mu.Lock()
		other, r := t.leads, t.run
		if other == nil {
			t.leads = make(chan struct{})
			t.mu.Unlock()
			return nil
		}
		t.mu.Unlock()
		if r != nil {
			r.learn(holders...)
		}
		select {
		case <-other:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// rest lets others fetch.
func (t *tree) rest() {
	t.mu.Lock()
	defer t.mu.Unlock()
	close(t.leads)
	t.leads = nil
}

// runs notes which fetch those who ask are named to.
func (t *tree) runs(r *run) {
	t.mu.Lock()
	t.run = r
	known := slices.Clone(t.askers)
	t.mu.Unlock()
	if r != nil {
		for _, a := range known {
			r.learn(a.id)
		}
	}
}

// got notes that a chunk is here.
func (t *tree) got(chunk int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.have.Has(chunk) {
		t.have.Add(chunk)
		t.change()
	}
}

// lost notes that a chunk is not here any more.
func (t *tree) lost(chunk int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.have.Del(chunk)
	t.seed = false
	t.change()
}

// change wakes those who wait for another version.
func (t *tree) change() {
	t.version++
	close(t.changed)
	t.changed = make(chan struct{})
}

// asked notes who asks.
func (t *tree) asked(id vicinity.ID) {
	t.mu.Lock()
	r, now := t.run, time.Now()
	i := slices.IndexFunc(t.askers, func(a asker) bool { return a.id == id })
	switch {
	case i >= 0:
		t.askers[i].seen = now
	case len(t.askers) < maxAskers:
		t.askers = append(t.askers, asker{id, now})
		t.change()
	}
	t.mu.Unlock()
	if r != nil && i < 0 {
		r.learn(id)
	}
}

// state returns what is here as soon as that is not what since names, or after some time.
func (t *tree) state(ctx context.Context, since uint64, but vicinity.ID) swarm.State {
	late := time.NewTimer(pollWait)
	defer late.Stop()
	for {
		t.mu.Lock()
		version, changed := t.version, t.changed
		if version != since || ctx.Err() != nil {
			defer t.mu.Unlock()
			return swarm.State{Version: version, Has: slices.Clone(t.have), Seed: t.seed, Peers: t.others(but)}
		}
		t.mu.Unlock()
		select {
		case <-changed:
		case <-late.C:
			since = version - 1
		case <-ctx.Done():
		}
	}
}

// others names some of those who ask, at random.
func (t *tree) others(but vicinity.ID) []string {
	now := time.Now()
	t.askers = slices.DeleteFunc(t.askers, func(a asker) bool { return now.Sub(a.seen) > idle })
	var names []string
	for _, i := range t.rnd.Perm(len(t.askers)) {
		if a := t.askers[i]; a.id != but && len(names) < maxNamed {
			names = append(names, string(a.id))
		}
	}
	return names
}

// pick chooses a chunk for who asks, or reports who was given what it wants.
func (t *tree) pick(id vicinity.ID, want Want) (chunk int, given []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := swarm.NewSet(len(t.chunks))
	for i, w := range want.Chunks {
		if n := want.From + i; n < len(all) {
			all[n] = w & t.have[n]
		}
	}
	return t.ledger.Pick(time.Now(), string(id), all, want.Insist)
}

// sent notes that who asked was sent a chunk.
func (t *tree) sent(chunk int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ledger.Sent(time.Now(), chunk)
}

// undo notes that who asked did not get all of a chunk.
func (t *tree) undo(id vicinity.ID, chunk int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ledger.Undo(string(id), chunk)
}
