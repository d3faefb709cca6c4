package swarm

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"zorilla/internal/seeds"
)

// world is a network of nodes that fetch one tree, in virtual time. Each sends
// one chunk after the other, at its rate, and receives at its rate.
type world struct {
	rnd     *rand.Rand
	now     time.Time
	events  events
	number  int
	nodes   []*simNode
	latency time.Duration // one way
	loss    float64       // of requests
}

type simNode struct {
	w          *world
	name       string
	chunk      time.Duration // what sending, or receiving, one chunk takes
	downFree   time.Time
	queue      []func(alive bool) // who waits to be sent something
	sending    bool
	plan       *Plan // nil = it has all
	have       Set
	version    uint64
	waiters    []func()
	ledger     *Ledger
	seed       bool
	peers      []string
	corrupt    bool
	dead       bool
	life       int
	sent       int
	done       time.Time
	wake       time.Time
	chunks     int
	firstNames []string
}

type event struct {
	at time.Time
	n  int
	do func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at.Before(e[j].at) || e[i].at.Equal(e[j].at) && e[i].n < e[j].n
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	x := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return x
}

func (w *world) after(d time.Duration, do func()) {
	w.number++
	heap.Push(&w.events, event{w.now.Add(max(0, d)), w.number, do})
}

// run runs the world until nothing happens any more, or for so long.
func (w *world) run(limit time.Duration) {
	end := w.now.Add(limit)
	for len(w.events) > 0 && w.events[0].at.Before(end) && !w.finished() {
		e := heap.Pop(&w.events).(event)
		w.now = e.at
		e.do()
	}
}

func (w *world) finished() bool {
	return !slices.ContainsFunc(w.nodes, func(n *simNode) bool { return n.done.IsZero() })
}

func (w *world) find(name string) *simNode {
	for _, n := range w.nodes {
		if n.name == name {
			return n
		}
	}
	return nil
}

func newWorld(seed uint64, fetchers, chunks int, chunk time.Duration) *world {
	w := &world{rnd: rand.New(rand.NewPCG(seed, 7)), now: time.Unix(1e9, 0), latency: 5 * time.Millisecond}
	for i := range fetchers + 1 {
		n := &simNode{w: w, name: fmt.Sprintf("z%d", i), chunk: chunk, chunks: chunks, have: NewSet(chunks)}
		w.nodes = append(w.nodes, n)
		n.ledger = NewLedger(chunks, w.rnd)
		n.version = w.rnd.Uint64()
	}
	o := w.nodes[0]
	o.have, o.seed, o.done = Full(chunks), true, w.now
	return w
}

// begin starts the fetches: each knows the origin, and some others.
func (w *world) begin(known int) {
	for _, n := range w.nodes[1:] {
		n.firstNames = []string{"z0"}
		for range known {
			if o := w.nodes[w.rnd.IntN(len(w.nodes))]; o != n {
				n.firstNames = append(n.firstNames, o.name)
			}
		}
		w.after(time.Duration(w.rnd.IntN(20))*time.Millisecond, n.fetch)
	}
}

func (n *simNode) fetch() {
	n.plan = New(Config{Chunks: n.chunks, Have: n.have, Rand: n.w.rnd, Now: n.w.now, Patience: 30 * time.Second})
	n.plan.Add(n.firstNames...)
	n.step()
}

// step asks what the plan wants asked.
func (n *simNode) step() {
	if n.plan.Left() == 0 && n.done.IsZero() {
		n.done = n.w.now
	}
	if n.dead || n.plan.Left() == 0 {
		return
	}
	ask, wake := n.plan.Next(n.w.now)
	for _, r := range ask {
		n.ask(r)
	}
	if !wake.IsZero() && !wake.Equal(n.wake) {
		n.wake = wake
		n.w.after(wake.Sub(n.w.now), n.whenAlive(n.step))
	}
}

// whenAlive is f, unless the node has died since.
func (n *simNode) whenAlive(f func()) func() {
	life := n.life
	return func() {
		if !n.dead && n.life == life {
			f()
		}
	}
}

func (n *simNode) ask(r *Request) {
	h := n.w.find(r.Holder)
	fail := func(d time.Duration, why Failure) {
		n.w.after(d, n.whenAlive(func() { n.plan.Failed(n.w.now, r, why); n.step() }))
	}
	if h.dead || n.w.rnd.Float64() < n.w.loss {
		fail(n.w.latency*4, Broken)
		return
	}
	life := h.life
	n.w.after(n.w.latency, func() {
		if h.dead || h.life != life {
			fail(0, Broken)
			return
		}
		if !slices.Contains(h.peers, n.name) {
			h.peers = append(h.peers, n.name)
			h.changed()
		}
		if h.plan != nil {
			h.plan.Add(n.name)
		}
		if r.Kind == Poll {
			h.poll(n, r)
			return
		}
		h.queue = append(h.queue, func(alive bool) {
			if alive {
				h.serve(n, r, fail)
			} else {
				fail(0, Broken)
			}
		})
		h.send()
	})
}

func (n *simNode) poll(asker *simNode, r *Request) {
	life := n.life
	answer := func() {
		if n.life != life {
			asker.w.after(0, asker.whenAlive(func() { asker.plan.Failed(asker.w.now, r, Broken); asker.step() }))
			return
		}
		s := State{Version: n.version, Has: slices.Clone(n.have), Seed: n.seed, Peers: n.some(16)}
		n.w.after(n.w.latency, asker.whenAlive(func() {
			asker.plan.Told(n.w.now, r, s, 100*time.Millisecond)
			asker.step()
		}))
	}
	if r.Since != n.version {
		answer()
		return
	}
	n.waiters = append(n.waiters, answer)
}

// some returns a few of those who asked, at random.
func (n *simNode) some(most int) []string {
	all := slices.Clone(n.peers)
	n.w.rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:min(most, len(all))]
}

func (n *simNode) changed() {
	n.version++
	for _, f := range n.waiters {
		f()
	}
	n.waiters = nil
}

// send sends what is next.
func (n *simNode) send() {
	if n.sending || len(n.queue) == 0 || n.dead {
		return
	}
	next := n.queue[0]
	n.queue = n.queue[1:]
	next(true)
}

func (n *simNode) serve(asker *simNode, r *Request, fail func(time.Duration, Failure)) {
	w, chunk := n.w, r.Chunk
	if r.Kind == Any {
		want := NewSet(n.chunks)
		copy(want[r.From:], r.Want)
		for i := range want {
			want[i] &= n.have[i]
		}
		i, given := n.ledger.Pick(w.now, asker.name, want, r.Insist)
		if i < 0 {
			w.after(w.latency, asker.whenAlive(func() { asker.plan.Gave(w.now, r, given...); asker.step() }))
			n.send()
			return
		}
		chunk = i
	} else if !n.have.Has(chunk) {
		fail(w.latency, Missing)
		n.send()
		return
	}
	n.sending = true
	n.sent++
	w.after(w.latency, asker.whenAlive(func() {
		if r.Kind == Any {
			asker.plan.Chosen(r, chunk)
		}
	}))
	life := n.life
	w.after(n.chunk, func() {
		if n.life == life {
			n.sending = false
		}
		if r.Kind == Any {
			n.ledger.Sent(w.now, chunk)
		}
		if n.dead || n.life != life {
			fail(0, Broken)
			return
		}
		if n.corrupt {
			fail(w.latency, Wrong)
		} else {
			arrives := later(w.now.Add(w.latency), asker.downFree.Add(asker.chunk))
			asker.downFree = arrives
			w.after(arrives.Sub(w.now), asker.whenAlive(func() { asker.got(r, chunk) }))
		}
		n.send()
	})
}

func (n *simNode) got(r *Request, chunk int) {
	r.Chunk = chunk
	for _, o := range n.plan.Got(n.w.now, r) {
		n.plan.Failed(n.w.now, o, Unwanted)
		o.Chunk = -1 // what still comes of it comes in vain
	}
	n.have.Add(chunk)
	n.changed()
	n.step()
}

// kill ends a node; what it has is there when it comes back.
func (n *simNode) kill(away time.Duration) {
	n.dead = true
	n.life++
	queue, waiters := n.queue, n.waiters
	n.queue, n.waiters, n.sending, n.peers = nil, nil, false, nil
	for _, f := range waiters {
		f()
	}
	for _, f := range queue {
		f(false)
	}
	n.w.after(away, func() {
		n.dead, n.downFree = false, n.w.now
		n.ledger, n.version = NewLedger(n.chunks, n.w.rnd), n.w.rnd.Uint64()
		if n.plan != nil {
			n.fetch()
		}
	})
}

func (w *world) report() (slowest time.Duration, copies float64) {
	for _, n := range w.nodes[1:] {
		if n.done.IsZero() {
			return 1 << 60, 0
		}
		slowest = max(slowest, n.done.Sub(time.Unix(1e9, 0)))
	}
	return slowest, float64(w.nodes[0].sent) / float64(w.nodes[0].chunks)
}

// copyTime is that of one copy in these worlds.
const (
	simChunks = 128
	simChunk  = 80 * time.Millisecond
	copyTime  = simChunks * simChunk
)

func TestSwarmIsNearlyAsFastAsOneCopy(t *testing.T) {
	seeds.OneGoroutine(t)
	seeds.Random(t, func(t *testing.T, seed uint64) {
		for _, c := range []struct {
			fetchers, known int
			bound           float64
		}{
			{1, 0, 1.3}, {2, 0, 1.3}, {3, 3, 1.3}, {6, 0, 1.3}, {12, 12, 1.3}, {12, 0, 1.3},
			{40, 4, 2}, {100, 0, 2.5}, // the aim is the same: all meet the same few partners first
		} {
			w := newWorld(seed, c.fetchers, simChunks, simChunk)
			w.begin(c.known)
			w.run(10 * time.Minute)
			took, copies := w.report()
			ratio := float64(took) / float64(copyTime)
			t.Logf("%d fetchers: %.2f x one copy, origin sent %.2f copies", c.fetchers, ratio, copies)
			if ratio > c.bound || copies > 1.25 {
				t.Errorf("%d fetchers: %.2f x one copy, want <= %.1f; origin sent %.2f copies, want <= 1.25", c.fetchers, ratio, c.bound, copies)
			}
		}
	})
}

// All finish though requests are lost, nodes die and come back, one sends wrong bytes
// and one is slow, and soon enough.
func TestSwarmOutlivesFaults(t *testing.T) {
	seeds.OneGoroutine(t)
	seeds.Random(t, func(t *testing.T, seed uint64) {
		for name, harm := range map[string]func(w *world){
			"loss": func(w *world) { w.loss = 0.1 },
			"churn": func(w *world) {
				for range 12 {
					n := w.nodes[1+w.rnd.IntN(len(w.nodes)-1)]
					w.after(time.Duration(w.rnd.Int64N(int64(copyTime))), func() {
						if !n.dead {
							n.kill(time.Second)
						}
					})
				}
			},
			"origin is started again": func(w *world) { w.after(copyTime/2, func() { w.nodes[0].kill(time.Second) }) },
			"wrong bytes":             func(w *world) { w.nodes[1].corrupt = true },
			"a slow node":             func(w *world) { w.nodes[1].chunk *= 5 },
		} {
			w := newWorld(seed, 24, simChunks, simChunk)
			w.begin(3)
			harm(w)
			w.run(10 * time.Minute)
			took, copies := w.report()
			bound := 4 * copyTime
			if name == "a slow node" { // which takes so long itself
				bound = 8 * copyTime
			}
			t.Logf("%s: %.2f x one copy, origin sent %.2f copies", name, float64(took)/float64(copyTime), copies)
			if took > bound || copies > 3 {
				t.Errorf("%s: %.2f x one copy, origin sent %.2f copies", name, float64(took)/float64(copyTime), copies)
			}
		}
	})
}
