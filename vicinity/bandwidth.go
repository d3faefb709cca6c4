package vicinity

import (
	"math"
	"time"
)

const (
	// minSample and minSpan are what a sample has at least: less may have waited in a
	// buffer, and then comes as fast as memory is.
	minSample = 256 << 10
	minSpan   = 20 * time.Millisecond
	// maxSpan is after how long a sample is taken, though more is coming.
	maxSpan = time.Second
	// wholeSample is from how many bytes on a sample may tell that less is to be had than
	// was believed: shorter ones are still on their way to full speed.
	wholeSample = 2 << 20
	// halfLife is how soon an older sample counts half beside a newer one.
	halfLife = 5 * time.Minute
	// speedLife is how long a speed is believed.
	speedLife = time.Hour
	// maxSpeeds bounds of how many nodes something is known.
	maxSpeeds = 4096
	// MaxSpeed bounds what is believed, in bytes per second.
	MaxSpeed = 1 << 40
)

// Speed is how many bytes a second come from one node to another.
type Speed struct {
	Rate  float64   // bytes per second; 0 = not known
	Least bool      // it is that much at least: whatever was sent was sent beside other things
	At    time.Time // when it was measured last
}

// Bandwidth learns from what is transferred how fast that goes. It is told what comes
// from whom, and what others have measured of what this node sends them. It is a core: it
// has no clock and is not safe for use by several goroutines. Bandwidth{} is one that knows
// nothing.
//
// What counts is the bytes of a node over the time in which at least one request to it was
// under way. Where more was going on at either end, or the node is not allowed to send
// faster, the true number is higher: such a sample raises the estimate only.
type Bandwidth struct {
	nodes     map[ID]*way
	receiving int // from so many nodes
}

// way is what is known of the way to and from a node.
type way struct {
	from, to Speed

	open  int       // requests under way
	since time.Time // the beginning of the sample
	bytes int
	alone bool // nothing else went on
}

// Begin notes that a request begins to be answered by a node. Alone says that it does
// nothing else that could be in the way.
func (b *Bandwidth) Begin(now time.Time, from ID, alone bool) {
	l := b.way(now, from)
	if l.open == 0 {
		l.since, l.bytes, l.alone = now, 0, true
		b.receiving++
	}
	l.open++
	l.alone = l.alone && alone
	if b.receiving > 1 {
		for _, o := range b.nodes {
			o.alone = false
		}
	}
}

// Got notes that so many bytes of such a request have come.
func (b *Bandwidth) Got(now time.Time, from ID, bytes int) {
	l := b.nodes[from]
	if l == nil || l.open == 0 {
		return
	}
	l.bytes += bytes
	if now.Sub(l.since) >= maxSpan && l.bytes >= minSample {
		l.sample(now)
		l.since, l.bytes, l.alone = now, 0, l.alone && b.receiving == 1
	}
}

// End notes that such a request has ended.
func (b *Bandwidth) End(now time.Time, from ID) {
	l := b.nodes[from]
	if l == nil || l.open == 0 {
		return
	}
	if l.open--; l.open == 0 {
		b.receiving--
		l.sample(now)
	}
}

// Told notes what a node has measured of what this one sends it.
func (b *Bandwidth) Told(now time.Time, to ID, s Speed) {
	if s.Rate > 0 && s.Rate <= MaxSpeed {
		s.At = now
		b.way(now, to).to = s
	}
}

// From returns how fast a node sends to this one.
func (b *Bandwidth) From(now time.Time, id ID) Speed {
	if l := b.nodes[id]; l != nil {
		return l.from.still(now)
	}
	return Speed{}
}

// To returns how fast this node sends to another one.
func (b *Bandwidth) To(now time.Time, id ID) Speed {
	if l := b.nodes[id]; l != nil {
		return l.to.still(now)
	}
	return Speed{}
}

// still is the speed as long as it is to be believed.
func (s Speed) still(now time.Time) Speed {
	if now.Sub(s.At) > speedLife {
		return Speed{}
	}
	return s
}

// way returns what is known of a node, and forgets others if it has to.
func (b *Bandwidth) way(now time.Time, id ID) *way {
	if l := b.nodes[id]; l != nil {
		return l
	}
	if b.nodes == nil {
		b.nodes = map[ID]*way{}
	}
	if len(b.nodes) >= maxSpeeds {
		for other, l := range b.nodes {
			if l.open == 0 && (l.from.still(now).Rate == 0 && l.to.still(now).Rate == 0 || len(b.nodes) >= maxSpeeds) {
				delete(b.nodes, other)
			}
		}
	}
	l := &way{}
	b.nodes[id] = l
	return l
}

// sample takes what has come into account.
func (l *way) sample(now time.Time) {
	span := now.Sub(l.since)
	if l.bytes < minSample || span < minSpan {
		return
	}
	rate := math.Min(float64(l.bytes)/span.Seconds(), MaxSpeed)
	whole := l.alone && (l.bytes >= wholeSample || span >= maxSpan)
	old := l.from.still(now)
	if old.Rate == 0 {
		l.from = Speed{rate, !whole, now}
		return
	}
	if rate < old.Rate && !whole {
		return
	}
	weight := 1 - math.Exp2(-now.Sub(old.At).Seconds()/halfLife.Seconds())
	if rate > old.Rate || old.Least {
		weight = max(weight, 0.5)
	}
	l.from = Speed{old.Rate + (rate-old.Rate)*max(weight, 0.25), old.Least && !whole, now}
}
