package vicinity

import (
	"slices"
	"time"
)

// wishes chooses which links this node wants: to the nearest that were measured,
// and to some members drawn at random.
type wishes struct {
	*local
	pace  *pace
	peers *peers
	links *links
	picks []ID // the far links wanted: a uniform sample of the members
}

// plan brings the links wanted in line with what is known.
func (w *wishes) plan() {
	w.pace.nextPlan = forever
	if w.few() {
		w.wantAll()
		return
	}
	w.wantNear()
	w.wantFar()
}

// measured has the links wanted chosen again soon if a sample shows that a peer
// is much nearer than one of them.
func (w *wishes) measured(p *peer) {
	if p.link != nil && p.link.want == claimNear || p.backoff > w.at {
		return
	}
	for _, l := range w.links.list {
		if l.want == claimNear && muchNearer(p.rtt, l.peer.distant()) {
			w.pace.planSoon()
			return
		}
	}
}

// free reports whether a link to a peer, of which nil = nothing is known, may be
// asked for.
func (w *wishes) free(p *peer) bool { return p == nil || p.link == nil && p.backoff <= w.at }

func (w *wishes) wantAll() {
	for i := range w.cfg.Roster.Len() {
		id := w.cfg.Roster.At(i)
		if id == w.cfg.Self {
			continue
		}
		if p := w.peers.get(id); p.backoff <= w.at {
			w.links.want(p, claimNear)
		}
	}
}

// wantNear chooses the nearest. A neighbour is replaced only by one that is
// much nearer, when that has said yes, and among those about as near a link that exists
// already is taken first, which keeps the number of links down.
func (w *wishes) wantNear() {
	w.trimNear()
	if w.links.full() {
		w.share()
	}
	near := w.links.near()
	for range near {
		if len(near) < w.cfg.Near || w.pace.slowed() && len(near) > w.links.agreed() {
			break // in the calm one is asked at a time
		}
		best := w.nextNear(near[w.cfg.Near-1].peer.distant())
		if best == nil {
			break
		}
		w.links.want(best, claimNear)
		near = w.links.near()
	}
	w.trimNear()
	for range w.cfg.Near - len(near) {
		p := w.nextNear(forever)
		if p == nil {
			id := w.draw(func(id ID) bool { return w.free(w.peers.known[id]) })
			if id == "" {
				return
			}
			p = w.peers.get(id)
		}
		w.links.want(p, claimNear)
	}
}

// trimNear gives up the farthest of more links than are wanted, not counting those that
// have yet to be answered.
func (w *wishes) trimNear() {
	near := w.links.near()
	kept := 0
	for _, l := range near {
		if kept >= w.cfg.Near {
			w.links.unwant(l)
		}
		if l.confirmed {
			kept++
		}
	}
}

// share makes room where a node is near to many: of those about as near it wants the ones
// who want it too, so that one link serves both ends.
func (w *wishes) share() {
	near := w.links.near()
	for _, m := range slices.Clone(w.links.list) {
		if m.want != claimNone || m.theirs != claimNear || !m.confirmed {
			continue
		}
		i := slices.IndexFunc(near, func(l *link) bool {
			return l.confirmed && !l.theirs.wants() && !muchNearer(l.peer.distant(), m.peer.distant())
		})
		if i < 0 {
			continue
		}
		w.links.want(m.peer, claimNear)
		w.links.unwant(near[i])
		near = slices.Delete(near, i, i+1)
	}
}

// nextNear returns the best measured peer that is not a near link yet and much nearer than
// a distance.
func (w *wishes) nextNear(than time.Duration) *peer {
	var best *peer
	for _, p := range w.peers.ranked() {
		switch {
		case !muchNearer(p.rtt, than) || best != nil && muchNearer(best.rtt, p.rtt):
			return best
		case p.link != nil && p.link.want == claimNear:
		case p.link != nil && p.link.confirmed:
			return p
		case best == nil && w.free(p):
			best = p
		}
	}
	return best
}

// wantFar keeps links to the members picked. Whom it cannot have it replaces
// by another random one.
func (w *wishes) wantFar() {
	// A pick that is a near link for the moment stays one: would it be replaced
	// at once, members at middling distances, which are near links in the first
	// seconds, would be picked less often than all others.
	calm := w.pace.calm()
	w.picks = slices.DeleteFunc(w.picks, func(id ID) bool { return !w.mayPick(id) && (calm || !w.nearNow(id)) })
	for len(w.picks) < w.cfg.Far {
		id := w.draw(func(id ID) bool { return w.mayPick(id) && !slices.Contains(w.picks, id) })
		if id == "" {
			break
		}
		w.picks = append(w.picks, id)
	}
	for _, l := range slices.Clone(w.links.list) {
		if l.want == claimFar && !slices.Contains(w.picks, l.peer.id) {
			w.links.unwant(l)
		}
	}
	for _, id := range w.picks {
		if !w.nearNow(id) {
			w.links.want(w.peers.get(id), claimFar)
		}
	}
}

// nearNow reports whether a member is wanted as one of the nearest.
func (w *wishes) nearNow(id ID) bool {
	p := w.peers.known[id]
	return p != nil && p.claim() == claimNear && w.cfg.Roster.Has(id)
}

func (w *wishes) mayPick(id ID) bool {
	p := w.peers.known[id]
	return w.cfg.Roster.Has(id) && (p == nil || p.backoff <= w.at && p.claim() != claimNear)
}

// repick puts a new member, the n-th, among the picks with such a chance that
// the picks stay a uniform sample of all members. Thus the halves of a network
// that was cut grow together again when their members return.
func (w *wishes) repick(id ID, n int) {
	for i := range w.picks {
		if w.cfg.Rand.IntN(n) == 0 && !slices.Contains(w.picks, id) && w.mayPick(id) {
			w.picks[i] = id
			w.pace.planSoon()
		}
	}
	if len(w.picks) < w.cfg.Far {
		w.pace.planSoon()
	}
}
