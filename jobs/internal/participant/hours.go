package participant

import (
	"cmp"
	"slices"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/internal/claims"
	"zorilla/jobs/internal/timers"
)

// hoursOver is why workers are ended whose owner wants the machine back.
const hoursOver = "the hours of its owner ended"

// closing is what is known of the owner's hours.
type closing struct {
	shut   bool      // it was outside of them when last looked at
	closes time.Time // when the next worker is ended, since they end; zero = none is
}

// lent is for how long a worker has its place.
type lent struct {
	allowed codec.Duration // walltime by the owner, as its job has none; 0 = it has, or there is no limit
	begun   time.Time      // its process; zero = it has not
	why     string         // this node does not want it any more
	most    time.Duration  // notice that there is time for then; 0 = MaxNotice, less than 0 = none
}

// allow gives a worker that comes the owner's walltime, if its job has none.
func (k *Worker) allow() {
	if k.work.Spec.Walltime == 0 {
		k.allowed = k.work.part.Claims.Limits.MaxWalltime
	}
}

// keepHours does what the owner wants at the end of the hours: spares are given back, and if the machine is to be free
// then, workers are ended in time.
func (p *Participant) keepHours(now time.Time) {
	p.closes = time.Time{}
	shut, until := p.Claims.Shut(now)
	if shut != p.shut {
		p.shut, p.News = shut, true
	}
	if shut && len(p.Claims.Spares) > 0 {
		p.GiveSparesBack(now)
	}
	if p.Claims.Limits.AfterHours != jobs.HoursEnd || !shut && until.IsZero() {
		return
	}
	if first := until.Add(-claims.HoursNotice - StopGrace); !shut && now.Before(first) {
		p.closes = first
		return
	}
	for _, w := range p.All() {
		for _, k := range slices.Clone(w.Workers) {
			switch at := k.lastCall(now, until); {
			case k.wanted(WantEvict) || k.Phase >= PhaseOver:
			case shut:
				k.most = claims.HoursNotice
				k.evict(now, WantEvict, hoursOver)
			case now.Before(at):
				p.closes = timers.Earlier(p.closes, at)
			default:
				if k.most = until.Sub(now) - w.grace(); k.most <= 0 {
					k.most = -1
				}
				k.evict(now, WantEvict, hoursOver)
			}
		}
	}
}

// lastCall is when a worker is to be ended that has to be gone by a time. Its walltime may be over before.
func (k *Worker) lastCall(now, by time.Time) time.Time {
	spec, begun := &k.work.Spec, k.begun
	if begun.IsZero() {
		begun = now
	}
	_, notice := spec.Notice()
	switch wall := cmp.Or(spec.Walltime, k.allowed).Std(); {
	case spec.Array != nil:
		notice = 0
	case wall > 0 && !begun.Add(wall).After(by):
		return by
	}
	return by.Add(-min(notice, claims.HoursNotice) - k.work.grace())
}

// Wake is when Tick has something to do next; zero = never.
func (p *Participant) Wake() time.Time { return timers.Earlier(p.Timers.Next(), p.closes) }
