package heartbeat

import (
	"context"
	"fmt"
	"sync"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/pmi"
	"zorilla/vicinity"
)

// Keeper has the hubs and members of one node, and sends its beats. Its fields are set
// before its first use; its methods may be called from any goroutine.
type Keeper struct {
	Self vicinity.ID
	Name func(vicinity.ID) string // what people call a node
	// Send asks another node, and checks its answer.
	Send func(ctx context.Context, to vicinity.ID, b *wire.Beat) (wire.BeatAnswer, error)
	// Lost is told, once, why a gang cannot go on whose ranks run here, and whether a rank
	// has failed, of which its origin hears.
	Lost func(id wire.Gang, why string, failed bool)

	// Has reports whether rank 0 of a gang is at this node, or will be. It may take its time.
	Has func(id wire.Gang) bool

	// Go starts a goroutine that ends with the context of Follow, for whoever waits for those.
	Go func(func())

	mu      sync.Mutex // guards all below, and the cores
	hubs    map[wire.Gang]*hub
	members map[wire.Gang]*member
}

// hub is a Hub, and who waits for its answers.
type hub struct {
	core *Hub
	news chan struct{} // closed when somebody may have to be told something
}

func (h *hub) notify() {
	close(h.news)
	h.news = make(chan struct{})
}

// member is a Member, and the way to its ranks.
type member struct {
	core  *Member
	hub   vicinity.ID
	links map[int]*pmi.Link
	stop  context.CancelFunc
	kick  context.CancelFunc // of the beat that is on its way: there is more to tell; may be nil
	late  bool               // there was more to tell while none was
}

func (m *member) urge() {
	m.late = true
	if m.kick != nil {
		m.kick()
	}
}

// Rank is one that has begun at this node.
type Rank struct {
	Gang  wire.Gang
	Rank  int
	Nodes []vicinity.ID // that run ranks of the gang, the one of rank 0 first
	Local []int         // all ranks of the gang at this node
	Link  *pmi.Link     // nil of one that has ended
	Again bool          // it is one of an earlier life of this node
}

// Follow begins to go with a rank, before which Left must not be called. What it returns
// goes on with that, until the rank has ended, or ctx.
func (k *Keeper) Follow(ctx context.Context, r Rank) (rest func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	m := k.join(ctx, &r)
	m.links[r.Rank] = r.Link
	if r.Link == nil {
		m.core.Ended(r.Rank)
		return func() {}
	}
	m.core.Begun(r.Rank)
	return func() { k.follow(ctx, &r, m) }
}

// Left says that the process of a rank has ended, and why that ends the gang, or "", and
// whether its program has failed: see [Member.Left].
func (k *Keeper) Left(ctx context.Context, r Rank, why string, failed bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	m := k.members[r.Gang]
	if m == nil && r.Again { // no other rank of the gang is back
		m = k.join(ctx, &r)
	}
	if m != nil && m.core.Left(r.Rank, why, failed) {
		m.urge()
	}
}

func (k *Keeper) follow(ctx context.Context, r *Rank, m *member) {
	stop := context.AfterFunc(ctx, func() { _ = r.Link.Close() })
	defer stop()
	for {
		b, err := r.Link.Next()
		k.mu.Lock()
		news := false
		switch {
		case err == nil:
			news = m.core.Waits(r.Rank, b)
		case ctx.Err() == nil:
			m.core.Ended(r.Rank)
		}
		if news {
			m.urge()
		}
		k.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// join returns what this node knows of a gang, and makes it with the first rank. The
// caller holds mu.
func (k *Keeper) join(ctx context.Context, r *Rank) *member {
	if m := k.members[r.Gang]; m != nil {
		return m
	}
	if k.members == nil {
		k.members, k.hubs = map[wire.Gang]*member{}, map[wire.Gang]*hub{}
	}
	now := time.Now()
	m := &member{core: NewMember(now, r.Gang, r.Local, k.Name(r.Nodes[0])), hub: r.Nodes[0], links: map[int]*pmi.Link{}}
	k.members[r.Gang] = m
	if m.hub == k.Self && k.hubs[r.Gang] == nil {
		h := &hub{core: NewHub(now, r.Nodes, k.Name, r.Again), news: make(chan struct{})}
		k.hubs[r.Gang] = h
		k.Go(func() { k.watch(ctx, r.Gang, h) })
	}
	its, stop := context.WithCancel(ctx)
	m.stop = stop
	k.Go(func() { k.beats(its, r.Gang, m) })
	return m
}

// Forget says that nothing of a job is at this node any more, also of ranks that never
// began. A hub goes on for the others.
func (k *Keeper) Forget(job jobs.ID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for id, m := range k.members {
		if id.Job == job {
			m.stop()
		}
	}
}

// watch looks who is silent, until nobody needs the hub any more.
func (k *Keeper) watch(ctx context.Context, id wire.Gang, h *hub) {
	for wait := Hold / 2; ; {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
		k.mu.Lock()
		now := time.Now()
		if h.core.Tick(now) {
			h.notify()
		}
		over := h.core.Over(now)
		if over {
			delete(k.hubs, id)
		}
		wait = h.core.Next(now)
		k.mu.Unlock()
		if over {
			return
		}
	}
}

// Beat answers a beat of another node.
func (k *Keeper) Beat(ctx context.Context, from vicinity.ID, b *wire.Beat) (a wire.BeatAnswer, err error) {
	hold := time.NewTimer(Hold)
	defer hold.Stop()
	k.mu.Lock()
	defer k.mu.Unlock()
	h := k.hubs[b.Gang]
	if h == nil {
		k.mu.Unlock()
		has := k.Has(b.Gang)
		k.mu.Lock()
		if !has {
			return wire.BeatAnswer{Gone: true}, nil
		}
		return a, fmt.Errorf("rank 0 of job %s does not run here yet", b.Job.Short())
	}
	if !h.core.Has(from) {
		return a, fmt.Errorf("%w: node %s has no ranks of job %s", jobs.ErrRefused, from.Short(), b.Job.Short())
	}
	if h.core.Beat(time.Now(), from, b) {
		h.notify()
	}
	for {
		a, news := h.core.Answer(b)
		if news {
			return a, nil
		}
		wait := h.news
		k.mu.Unlock()
		over := false
		select {
		case <-wait:
		case <-hold.C:
			over = true
		case <-ctx.Done():
			over = true
		}
		k.mu.Lock()
		if over {
			a, _ = h.core.Answer(b)
			return a, nil
		}
	}
}

// again is the pause after a beat that was not answered.
const again = 50 * time.Millisecond

// beats tells the hub what this node's ranks are at until they have ended, or the gang is
// lost.
func (k *Keeper) beats(ctx context.Context, id wire.Gang, m *member) {
	defer func() {
		m.stop()
		k.mu.Lock()
		delete(k.members, id)
		k.mu.Unlock()
	}()
	var done, lost time.Time
	for ctx.Err() == nil {
		k.mu.Lock()
		m.core.Tick(time.Now())
		why, failed := m.core.Lost()
		b := m.core.Beat()
		b.Sent = time.Now().UnixNano()
		var round context.Context
		round, m.kick = context.WithTimeout(ctx, m.core.Patience(time.Now()))
		m.late = false
		cancel := m.kick
		if why != "" { // that is told, whatever comes of it here
			m.kick = nil
		}
		k.mu.Unlock()
		if why != "" && lost.IsZero() {
			lost = time.Now()
			k.Lost(id, why, failed)
		}
		a, err := k.ask(round, m.hub, &b)
		cancel()
		k.mu.Lock()
		var pass pmi.Pass
		var ranks []int
		if err == nil {
			pass, ranks = m.core.Answered(time.Now(), &b, &a)
		}
		links := make([]*pmi.Link, len(ranks))
		for i, r := range ranks {
			links[i] = m.links[r]
		}
		late, patience := m.late, m.core.Patience(time.Now())
		k.mu.Unlock()
		for _, l := range links {
			_ = l.Pass(pass) // who has ended is seen by Follow
		}
		if b.Done && done.IsZero() {
			done = time.Now()
		}
		switch {
		case !lost.IsZero() && (err == nil || time.Since(lost) > Linger):
			return
		case b.Done && (err == nil || time.Since(done) > Linger):
			return
		}
		pause := again
		if a.Gone {
			pause = Hold
		}
		if !b.Done && lost.IsZero() { // what the silence of the hub means is then found out at once
			pause = min(pause, patience)
		}
		if (err != nil || a.Gone) && !late {
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
		}
	}
}

func (k *Keeper) ask(ctx context.Context, to vicinity.ID, b *wire.Beat) (wire.BeatAnswer, error) {
	if to == k.Self {
		return k.Beat(ctx, to, b)
	}
	return k.Send(ctx, to, b)
}
