package primary

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/internal/timers"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// What the primary does about participants that leave, are silent, or have
// forgotten what they were granted.

const (
	reasonForgot = "forgot the grant"
	// missAfter is how long a participant is silent before that is worth a word: a report was due, and is late.
	missAfter = wire.ReportEvery + time.Second
	clock     = "15:04:05 MST"
)

// leaves keeps a participant that is being started again: its workers go on. What
// has not started is looked for elsewhere.
func (p *Primary) leaves(now time.Time, from vicinity.ID, away time.Duration) {
	k := p.Parts[from]
	if k == nil || away <= 0 || p.Rec.State.Final() {
		return
	}
	away = min(away, maxAway)
	k.expectedBack, k.seenBack = now.Add(away), time.Time{}
	p.emit(record.Event{Kind: record.Away, At: now, Node: from, For: codec.Duration(away)})
	unstarted, _ := p.Rec.RanksOf(from)
	p.unprepared(now, from, unstarted, wire.ReasonLeaving)
}

// MemberGone is called when the overlay has declared a node dead.
func (p *Primary) MemberGone(now time.Time, id vicinity.ID) {
	p.Parts.gone(now, id, p.lease(), p.Rec.Spec.FixedSize() && p.Rec.Started.IsZero() || idle(&p.Rec, id))
	p.Search.Gone(id)
	p.Bookings.gone(now, id)
	p.Tick(now)
}

// MemberBack is called when the overlay reports that a node is a member. It reports whether
// that changes anything.
func (p *Primary) MemberBack(now time.Time, id vicinity.ID) bool { return p.Parts.back(now, id) }

// checkLeases gives up participants that have been silent for too long, and has others knocked at.
func (p *Primary) checkLeases(now time.Time) {
	for _, id := range p.Parts.nodes() {
		k := p.Parts[id]
		if k == nil || now.Before(p.ends(id, k)) || p.Rec.State.Final() {
			continue
		}
		delete(p.Parts, id)
		p.spares.drop(now, id)
		name := p.Rec.NameOf(id)
		unstarted, started := p.Rec.RanksOf(id)
		p.unprepared(now, id, unstarted, "lost")
		if len(started) > 0 {
			p.Search.Lost(now, id, "lost")
			p.lost(now, started, fmt.Sprintf("node %s was lost with %s", jobs.Label(name, id), p.Rec.Spec.List(started)))
		}
	}
	if !p.Rec.State.Final() {
		p.miss(now)
		p.knock(now)
	}
}

// forgotten gives up the ranks of a node that its reports have not named for a
// lease: a node that was killed before it had written down what it was granted
// goes on reporting the job's other ranks, so that its silence does not tell.
func (p *Primary) forgotten(now time.Time, from vicinity.ID, rep wire.Report) {
	k := p.Parts[from]
	if k == nil || p.Rec.State.Final() || now.Before(k.comparedAt.Add(wire.ReportEvery)) {
		return // a job may have very many ranks
	}
	unstarted, started := p.Rec.RanksOf(from)
	gone := p.Parts.forgotten(now, from, rep, slices.Concat(unstarted, started))
	kept := func(ra jobs.RankAttempt) bool { return !gone[ra] }
	if unstarted = slices.DeleteFunc(unstarted, kept); len(unstarted) > 0 {
		p.unprepared(now, from, unstarted, reasonForgot)
	}
	if started = p.ownedOf(from, slices.DeleteFunc(started, kept)); len(started) > 0 {
		p.lost(now, started, fmt.Sprintf("node %s does not know %s any more", jobs.Label(p.Rec.Ranks[started[0].Rank].Name, from), p.Rec.Spec.List(started)))
	}
}

// lease is how long a participant may be silent that answers when it is knocked at.
func (p *lifecycle) lease() time.Duration { return max(p.Rec.Spec.Patience(), wire.PartLease) }

// hasty reports whether a participant's reports are too rare to know in time whether it is there.
func (p *lifecycle) hasty(id vicinity.ID, k *participantRecord) bool {
	return p.Rec.Spec.Patience() < wire.PartLease && id != p.Rec.Origin && k.expectedBack.IsZero()
}

// alive is the latest sign of life of a participant.
func (p *lifecycle) alive(id vicinity.ID, k *participantRecord) time.Time {
	return timers.Later(k.lastContact, p.Signs.of(id).seen)
}

// far is how much longer than that of a near node the silence of a participant may last.
func (k *participantRecord) far() time.Duration { return 2 * k.rtt }

// ends returns when a participant that stays silent is given up.
func (p *lifecycle) ends(id vicinity.ID, k *participantRecord) time.Time {
	at := k.lastContact.Add(p.lease())
	if p.hasty(id, k) && p.Signs.of(id).missed >= enoughMissed {
		at = timers.Earlier(at, p.alive(id, k).Add(p.Rec.Spec.Patience()+k.far()))
	}
	return timers.Later(at, k.back())
}

// knockAt returns when a participant is to be knocked at; zero = not.
func (p *lifecycle) knockAt(id vicinity.ID, k *participantRecord) time.Time {
	if !p.hasty(id, k) {
		return time.Time{}
	}
	patience := p.Rec.Spec.Patience()
	return timers.Later(p.alive(id, k).Add(patience/4), p.Signs.of(id).knocked.Add(patience/10))
}

// knock has participants knocked at of which nothing was heard for a while.
func (p *lifecycle) knock(now time.Time) {
	for _, id := range p.Parts.nodes() {
		k := p.Parts[id]
		if at := p.knockAt(id, k); !at.IsZero() && !now.Before(at) {
			p.Signs.begin(now, id)
			p.Do(DoKnock{To: id, At: now, Within: p.Rec.Spec.Patience()/4 + k.far()})
		}
	}
}

// miss notes which participants are silent, for those who watch the job.
func (p *lifecycle) miss(now time.Time) {
	for _, k := range p.Parts {
		if !k.silent && k.expectedBack.IsZero() && !now.Before(k.lastContact.Add(missAfter)) {
			k.silent = true
			p.Version++
		}
	}
}

// silentText names a participant that is silent, or is "".
func (p *lifecycle) silentText() string {
	first, n := vicinity.ID(""), 0
	for _, id := range p.Parts.nodes() {
		if !p.Parts[id].silent {
			continue
		}
		if n++; n == 1 {
			first = id
		}
	}
	if n == 0 {
		return ""
	}
	k, more := p.Parts[first], ""
	if n > 1 {
		more = fmt.Sprintf(" (and %d more)", n-1)
	}
	return fmt.Sprintf("node %s%s has been silent since %s: it counts as lost if that lasts until %s",
		jobs.Label(cmp.Or(p.Rec.NameOf(first), p.spares.nameOf(first)), first), more, k.lastContact.Format(clock), p.ends(first, k).Format(clock))
}

// partsWake returns when a participant is to be knocked at, is missed, or is given up.
func (p *lifecycle) partsWake() (at time.Time) {
	for id, k := range p.Parts {
		at = timers.Earlier(at, timers.Earlier(p.ends(id, k), p.knockAt(id, k)))
		if !k.silent && k.expectedBack.IsZero() {
			at = timers.Earlier(at, k.lastContact.Add(missAfter))
		}
	}
	return at
}
