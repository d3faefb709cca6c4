package vicinity

import "time"

const (
	activePause = time.Second      // between rounds while the neighbours change
	calmPause   = 20 * time.Second // between rounds at the calmest
	calmAfter   = 20 * time.Second // without a change
)

// pace says when a core acts by itself: often while the links that it wants
// change, more and more rarely in the calm.
type pace struct {
	*local
	lastChange time.Duration // of the links wanted
	pause      time.Duration // between rounds
	nextRound  time.Duration
	nextPlan   time.Duration // when the links wanted are chosen again
}

func newPace(l *local) *pace {
	return &pace{local: l, pause: activePause, nextRound: activePause, nextPlan: forever}
}

// changed notes that the links wanted are not what they were.
func (p *pace) changed() {
	p.lastChange = p.at
	if p.pause > activePause {
		p.pause = activePause
		p.nextRound = min(p.nextRound, p.at+p.jitter(activePause))
	}
}

// calm reports whether the links wanted have been the same for a while.
func (p *pace) calm() bool { return p.at-p.lastChange >= calmAfter }

// slowed reports whether rounds come more rarely than at first.
func (p *pace) slowed() bool { return p.pause > activePause }

// round sets the time of the round after this one.
func (p *pace) round() {
	if p.calm() {
		p.pause = min(2*p.pause, calmPause)
	} else {
		p.pause = activePause
	}
	p.nextRound = p.at + p.jitter(p.pause)
}

// planSoon has the links wanted chosen again after a moment in which more news
// may come.
func (p *pace) planSoon() {
	p.nextPlan = min(p.nextPlan, p.at+p.jitter(200*time.Millisecond))
}
