package vicinity

import (
	"container/heap"
	"crypto/ed25519"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// testID returns the i-th of a fixed row of IDs.
func testID(i int) ID {
	key := make(ed25519.PublicKey, ed25519.PublicKeySize)
	binary.BigEndian.PutUint64(key, uint64(i))
	return IDFromKey(key)
}

func seeded(a, b uint64) *rand.Rand { return rand.New(rand.NewPCG(a, b)) }

// network runs cores on one heap of events, in virtual time. Latencies are
// those of sites some 10 to 19 ms apart, with jitter and rare outliers.
type network struct {
	t      *testing.T
	rnd    *rand.Rand
	now    time.Time
	events events
	seq    int
	roster *Roster
	nodes  []*simNode
	byID   map[ID]*simNode
	cut    func(a, b *simNode) bool // nil = nothing is cut
	slow   time.Duration            // how much later than that packets may come
	loss   int                      // of 1000 packets, besides one
	bytes  int64
}

type simNode struct {
	id    ID
	site  int
	core  *Core
	down  bool
	timer int // number of the valid timer event
}

type event struct {
	at      time.Time
	seq     int
	to      *simNode
	from    ID
	payload []byte // nil = timer
	timer   int
	call    func()
}

type events []*event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at.Before(e[j].at) || e[i].at.Equal(e[j].at) && e[i].seq < e[j].seq
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(*event)) }
func (e *events) Pop() any {
	old := *e
	x := old[len(old)-1]
	old[len(old)-1] = nil
	*e = old[:len(old)-1]
	return x
}

func newNetwork(t *testing.T, seed uint64) *network {
	t.Logf("seed %d", seed)
	return &network{t: t, rnd: seeded(seed, 0), now: time.Unix(0, 0), roster: new(Roster), byID: make(map[ID]*simNode)}
}

func (w *network) push(e event) {
	w.seq++
	e.seq = w.seq
	heap.Push(&w.events, &e)
}

// truth is the round trip without jitter.
func truth(a, b *simNode) time.Duration {
	if a.site == b.site {
		return 200 * time.Microsecond
	}
	lo, hi := min(a.site, b.site), max(a.site, b.site)
	return 10*time.Millisecond + time.Duration((lo*7+hi*13)%10)*time.Millisecond
}

func (w *network) oneWay(a, b *simNode) time.Duration {
	d := float64(truth(a, b)) / 2 * (1 + 0.03*w.rnd.Float64())
	d += w.rnd.ExpFloat64() * float64(25*time.Microsecond)
	if w.rnd.IntN(200) == 0 {
		d += w.rnd.Float64() * float64(20*time.Millisecond)
	}
	if w.slow > 0 {
		d += float64(w.rnd.Int64N(int64(w.slow)))
	}
	return time.Duration(d)
}

// add starts a node that the others learn of within a second.
func (w *network) add(site, near, far int) *simNode {
	i := len(w.nodes)
	n := &simNode{id: testID(i), site: site}
	n.core = NewCore(CoreConfig{Self: n.id, Near: near, Far: far, Peers: 256, Rand: seeded(w.rnd.Uint64(), uint64(i)), Roster: w.roster}, w.now)
	w.nodes = append(w.nodes, n)
	w.byID[n.id] = n
	w.roster.Add(n.id)
	for _, other := range w.nodes[:i] {
		if other.down {
			continue
		}
		w.push(event{at: w.now.Add(w.heardAfter()), to: other, call: func() { w.sent(other, other.core.Join(w.now, n.id)) }})
		w.push(event{at: w.now.Add(w.heardAfter()), to: n, call: func() { w.sent(n, n.core.Join(w.now, other.id)) }})
	}
	w.wind(n)
	return n
}

func (w *network) heardAfter() time.Duration { return time.Duration(w.rnd.Int64N(int64(time.Second))) }

// crash stops nodes; the others are told after five to ten seconds.
func (w *network) crash(dead ...*simNode) {
	for _, n := range dead {
		n.down = true
	}
	w.push(event{at: w.now.Add(5 * time.Second), call: func() {
		for _, n := range dead {
			w.roster.Remove(n.id)
		}
	}})
	for _, other := range w.alive() {
		for _, n := range dead {
			after := 5*time.Second + 5*w.heardAfter()
			w.push(event{at: w.now.Add(after), to: other, call: func() { w.sent(other, other.core.Leave(w.now, n.id)) }})
		}
	}
}

func (w *network) alive() []*simNode {
	return slices.DeleteFunc(slices.Clone(w.nodes), func(n *simNode) bool { return n.down })
}

func (w *network) wind(n *simNode) {
	n.timer++
	w.push(event{at: n.core.Next(), to: n, timer: n.timer})
}

func (w *network) sent(from *simNode, packets []Packet) {
	for _, p := range packets {
		if len(p.Payload) > MaxPacket {
			w.t.Fatalf("packet of %d bytes", len(p.Payload))
		}
		w.bytes += int64(len(p.Payload))
		to := w.byID[p.To]
		if to == nil || w.rnd.IntN(1000) <= w.loss || w.cut != nil && w.cut(from, to) {
			continue
		}
		w.push(event{at: w.now.Add(w.oneWay(from, to)), to: to, from: from.id, payload: p.Payload})
	}
	w.wind(from)
}

func (w *network) run(d time.Duration) {
	end := w.now.Add(d)
	for len(w.events) > 0 && !w.events[0].at.After(end) {
		e := heap.Pop(&w.events).(*event)
		if e.at.After(w.now) {
			w.now = e.at
		}
		switch {
		case e.to != nil && e.to.down:
		case e.call != nil:
			e.call()
		case e.payload != nil:
			w.sent(e.to, e.to.core.Receive(w.now, e.from, e.payload))
		case e.timer == e.to.timer:
			w.sent(e.to, e.to.core.Tick(w.now))
		}
	}
	w.now = end
}

// nearShare is the share of the wanted near links that go to a node of the
// own site, as far as there are enough of them.
func (w *network) nearShare() float64 {
	size := make(map[int]int)
	for _, n := range w.alive() {
		size[n.site]++
	}
	right, all := 0, 0
	for _, n := range w.alive() {
		possible, got := min(n.core.cfg.Near, size[n.site]-1), 0
		for _, l := range n.core.links.list {
			if l.want == claimNear && w.byID[l.peer.id].site == n.site {
				got++
			}
		}
		all += possible
		right += min(got, possible)
	}
	return float64(right) / float64(all)
}

// oneSided counts the ends of links whose other end does not keep them.
func (w *network) oneSided() (bad, all int) {
	for _, n := range w.alive() {
		for _, x := range n.core.Neighbours() {
			all++
			p := w.byID[x.ID].core.peers.known[n.id]
			if w.byID[x.ID].down || p == nil || p.link == nil {
				bad++
			}
		}
	}
	return bad, all
}

// reached counts the nodes that a flood from the first live node reaches.
func (w *network) reached() int {
	start := w.alive()[0]
	seen := map[ID]bool{start.id: true}
	queue := []*simNode{start}
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		for _, x := range n.core.Neighbours() {
			if to := w.byID[x.ID]; !seen[x.ID] && !to.down {
				seen[x.ID] = true
				queue = append(queue, to)
			}
		}
	}
	return len(seen)
}

func (w *network) report() string {
	bad, all := w.oneSided()
	live := w.alive()
	most, least := 0, 1<<30
	for _, n := range live {
		most, least = max(most, len(n.core.links.list)), min(least, len(n.core.links.list))
	}
	return fmt.Sprintf("share %.3f, links %.1f (%d..%d), one-sided %d, reached %d of %d, %.0f B sent a node so far",
		w.nearShare(), float64(all)/float64(len(live)), least, most, bad, w.reached(), len(live), float64(w.bytes)/float64(len(live)))
}

// healthy demands that the links are symmetric, full and in one piece.
func (w *network) healthy() {
	w.t.Helper()
	if bad, all := w.oneSided(); bad > all/100 {
		w.t.Errorf("%d of %d link ends are one-sided", bad, all)
	}
	if got, want := w.reached(), len(w.alive()); got != want {
		w.t.Errorf("a flood reaches %d of %d nodes", got, want)
	}
	for _, n := range w.alive() {
		if got, low, high := len(n.core.links.list), n.core.cfg.Near+n.core.cfg.Far-1, maxLinks(n.core.cfg); got < low || got > high {
			w.t.Errorf("node %s has %d links, want %d to %d", n.id.Short(), got, low, high)
		}
	}
}
