package primary

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/groups"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/internal/search"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// lifecycle is what becomes of a job: when its ranks start together, what the
// loss or the end of one means for the others, and how the job ends. It has the
// search do without nodes, and lets participants go.
type lifecycle struct {
	ledger
	Search *search.Search // of its own
	sharing
	waits search.Outlook // of the search, as of the last input
	never time.Time      // since when no member could run the job; zero = some may
	Parts Leases
	Signs *Signs
	table tableState
	held  map[jobs.RankAttempt]string // what workers that run wait for at their nodes
	overdue
	preferences
	keepers  keepers
	spares   spares
	Bookings bookings
}

// advance starts what is ready and ends what has ended.
func (p *lifecycle) advance(now time.Time) {
	if p.Rec.State.Final() {
		return
	}
	ready := []jobs.RankAttempt{}
	active, failing := 0, p.Rec.Closing()
	for i := range p.Rec.Ranks {
		if p.Rec.Idle(i) {
			continue
		}
		switch k := &p.Rec.Ranks[i]; k.State {
		case jobs.WorkerReady:
			if !failing && !p.Rec.Started.IsZero() && p.Rec.Awaits(i) {
				active++
				continue
			}
			ready = append(ready, jobs.RankAttempt{Rank: i, Attempt: k.Attempt})
			active++
		case jobs.WorkerRunning:
			active++
		case jobs.WorkerPreparing, jobs.WorkerLost:
			if !failing {
				active++
			}
		case jobs.WorkerEnded:
			if !k.Collected {
				active++
			}
		}
	}
	if failing {
		if active -= len(ready); active == 0 {
			p.finish(now)
		}
		return
	}
	if len(ready) > 0 && (!p.Rec.Started.IsZero() || len(ready) >= p.Rec.Spec.Least()) {
		p.start(now, ready)
		return
	}
	if !p.Rec.Started.IsZero() && active == 0 && p.Rec.Missing() == 0 {
		p.finish(now)
	}
}

// start sends START to the ready ranks. It is journalled before it is sent,
// and a ready worker that missed it asks again with its next report.
func (p *lifecycle) start(now time.Time, ready []jobs.RankAttempt) {
	ev := record.Event{Kind: record.Started, At: now, Ranks: ready,
		Placed: record.Placed{Worst: p.worstPair(), Ports: p.ports(ready)}}
	if p.Rec.Started.IsZero() { // why it was not sooner
		t := p.tally()
		ev.Tally = &t
	}
	p.emit(ev)
	if p.Rec.Spec.Spares > 0 {
		p.Search.Again(now)
	}
	byNode := map[vicinity.ID][]jobs.RankAttempt{}
	for _, ra := range ready {
		id := p.Rec.Ranks[ra.Rank].Node
		byNode[id] = append(byNode[id], ra)
	}
	message := p.startMessage(nil)
	p.noteStart(now, ready)
	for _, id := range slices.Sorted(maps.Keys(byNode)) {
		message.Ranks = byNode[id]
		p.Do(DoStart{To: id, Start: message})
	}
}

// noteStart watches ranks that are started.
func (p *lifecycle) noteStart(now time.Time, ranks []jobs.RankAttempt) {
	for _, ra := range ranks {
		p.runs[ra.Rank] = run{attempt: ra.Attempt}
		if k := p.Parts[p.Rec.Ranks[ra.Rank].Node]; k != nil {
			k.watched, k.progress = true, now
		}
	}
}

// ports are those that the nodes of ranks have chosen, up to the last.
func (p *lifecycle) ports(ranks []jobs.RankAttempt) (list []int) {
	for i, ra := range ranks {
		if port := p.Rec.Ranks[ra.Rank].Port; port != 0 {
			list = append(list, make([]int, i-len(list))...)
			list = append(list, port)
		}
	}
	return list
}

// finish ends the job by how its ranks ended, or tries a gang again.
func (p *lifecycle) finish(now time.Time) {
	v := p.Rec.Verdict()
	if v.State == jobs.Failed && p.Rec.Tasks == nil {
		if p.Rec.Spec.FixedSize() && p.failedWhole() && p.retryGang(now, v.Reason) {
			return
		}
		v.Reason += p.Rec.StoppedText()
	}
	p.End(now, v.State, v.Reason, v.Code)
}

// End makes the job final and lets everybody go.
func (p *lifecycle) End(now time.Time, state jobs.State, reason string, code int) {
	p.Bookings.drop(false)
	t := p.tally()
	p.emit(record.Event{Kind: record.Ended, At: now, State: state, Reason: reason, Code: code, Tally: &t})
	for _, id := range p.Parts.nodes() {
		p.Do(DoRelease{To: id, Release: wire.Release{Job: p.Rec.ID}})
	}
	for _, id := range p.Search.Close() {
		if p.Parts[id] == nil && p.Search.Asked() {
			p.Do(DoYield{To: id, Job: p.Rec.ID, Forget: true})
		}
	}
	p.keepers.letGo(&p.ledger)
	clear(p.spares.of)
	p.Parts, p.waits = Leases{}, search.Outlook{}
}

// tally sums up what nodes have answered. After a restart of the origin it is
// what the journal says, until somebody answers anew.
func (p *lifecycle) tally() jobs.Tally {
	if t := p.searching().Tally(); t.Asked > 0 || p.Rec.Tally == nil {
		return t
	}
	return p.Rec.Tally.Clone()
}

// Demand is what the job wants of a search now: ranks, then spares.
func (p *lifecycle) Demand() search.Demand {
	if d := p.ranksDemand(); d.Wanted > 0 {
		return d
	}
	return p.spares.demand()
}

// ranksDemand is what the job wants for its ranks.
func (p *lifecycle) ranksDemand() search.Demand {
	d := search.Demand{Wanted: p.Rec.Wanted(), Placed: len(p.Parts) > 0}
	d.Least = p.Rec.Threshold(d.Wanted)
	if d.Wanted > 0 && !p.Rec.Started.IsZero() {
		wanted := p.Rec.WantedRanks(d.Wanted)
		if len(p.Rec.Spec.Groups) > 0 { // they are served in order, see grant
			slices.Sort(wanted)
		}
		d.Lost = p.Rec.Ranks.LostAt(wanted)
		d.Left, d.To = p.Rec.Ranks.LeftBy(wanted)
	}
	if d.Wanted > 0 && p.Rec.Spec.JointChoice() {
		d.Nodes, d.Groups = p.Rec.Nodes(), p.groupsWanted()
	}
	return d
}

// outlook is what the search waits for, and why. As long as a job that was read
// from the journal is not resumed, nobody has asked the search.
func (p *lifecycle) outlook() search.Outlook {
	if p.waits == (search.Outlook{}) && !p.Rec.State.Final() {
		return p.look()
	}
	return p.waits
}

// waitReason says in one line what the job waits for.
func (p *lifecycle) waitReason() string {
	text := p.outlook().Text(p.searching().Tally())
	if at := p.giveUpAt(); !p.never.IsZero() && !p.Rec.State.Final() && p.Rec.Spec.GiveUp == 0 && !at.IsZero() {
		text += fmt.Sprintf(" (it ends at %s if that stays so: --give-up)", at.Format("15:04:05 MST"))
	}
	return text
}

// expect takes what the search waits for from now on.
func (p *lifecycle) expect(now time.Time, o search.Outlook) {
	switch p.waits = o; {
	case !o.Never():
		p.never = time.Time{}
	case p.never.IsZero():
		p.never = now
	}
}

// NeverFor is how long a job waits that no member can run, if its submitter has not said.
const NeverFor = 10 * time.Minute

// giveUpAt returns when a job ends that has not started within its --give-up
// time, or, without one, that no member can run; zero = never.
func (p *lifecycle) giveUpAt() time.Time {
	switch d := time.Duration(p.Rec.Spec.GiveUp); {
	case !p.Rec.Started.IsZero() || p.Rec.Blocked():
		return time.Time{}
	case d > 0:
		return p.Rec.Eligible.Add(d)
	case !p.never.IsZero():
		return p.never.Add(NeverFor)
	}
	return time.Time{}
}

// giveOffersBack lets the nodes go that offer and have not been granted.
func (p *lifecycle) giveOffersBack() {
	if offers := p.Search.GiveBack(search.NotNeeded); len(offers) > 0 {
		p.yield(offers, p.Rec.Wanted() == 0) // then they need not offer again
	}
}

// lost handles started ranks whose node is gone: a rigid job cannot go on, a
// malleable one gets them replaced near by. Of a job with groups those of the ranks say what starts again.
func (p *lifecycle) lost(now time.Time, ranks []jobs.RankAttempt, why string) {
	p.emit(record.Event{Kind: record.Lost, At: now, Ranks: ranks, Reason: why})
	if p.Rec.Closing() {
		if p.Rec.Replicated() { // perhaps only since this copy was lost
			p.stopOthers()
		}
		p.advance(now)
		return
	}
	if p.Rec.Replicated() && p.survives(now, ranks) {
		return
	}
	switch p.Rec.Spec.RestartsOf(ranks) {
	case groups.RestartJob:
		if !p.retryGang(now, why) {
			p.End(now, jobs.NodeFail, why, jobs.CodeZorilla)
		}
	case groups.RestartGroup:
		p.regroup(now, record.Declined, ranks, why)
	default:
		p.Search.Again(now)
	}
}

// survives handles lost copies, and reports whether the job goes on, or ends, by
// what is left. It does not if all copies of a rank were lost.
func (p *lifecycle) survives(now time.Time, lost []jobs.RankAttempt) bool {
	for _, ra := range lost {
		rank, _ := p.Rec.Spec.RankOf(ra.Rank)
		if dead, failed := p.Rec.Hopeless(rank); dead && !failed {
			return false
		}
	}
	p.advance(now)
	return true
}

// beforeStart begins the reason of ranks that were given back; a node and its reason follow.
const beforeStart = "given back before its start: node "

// unprepared returns ranks that their node cannot run to the wanted ones. A
// job that cannot start with the others goes back to the beginning as a whole,
// so that it does not hold slots while it waits for others' (design: claim).
func (p *lifecycle) unprepared(now time.Time, node vicinity.ID, ranks []jobs.RankAttempt, why string) {
	if ranks = p.ownedOf(node, ranks); len(ranks) == 0 {
		return
	}
	p.Search.Avoid(now, node)
	p.Search.Lost(now, node, why)
	why = jobs.Label(p.Rec.Ranks[ranks[0].Rank].Name, node) + ": " + why
	if p.Rec.Started.IsZero() && p.Rec.Count(jobs.WorkerPreparing, jobs.WorkerReady)-len(ranks) < p.Rec.Spec.Least() {
		p.Search.Ungranted(p.Parts.nodes(), why)
		p.giveBack(now, beforeStart+why)
		return
	}
	p.emit(record.Event{Kind: record.Released, At: now, Ranks: ranks, Reason: beforeStart + why})
	p.Search.Again(now)
}

// giveBack releases a gang that could not be prepared and looks for it again
// after a pause.
func (p *lifecycle) giveBack(now time.Time, why string) {
	var all []jobs.RankAttempt
	for i := range p.Rec.Ranks {
		if k := &p.Rec.Ranks[i]; k.State != jobs.WorkerWanted {
			all = append(all, jobs.RankAttempt{Rank: i, Attempt: k.Attempt})
		}
	}
	p.emit(record.Event{Kind: record.Released, At: now, Ranks: all, Reason: why})
	p.letGo(all)
	p.Search.BackOff(now)
}

// letGo lets all participants go, and those who offer.
func (p *lifecycle) letGo(ranks []jobs.RankAttempt) {
	p.spares.letGo(0)
	for _, id := range p.Parts.nodes() {
		p.Do(DoRelease{To: id, Release: wire.Release{Job: p.Rec.ID, Ranks: ranks}})
	}
	p.Parts = Leases{}
	p.giveOffersBack()
}
