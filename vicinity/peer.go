package vicinity

import "time"

const (
	freshSample = 3  // a new neighbour is measured this often first
	maxBurst    = 12 // messages per second taken from one peer
)

// peer is what a core remembers of another node. Instants are counted from
// the core's epoch; a peer that the node never asked has asked == never.
type peer struct {
	id ID
	samples
	heard   time.Duration // when it last sent something
	asked   time.Duration // when it was last pinged
	backoff time.Duration // no link is asked for before
	vain    int           // links asked for since it was one last
	burst   int           // messages since second began
	second  time.Duration
	tries   int // pings to it as a landmark
	at      bearings
	located time.Duration // when it had them
	checked time.Duration // when they were last compared with the round trip
	place   Coordinate    // by them
	issue   int           // of the coordinates that place is one of; 0 = none
	link    *link
}

// distant is the round trip for comparing, where not measured means farthest.
func (p *peer) distant() time.Duration {
	if p.rtt == 0 {
		return maxRTT
	}
	return p.rtt
}

// flooding counts a message of the peer and reports whether there were too
// many of them within a second. What peers send comes in rounds, so that a token
// bucket as in package flood would tell no more.
func (p *peer) flooding(at time.Duration) bool {
	if at-p.second >= time.Second {
		p.second, p.burst = at, 0
	}
	p.burst++
	return p.burst > maxBurst
}

// claim is what this end says of the link.
func (p *peer) claim() claim {
	switch {
	case p.link == nil:
		return claimNone
	case p.link.want.wants():
		return p.link.want
	default:
		return claimHeld
	}
}

// linger is how long a link that nobody wants lives on.
const linger = 3 * time.Second

// link is one end of a link. It exists while at least one end wants it, the
// other end answers, and it was not refused.
type link struct {
	peer      *peer
	want      claim // of this node: none, near or far
	theirs    claim // what the other end said last
	confirmed bool  // the other end keeps it too
	since     time.Duration
	idle      time.Duration // since when nobody wants it; forever = somebody does
	due       time.Duration // next ping
	tries     int           // pings since the other end was heard
}

func (l *link) unwanted() bool { return !l.want.wants() && !l.theirs.wants() }

// cost is how far away the other end is, for who chooses a link to give up of those that
// only others want: who wants a random one finds another.
func (l *link) cost() time.Duration {
	if l.theirs == claimFar {
		return maxRTT
	}
	return l.peer.distant()
}

// end is when the link is given up because nobody wants it.
func (l *link) end() time.Duration {
	if l.idle == forever {
		return forever
	}
	return l.idle + linger
}

// noteIdle notes since when nobody wants the link.
func (l *link) noteIdle(at time.Duration) {
	switch {
	case !l.unwanted():
		l.idle = forever
	case l.idle == forever:
		l.idle = at
	}
}

func (l *link) far() bool {
	return l.want == claimFar || !l.want.wants() && l.theirs == claimFar
}
