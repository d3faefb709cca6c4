// Package sim runs the bare cores of many nodes on one heap of events, in
// virtual time: no goroutine, lock, socket or clock, so that one seed always
// gives the same run, and ten thousand nodes fit into one process.
//
// An [Overlay] is the ground on which all else stands: hosts at sites whose
// round trips are known exactly, a network with noise and loss between them,
// members that come and go, and a [vicinity.Core] at every host. What runs on
// top uses Send for its packets and Schedule for its timers. A [Grid] is what does:
// nodes that run jobs, with real floods, for experiments in which little fails and
// for storms in which everything does.
package sim

import (
	"math/rand/v2"
	"time"

	"zorilla/vicinity"
)

// OverlayConfig describes an Overlay. Layout is required; zero fields of Noise
// mean none of it.
type OverlayConfig struct {
	Layout Layout
	Seed   uint64
	Noise  Noise
	Paths  Paths // nil = both ways of a round trip take as long
	Live   bool  // Paths are as they were at a random time, for each packet
	// Guarded reports whether a node is behind a firewall, and gets packets only of whom
	// it has sent one to in the last minute; nil = none is.
	Guarded func(node int) bool
	Peers   int // nodes that a core remembers; 0 = the protocol's own
	// Idle leaves the vicinity cores without events, for who brings a graph of
	// neighbours of his own: Neighbours is empty, Core must not be used.
	Idle bool
}

const (
	// heard is how long news of a member need to reach the others: each hears
	// of it after a time of its own, up to this.
	heard = time.Second
	// suspicion is how long a dead or cut off member is still believed to be there.
	suspicion = 5 * time.Second
)

// Overlay is a network of simulated nodes, called by numbers from 0. Methods
// must not be called at the same time, but may be called by the functions that
// the overlay itself calls.
type Overlay struct {
	cfg    OverlayConfig
	rnd    *rand.Rand
	at     time.Duration // since epoch
	queue  queue
	hosts  []*host
	index  map[vicinity.ID]int
	part   []int              // of each site; packets between parts are lost
	cuts   int                // how often it was cut
	roster []*vicinity.Roster // of each site: who is a member in its eyes
	// listeners are called when a node hears that another one is a member, or is gone.
	listeners []func(at int, id vicinity.ID, member bool)
	own       Traffic                  // of the vicinity cores
	opened    map[[2]int]time.Duration // when a guarded node last sent to another one
}

// host is one node's place in the simulation.
type host struct {
	id     vicinity.ID
	site   int
	access time.Duration
	core   *vicinity.Core
	down   bool
	life   int           // how often it was started
	timer  time.Duration // when its core is woken; 0 = not yet started
	busy   time.Duration // until then its answers are late,
	late   time.Duration // by up to this
}

// Traffic counts packets sent, whether they arrived or not.
type Traffic struct {
	Packets, Bytes int64
}

// NewOverlay returns a network in which the hosts of the layout have been
// members since the start: each knows all others, but nobody's distance. Their
// cores begin within the first second.
func NewOverlay(cfg OverlayConfig) *Overlay {
	o := &Overlay{cfg: cfg, rnd: rand.New(rand.NewPCG(cfg.Seed, 0x0e1)), index: make(map[vicinity.ID]int), opened: map[[2]int]time.Duration{}}
	o.part = make([]int, len(cfg.Layout.Sizes))
	for range cfg.Layout.Sizes {
		o.roster = append(o.roster, new(vicinity.Roster))
	}
	for site, size := range cfg.Layout.Sizes {
		for range size {
			h := o.addHost(site)
			for _, r := range o.roster {
				r.Add(h.id)
			}
		}
	}
	if cfg.Idle {
		return o
	}
	for i := range o.hosts {
		o.Schedule(o.upTo(time.Second), func() { o.begin(i) })
	}
	return o
}

// Len returns how many nodes there have ever been. Numbers are not used again.
func (o *Overlay) Len() int { return len(o.hosts) }

// ID returns the name of a node.
func (o *Overlay) ID(i int) vicinity.ID { return o.hosts[i].id }

// Index returns the number of a node by its name.
func (o *Overlay) Index(id vicinity.ID) (int, bool) {
	i, ok := o.index[id]
	return i, ok
}

// Site returns the site that a node is at.
func (o *Overlay) Site(i int) int { return o.hosts[i].site }

// Up reports whether a node runs.
func (o *Overlay) Up(i int) bool { return !o.hosts[i].down }

// Core returns a node's vicinity core, to ask it. To give it an input, use
// Feed.
func (o *Overlay) Core(i int) *vicinity.Core { return o.hosts[i].core }

// Neighbours returns a node's links; none before its core began.
func (o *Overlay) Neighbours(i int) []vicinity.Neighbour {
	if o.hosts[i].core == nil {
		return nil
	}
	return o.hosts[i].core.Neighbours()
}

// Traffic returns what the vicinity cores sent so far, all together.
func (o *Overlay) Traffic() Traffic { return o.own }

// Rand returns the source of all chance in the network. What runs on top may
// draw from it too and stays repeatable.
func (o *Overlay) Rand() *rand.Rand { return o.rnd }

// Now returns the virtual time.
func (o *Overlay) Now() time.Time { return time.Unix(0, 0).Add(o.at) }

// Elapsed returns the virtual time since the start.
func (o *Overlay) Elapsed() time.Duration { return o.at }

// Schedule calls a function after a time; functions due at the same time are
// called in the order of Schedule.
func (o *Overlay) Schedule(after time.Duration, call func()) {
	o.queue.push(event{at: o.at + max(0, after), call: call})
}

// Run lets time pass, with all that is due in it.
func (o *Overlay) Run(d time.Duration) {
	end := o.at + d
	for len(o.queue.heap) > 0 && o.queue.heap[0].at <= end {
		e := o.queue.pop()
		o.at = e.at
		if e.call != nil {
			e.call()
			continue
		}
		h := o.hosts[e.to]
		switch {
		case h.down:
		case e.payload == nil:
			o.tick(h, e.at)
		case h.core != nil:
			o.Feed(int(e.to), h.core.Receive(o.Now(), o.hosts[e.from].id, e.payload))
		}
	}
	o.at = end
}

// tick wakes a core, unless the timer was set anew since.
func (o *Overlay) tick(h *host, set time.Duration) {
	if h.timer != set {
		return
	}
	h.timer = forever
	var out []vicinity.Packet
	if !h.core.Next().After(o.Now()) {
		out = h.core.Tick(o.Now())
	}
	o.Feed(o.index[h.id], out)
}

// Feed sends the packets that a call to a node's core returned, and sets its
// timer anew. It must follow every call that gave the core an input.
func (o *Overlay) Feed(i int, packets []vicinity.Packet) {
	h := o.hosts[i]
	for _, p := range packets {
		o.own.Packets++
		o.own.Bytes += int64(len(p.Payload))
		to, ok := o.index[p.To]
		if !ok {
			continue
		}
		o.carry(i, to, event{to: int32(to), from: int32(i), payload: p.Payload})
	}
	next := max(o.at, h.core.Next().Sub(time.Unix(0, 0)))
	if next < h.timer {
		h.timer = next
		o.queue.push(event{at: next, to: int32(i)})
	}
}

const forever = time.Duration(1<<63 - 1)

// upTo returns a random time below d.
func (o *Overlay) upTo(d time.Duration) time.Duration {
	return time.Duration(o.rnd.Int64N(int64(d) + 1))
}
