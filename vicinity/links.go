package vicinity

import (
	"cmp"
	"slices"
	"time"
)

const (
	keepAlive  = 10 * time.Second       // a quiet link is pinged this often
	firstRetry = 500 * time.Millisecond // doubling
	maxTries   = 4                      // pings without an answer, 7.5 s in all
	firstPause = 500 * time.Millisecond // without a link to a peer, doubling, where all are linked
	longPause  = 5 * time.Minute        // the longest to who has refused again and again
)

// links keeps this node's ends of its links: it pings them, and takes and gives
// up what the other ends want.
type links struct {
	*local
	pace    *pace
	pings   *pings
	list    []*link
	version uint64        // changes with what neighbours returns
	looked  time.Duration // when all were last probed since some seem to be longer
}

func (s *links) add(p *peer) *link {
	p.link = &link{peer: p, since: s.at, idle: forever, due: s.at}
	s.list = append(s.list, p.link)
	s.version++
	return p.link
}

func (s *links) remove(l *link) {
	if l.want.wants() && l.confirmed {
		s.pace.changed()
	}
	l.peer.link = nil
	s.list = slices.DeleteFunc(s.list, func(m *link) bool { return m == l })
	s.version++
}

// drop ends a link and tells the other end.
func (s *links) drop(l *link) {
	s.remove(l)
	s.send(l.peer.id, message{Kind: kindDrop})
}

// full reports whether there is no room for one more link.
func (s *links) full() bool { return len(s.list) >= maxLinks(s.cfg) }

// room reports whether one more link can be kept, with a peer; if need be it gives up one
// that nobody wants or, of those that only others want, the farthest: for a wish of this
// node's own, or for a peer that is much nearer and wants it for that.
func (s *links) room(p *peer, own bool, says claim) bool {
	if !s.full() {
		return true
	}
	var worst *link
	for _, l := range s.list {
		if l.want.wants() {
			continue
		}
		if worst == nil || l.unwanted() && !worst.unwanted() || l.unwanted() == worst.unwanted() && l.cost() > worst.cost() {
			worst = l
		}
	}
	if worst != nil && !own && !worst.unwanted() && (says != claimNear || !muchNearer(p.distant(), worst.cost())) {
		return false
	}
	if worst == nil {
		return false
	}
	s.drop(worst)
	return true
}

// want asks for a link, or changes what is said of it. The question is a
// ping, so that the answer measures as well. It is no change before the other end has
// said yes.
func (s *links) want(p *peer, as claim) {
	l := p.link
	if l != nil && l.want == as {
		return
	}
	if l == nil {
		if !s.room(p, true, as) {
			return
		}
		l = s.add(p)
	}
	wasFar := l.far()
	l.want = as
	l.noteIdle(s.at)
	if l.far() != wasFar {
		s.version++
	}
	if l.confirmed {
		s.pace.changed()
	}
	s.probe(l)
}

func (s *links) unwant(l *link) { s.want(l.peer, claimNone) }

// probe pings the other end of a link.
func (s *links) probe(l *link) {
	l.due = s.at + firstRetry<<min(l.tries, maxTries)
	l.tries++
	s.pings.ping(l.peer)
}

// confirm notes that the other end was heard.
func (s *links) confirm(l *link) {
	if !l.confirmed && l.want.wants() {
		s.pace.changed()
		s.pace.planSoon()
	}
	l.confirmed = true
	l.peer.vain = 0
	l.tries = 0
	pause := keepAlive
	switch {
	case l.peer.count < freshSample:
		pause = freshPause
	case l.peer.doubtful():
		pause = min(freshPause<<max(0, l.peer.row.all/rowLength-1), keepAlive)
	}
	l.due = s.at + s.jitter(pause)
}

// backOff leaves a peer alone for a while, the longer the more often it has refused. Where
// all are linked nobody else can take its place, and it may just be started again: it is
// asked again sooner, at first.
func (s *links) backOff(p *peer) {
	pause, most := calmPause, longPause
	if s.few() {
		pause, most = firstPause, calmPause
	}
	p.backoff = s.at + s.jitter(min(pause<<min(p.vain, 6), most))
	p.vain++
}

// measured takes note of a sample: a link that seems to be longer is measured again soon,
// and if there are two, so are all: this node may be where they all are longer.
func (s *links) measured(p *peer) {
	if !p.doubtful() || p.link == nil {
		return
	}
	p.link.due = min(p.link.due, s.at+s.jitter(freshPause))
	doubtful := 0
	for _, l := range s.list {
		if l.peer.doubtful() {
			doubtful++
		}
	}
	if doubtful < 2 || s.at-s.looked < keepAlive {
		return
	}
	s.looked = s.at
	for _, l := range s.list {
		if s.at-l.peer.sampled > freshPause {
			l.due = s.at
		}
	}
}

// maintain pings quiet links and gives up the dead and the unwanted. It reports
// whether one was lost that this node wants.
func (s *links) maintain() (lost bool) {
	for _, l := range slices.Clone(s.list) {
		switch {
		case l.peer.link != l:
		case s.at >= l.end():
			s.drop(l)
		case s.at < l.due:
		case l.tries >= maxTries:
			s.backOff(l.peer)
			lost = lost || l.want.wants()
			s.drop(l)
		default:
			s.probe(l)
		}
	}
	return lost
}

// due is when maintain has something to do.
func (s *links) due() time.Duration {
	next := forever
	for _, l := range s.list {
		next = min(next, l.due, l.end())
	}
	return next
}

// claimed takes what the other end says of the link in a ping, accepting a
// link that it asks for if there is room.
func (s *links) claimed(p *peer, says claim) {
	l := p.link
	switch {
	case l == nil && says.wants() && s.room(p, false, says):
		l = s.add(p)
	case l == nil:
		return
	case says == claimNone:
		// It may have been sent before the other end took the link.
		if l.confirmed && s.at-l.since > linger {
			s.lose(l)
		}
		return
	}
	wasFar := l.far()
	l.theirs = says
	l.noteIdle(s.at)
	if l.far() != wasFar {
		s.version++
	}
	s.confirm(l)
}

// granted takes what the other end says of the link in a pong. The ping that it
// answers asked for the link if there was one then.
func (s *links) granted(p *peer, says claim, asked bool) {
	switch {
	case says != claimNone:
		s.claimed(p, says)
		if p.link == nil {
			s.send(p.id, message{Kind: kindDrop})
		}
	case p.link != nil && asked:
		s.lose(p.link)
	}
}

// lose ends a link that the other end does not keep. If this node wants it the other end
// had no room; another one is looked for, in the calm only if this one is missed.
func (s *links) lose(l *link) {
	s.remove(l)
	if l.want.wants() {
		s.backOff(l.peer)
		if !s.pace.slowed() || l.want == claimFar || s.agreed() < s.cfg.Near {
			s.pace.planSoon()
		}
	}
}

// agreed counts the near links that both ends keep.
func (s *links) agreed() (n int) {
	for _, l := range s.list {
		if l.want == claimNear && l.confirmed {
			n++
		}
	}
	return n
}

// near returns the links wanted as near ones, nearest first.
func (s *links) near() []*link {
	near := make([]*link, 0, s.cfg.Near+s.cfg.Far)
	for _, l := range s.list {
		if l.want == claimNear {
			near = append(near, l)
		}
	}
	slices.SortFunc(near, func(a, b *link) int { return cmp.Compare(a.peer.distant(), b.peer.distant()) })
	return near
}

// bound is the round trip of the farthest near link, or maxRTT while there are
// not enough.
func (s *links) bound() time.Duration {
	n, worst := 0, time.Duration(0)
	for _, l := range s.list {
		if l.want == claimNear {
			n++
			worst = max(worst, l.peer.distant())
		}
	}
	if n < s.cfg.Near {
		return maxRTT
	}
	return worst
}

// neighbours returns the links; see Core.Neighbours.
func (s *links) neighbours() []Neighbour {
	list := make([]Neighbour, 0, len(s.list))
	for _, l := range s.list {
		list = append(list, Neighbour{ID: l.peer.id, RTT: l.peer.rtt, Far: l.far()})
	}
	slices.SortFunc(list, func(a, b Neighbour) int {
		if a.Far != b.Far {
			if b.Far {
				return -1
			}
			return 1
		}
		// Unmeasured wraps around to the largest number.
		return cmp.Or(cmp.Compare(uint64(a.RTT)-1, uint64(b.RTT)-1), cmp.Compare(a.ID, b.ID))
	})
	return list
}
