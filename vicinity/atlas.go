package vicinity

import (
	"math"
	"slices"
	"time"
)

// mark is a landmark: one of the members with the smallest IDs, so that all
// nodes choose the same ones without a word.
type mark struct {
	id  ID
	tag uint16
	at  Coordinate
	set bool // at is known
}

// atlas holds the landmarks, sorted by tag, and where they are. Places are
// worked out from bearings when somebody asks, never sent.
type atlas struct {
	marks []mark
	stale bool          // the landmarks have to be chosen anew
	drawn time.Duration // when the places were worked out
	issue int           // counts how often they changed; 0 = never
	own   bearings      // complete, taken less than a second ago; or old
	taken time.Duration // when own was taken
}

const (
	redraw   = 5 * time.Second
	moved    = 5e-4 // seconds; less does not make a new issue of the atlas
	surveyed = 3    // samples of a landmark wanted at first
	surveys  = 3    // pings to landmarks in a round
)

// landmarks returns those that there are now.
func (c *Core) landmarks() []mark {
	if !c.atlas.stale {
		return c.atlas.marks
	}
	c.atlas.stale = false
	least := make([]ID, 0, landmarks+1)
	for i := range c.cfg.Roster.Len() {
		id := c.cfg.Roster.At(i)
		if len(least) == landmarks && id > least[landmarks-1] {
			continue
		}
		at, _ := slices.BinarySearch(least, id)
		least = slices.Insert(least, at, id)
		least = least[:min(len(least), landmarks)]
	}
	before := c.atlas.marks
	c.atlas.marks = nil
	for _, id := range least {
		m := mark{id: id, tag: tagOf(id)}
		if i := slices.IndexFunc(before, func(b mark) bool { return b.id == id }); i >= 0 {
			m = before[i]
		}
		c.atlas.marks = append(c.atlas.marks, m)
	}
	slices.SortStableFunc(c.atlas.marks, func(a, b mark) int { return int(a.tag) - int(b.tag) })
	// Of two with one tag, by great chance, one is enough.
	c.atlas.marks = slices.CompactFunc(c.atlas.marks, func(a, b mark) bool { return a.tag == b.tag })
	c.atlas.drawn, c.atlas.own = never, nil
	return c.atlas.marks
}

func (c *Core) isLandmark(id ID) bool {
	return slices.ContainsFunc(c.landmarks(), func(m mark) bool { return m.id == id })
}

// member takes note that one came or went.
func (a *atlas) member(id ID) {
	if len(a.marks) < landmarks || slices.ContainsFunc(a.marks, func(m mark) bool { return id <= m.id }) {
		a.stale = true
	}
}

// bearings returns this node's own, if most landmarks have been measured. One
// sample may be far off, two hardly ever are. The result must not be changed.
func (c *Core) bearings() bearings {
	marks := c.landmarks()
	if c.at-c.atlas.taken < time.Second && len(c.atlas.own) > 0 {
		return c.atlas.own
	}
	c.atlas.own = nil
	var out bearings
	for _, m := range marks {
		if m.id == c.cfg.Self {
			out = append(out, bearing{tag: m.tag})
		} else if p := c.known[m.id]; p != nil && p.count > 1 {
			out = append(out, bearing{m.tag, p.rtt})
		}
	}
	if 4*len(out) < 3*len(marks) {
		return nil
	}
	if len(out) == len(marks) {
		c.atlas.own, c.atlas.taken = out, c.at
	}
	return out
}

// survey pings the landmarks that are not measured well. The more nodes there
// are, the less often each asks, since all ask the same few.
func (c *Core) survey() {
	pause := max(time.Minute, time.Duration(c.others())*250*time.Millisecond)
	asked := 0
	marks := c.landmarks()
	first := 0
	if len(marks) > 0 {
		first = c.cfg.Rand.IntN(len(marks))
	}
	for i := range marks {
		m := marks[(first+i)%len(marks)]
		if m.id == c.cfg.Self || asked == surveys {
			continue
		}
		p := c.peer(m.id)
		if since := c.at - p.asked; since > pause || p.count < surveyed && since > time.Second<<min(p.tries, 6) {
			p.tries++
			c.ping(p)
			asked++
		}
	}
}

// chart works out where the landmarks are, from their bearings to each other.
// It begins with the places of last time, so that a map stays as it is.
func (c *Core) chart() {
	marks := c.landmarks()
	if c.at-c.atlas.drawn < redraw && c.atlas.issue > 0 {
		return
	}
	c.atlas.drawn = c.at
	before := slices.Clone(marks)
	seen := make([]bearings, len(marks))
	for i := range marks {
		seen[i] = c.bearingsOf(marks[i].id)
		if !marks[i].set { // somewhere, the same at every node
			for d := range marks[i].at.Vec {
				marks[i].at.Vec[d] = 0.02 * (float64(tagOf(marks[i].id[d+1:]))/math.MaxUint16 - 0.5)
			}
		}
	}
	if len(marks) == 1 {
		marks[0].set = true
	}
	for round := range 100 {
		for i := range marks {
			if list := c.sights(marks, seen, i); len(list) > 0 {
				marks[i].at = marks[i].at.pull(list, round >= 50)
				marks[i].set = true
			}
		}
	}
	for i := range marks {
		if marks[i].set != before[i].set || marks[i].at.Distance(before[i].at).Seconds() > moved {
			c.atlas.issue++
			return
		}
	}
	c.atlas.issue = max(1, c.atlas.issue)
}

// sights returns what is known of the way from one landmark to the others.
func (c *Core) sights(marks []mark, seen []bearings, i int) []witness {
	var list []witness
	for k := range marks {
		if k == i {
			continue
		}
		rtt, ok := seen[i].to(marks[k].tag)
		if back, ok2 := seen[k].to(marks[i].tag); ok2 && (!ok || back < rtt) {
			rtt, ok = back, true
		}
		if ok {
			list = append(list, witness{at: marks[k].at, rtt: rtt.Seconds()})
		}
	}
	return list
}

// bearingsOf returns the last known bearings of a node, or this one's.
func (c *Core) bearingsOf(id ID) bearings {
	if id == c.cfg.Self {
		return c.bearings()
	}
	if p := c.known[id]; p != nil {
		return p.at
	}
	return nil
}

// Coordinate returns where a node is. It is false while too little is known of
// it, which takes some seconds in a new network. Only distances between the
// coordinates that one core gave at the same time mean something.
func (c *Core) Coordinate(id ID) (Coordinate, bool) {
	c.chart()
	marks := c.landmarks()
	if i := slices.IndexFunc(marks, func(m mark) bool { return m.id == id }); i >= 0 && marks[i].set {
		return marks[i].at, true
	}
	p := c.known[id]
	if p != nil && p.issue == c.atlas.issue {
		return p.place, true
	}
	var list []witness
	for _, b := range c.bearingsOf(id) {
		if i := slices.IndexFunc(marks, func(m mark) bool { return m.tag == b.tag }); i >= 0 && marks[i].set {
			list = append(list, witness{at: marks[i].at, rtt: b.rtt.Seconds()})
		}
	}
	if len(list) < min(3, len(marks)) || len(list) == 0 {
		return Coordinate{}, false
	}
	at := locate(list)
	if p != nil {
		p.place, p.issue = at, c.atlas.issue
	}
	return at, true
}

// Distance predicts the round trip between two nodes. It is the measured one
// if one of them is this node or a landmark. It is false if the place of one
// of them is not known.
func (c *Core) Distance(a, b ID) (time.Duration, bool) {
	if a == b {
		return 0, true
	}
	for range 2 {
		if rtt, ok := c.RTT(b); ok && a == c.cfg.Self {
			return rtt, true
		}
		if rtt, ok := c.bearingsOf(a).to(tagOf(b)); ok && c.isLandmark(b) {
			return max(rtt, minRTT), true
		}
		a, b = b, a
	}
	from, ok := c.Coordinate(a)
	to, ok2 := c.Coordinate(b)
	if !ok || !ok2 {
		return 0, false
	}
	return predict(from, to, c.bearingsOf(a), c.bearingsOf(b)), true
}

// predict returns the round trip between two nodes: that of their places, as
// far as their bearings allow it.
func predict(from, to Coordinate, a, b bearings) time.Duration {
	d := from.Distance(to)
	least, most, common := a.compare(b)
	if common < 3 {
		return d
	}
	if same(least, common) {
		most = least
	}
	return max(minRTT, least, min(d, most))
}

// MaxBearings is how many bytes Bearings returns at most.
const MaxBearings = landmarks * bearingLength

// Bearings returns where this node is, for messages of another protocol: who
// gets them hands them to Placed. They are empty while too little is known.
func (c *Core) Bearings() []byte { return c.bearings().wire() }

// Placed takes what a member's Bearings returned. Bytes of another form, or
// from who is no member, are counted and change nothing.
func (c *Core) Placed(now time.Time, id ID, b []byte) {
	c.enter(now)
	at, ok := bearingsFromWire(b)
	switch {
	case id == c.cfg.Self:
	case !c.cfg.Roster.Has(id):
		c.stats.Strangers++
	case !ok:
		c.stats.Malformed++
	default:
		c.place(c.peer(id), at, c.at)
	}
}
