package flood

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"zorilla/vicinity"
)

// Pace of extensions.
const (
	minBatch = 4 // nodes extended at once
	minPause = time.Millisecond
	maxPause = 250 * time.Millisecond
)

// Reach is what the origin learns of a node that a flood has reached.
type Reach struct {
	Node   vicinity.ID
	RTT    time.Duration // from the origin; an upper bound where it is not measured
	Hops   int           // links that the message travelled, the first time
	Rim    bool          // it came with TTL 1: the node did not send it on
	Onward int           // see Message

	Again bool // it was sent the flood before, by the origin itself
	Last  bool // it is sent a copy that goes no further

	exact bool // RTT is measured
	asked bool // RTT is being measured
}

// Cost counts what a flood has taken so far, as far as the answers tell.
type Cost struct {
	Messages int // copies sent, by all nodes; an upper bound
	Reached  int // nodes
	Extended int // nodes on the rim beyond which the flood was carried
	Hops     int // links to the farthest node
}

// Frontier is what an origin knows of one flood of its own, and decides where
// to extend it: nearest first, as a best-first search of the neighbour graph
// does, until nobody is left on the rim who is nearer than the farthest node
// that the origin would use. It belongs to one goroutine and is empty until Begin.
//
//	f.Begin(flood, now)
//	on each answer: f.Answered(now, reach)
//	whom to extend: f.Next(now, horizon, wanted, measured); again at f.Ready()
type Frontier struct {
	rim    []Reach
	asked  map[vicinity.ID]sendings // of copies by this node itself; until an answer comes
	seen   map[vicinity.ID]bool
	met    map[vicinity.ID]bool // by Meet
	cost   Cost
	batch  int
	direct *direct // nil = not all others are known
	before heard   // of the flood before, if that was direct
	began  time.Time
	until  time.Time // end of the flood's life
	sent   time.Time // the last copies of the origin
	ready  time.Time // when those who have been reached last have had time to answer
}

// sendings are how often a node was sent a copy, and when last.
type sendings struct {
	times int
	last  time.Time
}

// Begin starts anew with a flood that has just been started.
func (f *Frontier) Begin(fl Flood, now time.Time) {
	var before heard
	if f.direct != nil {
		before = f.direct.heard
	}
	*f = Frontier{
		before: before,
		seen:   map[vicinity.ID]bool{}, asked: map[vicinity.ID]sendings{}, cost: Cost{Messages: fl.Copies}, began: now, sent: now, until: fl.until,
	}
	for _, id := range fl.to {
		f.asked[id] = sendings{1, now}
	}
}

// How often a node is sent a copy by the origin, and for how long after the flood began more
// often than that: of a hundred answers to three copies one is lost where a tenth of all
// packets is, and who has died is not to hold up a job for long.
const (
	maxAsked  = 6
	usual     = 3
	persevere = time.Second
)

// Silent returns the nodes that were sent a copy by this node itself, are known to be nearer
// than the horizon and have not answered in two round trips: something was lost. The caller
// sends the flood to them again, as if they were on the rim, and waits for them as for the
// others. None is returned too often. measured returns the round trip to a node, or 0.
func (f *Frontier) Silent(now time.Time, horizon time.Duration, measured func(vicinity.ID) time.Duration) (list []Reach) {
	if !now.Before(f.until) {
		return nil
	}
	limit := usual
	if now.Before(f.began.Add(persevere)) {
		limit = maxAsked
	}
	for _, id := range slices.Sorted(maps.Keys(f.asked)) {
		rtt, a := measured(id), f.asked[id]
		due := a.last.Add(pause(2 * rtt))
		if f.direct != nil {
			q := f.direct.asked[id]
			rtt, due = q.known.RTT, q.until
		}
		if rtt <= 0 || rtt >= horizon || a.times >= limit || now.Before(due) {
			continue
		}
		f.asked[id] = sendings{a.times + 1, now}
		f.cost.Messages++
		list = append(list, Reach{Node: id, RTT: rtt, Hops: 1, Again: true, Last: f.direct != nil})
		if f.direct != nil {
			f.direct.await(now, f.direct.asked[id].known)
		}
		f.sent = now
		if ready := now.Add(pause(2 * rtt)); f.ready.Before(ready) {
			f.ready = ready
		}
	}
	return list
}

// Besides returns those of some nodes that have been sent no copy and have not answered: the origin sends
// them one that goes no further, however far they are, as they matter to it for another reason.
func (f *Frontier) Besides(now time.Time, nodes []vicinity.Measured) (list []Reach) {
	if f.seen == nil || !now.Before(f.until) {
		return nil
	}
	for _, m := range nodes {
		if f.seen[m.ID] || f.asked[m.ID].times > 0 {
			continue
		}
		f.asked[m.ID] = sendings{1, now}
		if f.direct != nil {
			f.direct.await(now, m)
		}
		f.cost.Messages++
		f.sent = now
		list = append(list, Reach{Node: m.ID, RTT: m.RTT, Hops: 1, Last: true})
	}
	return list
}

// Unanswered lists the nodes that were sent a copy by this node itself and have not answered.
func (f *Frontier) Unanswered() []vicinity.ID { return slices.Sorted(maps.Keys(f.asked)) }

// Answered takes the first answer of a node; more of the same node do nothing.
func (f *Frontier) Answered(now time.Time, r Reach) {
	if f.seen == nil || f.seen[r.Node] {
		return
	}
	f.seen[r.Node] = true
	delete(f.asked, r.Node)
	if f.direct != nil {
		f.direct.answered(now, r.Node)
	}
	if f.met[r.Node] { // over a link, after all
		f.rim = slices.DeleteFunc(f.rim, func(m Reach) bool { return m.Node == r.Node })
	}
	if f.ready.IsZero() {
		// The rest of the nearest take about as long again as the first.
		f.ready = now.Add(pause(now.Sub(f.began)))
	}
	f.cost.Reached++
	f.cost.Hops = max(f.cost.Hops, r.Hops)
	if !r.Rim {
		f.cost.Messages += r.Onward
		return
	}
	if r.Onward > 0 && f.direct == nil {
		f.rim = append(f.rim, r)
	}
}

// Meet reports a node that is known to be so far away; if the flood has not
// reached it, it is as good as one on the rim. More of the same node do nothing.
func (f *Frontier) Meet(id vicinity.ID, rtt time.Duration) {
	if f.seen == nil || f.seen[id] || f.met[id] || f.direct != nil {
		return
	}
	if f.met == nil {
		f.met = map[vicinity.ID]bool{}
	}
	f.met[id] = true
	f.rim = append(f.rim, Reach{Node: id, RTT: rtt, Hops: 1, Rim: true, exact: true})
}

// Nearest returns the distance of the nearest node on the rim, or of the nearest that Ask
// has not returned; ok is false if there is none.
func (f *Frontier) Nearest() (rtt time.Duration, ok bool) {
	if f.direct != nil {
		return f.direct.nearest()
	}
	for _, r := range f.rim {
		if !ok || r.RTT < rtt {
			rtt, ok = r.RTT, true
		}
	}
	return rtt, ok
}

// Refresh takes the round trips to nodes on the rim that have been measured in
// the meantime. measured returns one, or 0.
func (f *Frontier) Refresh(measured func(vicinity.ID) time.Duration) {
	for i := range f.rim {
		if r := &f.rim[i]; !r.exact {
			if rtt := measured(r.Node); rtt > 0 {
				r.RTT, r.exact = rtt, true
			}
		}
	}
}

// Unsure returns at most so many nodes on the rim that are not known to be
// beyond the horizon, as only an upper bound of their distance is known, and
// takes it that they are being measured: none is returned twice.
func (f *Frontier) Unsure(horizon time.Duration, limit int) (ids []vicinity.ID) {
	for i := range f.rim {
		if r := &f.rim[i]; len(ids) < limit && !r.exact && !r.asked && r.RTT >= horizon {
			r.asked = true
			ids = append(ids, r.Node)
		}
	}
	return ids
}

// Open reports whether a node on the rim is nearer than the horizon and the
// flood can still be extended; or whether one so near may be asked, or yet answer.
func (f *Frontier) Open(now time.Time, horizon time.Duration) bool {
	if f.direct != nil {
		return now.Before(f.until) && f.open(now, horizon)
	}
	rtt, ok := f.Nearest()
	return ok && rtt < horizon && now.Before(f.until)
}

// Next returns the nodes on the rim to be extended now: the nearest ones below
// the horizon. They are few at first and twice as many each time, so that the
// number of steps is the logarithm of the nodes passed; wanted, the workers
// still looked for, is a hint for the first step. measured returns the round
// trip to a node as known by now, or 0. Next returns nothing before Ready. The
// caller extends the flood beyond all of them.
func (f *Frontier) Next(now time.Time, horizon time.Duration, wanted int, measured func(vicinity.ID) time.Duration) []Reach {
	if f.ready.IsZero() || now.Before(f.ready) || !now.Before(f.until) {
		return nil
	}
	f.Refresh(measured)
	slices.SortFunc(f.rim, func(a, b Reach) int {
		return cmp.Or(cmp.Compare(a.RTT, b.RTT), cmp.Compare(a.Node, b.Node))
	})
	if len(f.rim) == 0 {
		return nil
	}
	// Not beyond far nodes before those near by have been passed.
	horizon = min(horizon, max(2*f.rim[0].RTT, f.rim[0].RTT+time.Millisecond))
	batch := max(2*f.batch, minBatch, wanted/4)
	n := 0
	for n < len(f.rim) && n < batch && f.rim[n].RTT < horizon {
		n++
	}
	if n == 0 {
		return nil
	}
	f.batch = batch
	next := slices.Clone(f.rim[:n])
	for _, r := range next {
		if !f.seen[r.Node] {
			f.asked[r.Node] = sendings{1, now}
		}
		f.cost.Messages += 1 + r.Onward
	}
	f.cost.Extended += n
	f.sent, f.ready = now, now.Add(pause(2*f.rim[n-1].RTT))
	f.rim = slices.Delete(f.rim, 0, n)
	return next
}

func pause(d time.Duration) time.Duration { return min(max(d, minPause), maxPause) }

// Ready returns when Next may return nodes again; zero until the first answer.
func (f *Frontier) Ready() time.Time { return f.ready }

// Sent returns when the origin last sent copies.
func (f *Frontier) Sent() time.Time { return f.sent }

// Cost returns the cost so far.
func (f *Frontier) Cost() Cost { return f.cost }
