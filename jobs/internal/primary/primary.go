// Package primary is the core of one job at its origin.
//
// A Primary embeds what it is made of: the ledger, which has the record and writes
// events; the lifecycle, what becomes of ranks; leases, which participants are
// there; staging, how far inputs have come. Each method leaves events and effects;
// Take hands them over.
package primary

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"zorilla/flood"
	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/internal/search"
	"zorilla/jobs/internal/timers"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// Primary is the core of one job at its origin, the node that is answerable for
// the job: it carries out what the search for workers wants done, starts the ranks,
// takes the reports of participants and decides how the job ends. It has no
// goroutine, lock or clock; each method takes the time and an input and leaves
// events and effects, which are released once the events before them are on disk.
type Primary struct {
	lifecycle
	staging
	*search.Surroundings // of the search
	self                 vicinity.Member

	Received   map[jobs.RankAttempt]wire.Written
	collecting collecting
	resizes    throttle
	moves      moves
}

// New makes the core of a job from its events: one for a new job, all
// of the journal after a restart.
func New(id jobs.ID, self vicinity.Member, rnd *rand.Rand) *Primary {
	s := search.New(self.ID, rnd)
	p := &Primary{
		lifecycle: lifecycle{ledger: ledger{Rec: record.Record{ID: id, Origin: self.ID}, Version: 1},
			Search: s, Parts: Leases{}, Signs: &Signs{}, held: map[jobs.RankAttempt]string{}, overdue: newOverdue()},
		staging:      staging{moved: map[jobs.RankAttempt]jobs.Staged{}},
		Surroundings: s.Surroundings, self: self,
		Received: map[jobs.RankAttempt]wire.Written{}, collecting: newCollecting(), moves: moves{},
	}
	p.spares = spares{of: map[vicinity.ID]*spare{}, ledger: &p.ledger, search: s, parts: &p.Parts}
	p.Bookings = bookings{Turns: &Turns{}, ledger: &p.ledger, search: s, rnd: rnd}
	return p
}

// Submit begins a new job.
func (p *Primary) Submit(now time.Time, spec jobs.Spec, stamp jobs.Stamp) {
	p.emit(record.Event{Kind: record.Submitted, At: now, Spec: &spec, Stamp: stamp})
	p.Search.Begin(&p.Rec.Spec)
	p.Tick(now)
}

// Resume goes on after the origin was restarted: participants of before are
// expected to report within a lease, ranks that had not started are searched
// for again.
func (p *Primary) Resume(now time.Time) {
	p.Search.Begin(&p.Rec.Spec)
	var back []jobs.RankAttempt
	for i := range p.Rec.Ranks {
		k := &p.Rec.Ranks[i]
		switch k.State {
		case jobs.WorkerPreparing, jobs.WorkerReady:
			back = append(back, jobs.RankAttempt{Rank: i, Attempt: k.Attempt})
		case jobs.WorkerRunning, jobs.WorkerEnded:
			p.Parts[k.Node] = &participantRecord{lastContact: now, rtt: k.RTT, unverified: true, expectedBack: backBy(now, p.Rec.Away[k.Node])}
			p.noteStart(now, []jobs.RankAttempt{{Rank: i, Attempt: k.Attempt}})
		}
	}
	p.keepers.found(&p.Rec, now)
	if len(back) > 0 {
		p.emit(record.Event{Kind: record.Released, At: now, Ranks: back, Reason: "given back before its start: this node was started again"})
	}
	p.Tick(now)
}

// Tick does what is due and must be called at wake, or at any other time.
func (p *Primary) Tick(now time.Time) {
	if p.Rec.State.Final() {
		return
	}
	setBack(&p.Rec, now)
	p.begin(now)
	if at := deadlineOf(&p.Rec); at.IsZero() || now.Before(at) {
	} else if p.Rec.Started.IsZero() {
		p.expect(now, p.look())
		p.End(now, jobs.Failed, missed(now, &p.Rec)+": "+p.reason(), jobs.CodeZorilla)
	} else { // as if a user had cancelled it, so that what it has made is here
		p.Cancel(now, "its deadline has come", false)
	}
	p.checkLeases(now)
	if at := p.giveUpAt(); !at.IsZero() && !now.Before(at) && !p.Rec.State.Final() {
		p.expect(now, p.look()) // which may have changed just now
		switch d := time.Duration(p.Rec.Spec.GiveUp); {
		case d > 0:
			p.End(now, jobs.Failed, fmt.Sprintf("gave up after %v: %s", d, p.reason()), jobs.CodeZorilla)
		case !p.never.IsZero():
			p.End(now, jobs.Failed, fmt.Sprintf("gave up after %v: %s", NeverFor, p.outlook().Text(p.searching().Tally())), jobs.CodeZorilla)
		}
	}
	p.checkProgress(now)
	p.checkWalltime(now)
	p.keepers.tell(&p.ledger, now)
	p.advance(now)
	p.pursue(now)
}

// Wake returns when tick is due next; zero = only after an input.
func (p *Primary) Wake() time.Time {
	if p.Rec.State.Final() {
		return time.Time{}
	}
	search := timers.Earlier(p.outlook().Until, p.preferences.ends)
	workers := timers.Earlier(timers.Earlier(p.partsWake(), p.overdueAt()), p.keepers.renew)
	if !p.shares {
		search = timers.Earlier(search, p.Bookings.wake())
	}
	times := timers.Earlier(timers.Earlier(p.giveUpAt(), deadlineOf(&p.Rec)), p.beginAt())
	return timers.Earlier(timers.Earlier(search, workers), times)
}

// Cancel ends the job because a user wants it: what runs is stopped, and the job has ended
// when its output and files are here, or at once with what is here by then.
func (p *Primary) Cancel(now time.Time, why string, atOnce bool) {
	leaves := slices.ContainsFunc(p.Rec.Ranks, func(k record.Rank) bool {
		return k.State == jobs.WorkerRunning || k.State == jobs.WorkerEnded && !k.Collected
	})
	switch {
	case p.Rec.State.Final():
	case !leaves || atOnce:
		p.End(now, jobs.Cancelled, why, jobs.CodeCancelled)
	case p.Rec.Cancelled == "":
		p.emit(record.Event{Kind: record.Cancelling, At: now, Reason: why})
		p.stopOthers()
		p.Tick(now)
	}
}

// pursue looks for the workers that are still wanted.
func (p *Primary) pursue(now time.Time) {
	if p.Rec.State.Final() {
		return
	}
	p.preferences.look(now, &p.Rec)
	if len(p.spares.of) > 0 {
		p.grant(now, "", p.spares.use(p.ranksDemand()), nil)
		p.spares.letGo(p.spares.wanted())
	}
	d := p.Demand()
	if p.shares && d.Wanted > 0 {
		p.expect(now, p.look())
		return
	}
	p.Bookings.look(now, d)
	p.carryOut(now, p.Search.Next(now, d))
}

// carryOut does what the search wants done.
func (p *Primary) carryOut(now time.Time, n search.Next) {
	p.noteSearch()
	p.expect(now, n.Outlook)
	if n.Err != nil {
		p.End(now, jobs.Failed, n.Err.Error(), jobs.CodeZorilla)
		return
	}
	if n.Spares {
		p.spares.keep(now, p.self, n.Grant)
	} else {
		p.grant(now, "", n.Grant, n.Sizes)
	}
	p.yield(n.Release, n.Over)
	p.Ask(now, p.Search, p.Rec.ID, &n)
}

// yield gives offers back.
func (p *lifecycle) yield(offers []search.Returned, forget bool) {
	for _, o := range offers {
		p.Do(DoYield{To: o.Node, Job: p.Rec.ID, Key: o.Key, Forget: forget})
	}
}

// Ask has nodes asked what a search wants to know, under a name: of the job, or of the batch of which it
// is the first. Of what the search wants done besides, it does nothing.
func (p *Primary) Ask(now time.Time, s *search.Search, name jobs.ID, n *search.Next) {
	for _, m := range n.Measure {
		if m.From != p.self.ID {
			p.Do(DoMeasure(m))
			continue
		}
		for _, id := range m.Nodes {
			p.Do(DoProbe{id})
		}
	}
	for _, id := range n.Recall {
		p.Do(DoRecall{To: id, Job: name})
	}
	if n.Flood.Number > 0 {
		ad := p.advertisement(now, name, n.Flood, max(0, n.Flood.Wanted-p.Demand().Wanted), p.self.Addrs)
		ad.Plan = n.Plan
		switch {
		case n.Flood.Radius == 0:
			p.Do(DoAsk{ad})
		case n.Direct:
			p.Do(DoFlood{Ad: ad})
		default:
			p.Do(DoFlood{Radius: n.Flood.Radius, Ad: ad})
		}
	}
	if len(n.Extend) > 0 {
		p.Do(DoExtend{Job: name, Flood: s.Current, Rim: n.Extend})
	}
}

// noteSearch takes note of news of the search for those who watch the job.
func (p *Primary) noteSearch() {
	if p.Search.News() {
		p.Version++
	}
}

// grant gives wanted ranks to the nodes of offers, which are held for the job itself, or else for the batch of
// that name. Sizes are how many each group gets.
func (p *Primary) grant(now time.Time, held jobs.ID, taken []search.Choice, sizes []int) {
	total := 0
	for _, c := range taken {
		total += len(c.Places)
		p.Parts.at(c.Node) // all of them first: they fetch inputs from each other
	}
	wanted := p.Rec.WantedRanks(total)
	if len(sizes) > 0 { // groups are served in order, whatever they lack
		slices.Sort(wanted)
	}
	if !p.Rec.SizesOpen() {
		sizes = nil
	}
	starts := record.StartsOf(&p.Rec.Lineup, sizes)
	if len(taken) > 0 {
		p.Bookings.drop(true)
	}
	for _, c := range taken {
		var ranks []jobs.RankAttempt
		for i, place := range c.Places {
			rank := wanted[place]
			ranks = append(ranks, jobs.RankAttempt{Rank: rank, Attempt: p.Rec.Ranks[rank].Attempt + 1})
			k := &p.Rec.Ranks[rank]
			named := k.Left != "" && k.Left != k.Former
			if c.Replaced != nil && (named || c.Replaced[i].From != k.Former) { // or others are wanted by now
				c.Replaced[i] = jobs.Replaced{}
			}
		}
		from, numbers := resumes(&p.Rec, starts, ranks)
		p.emit(record.Event{Kind: record.Granted, At: now, Node: c.Node, Name: c.Name, RTT: codec.Duration(c.RTT), Ranks: ranks,
			Sizing: record.Sizing{Sizes: sizes}, Placed: record.Placed{Replaced: c.Replaced, Resumed: numbers}})
		p.elsewhere(now, ranks)
		k := p.Parts.at(c.Node)
		k.lastContact, k.key, k.rtt = now, c.Key, c.RTT
		k.watched, k.progress, k.granted = true, now, now
		p.Do(DoGrant{To: c.Node, Within: wire.GrantWithin(c.RTT), Grant: wire.Grant{
			Job: p.Rec.ID, Held: held, Addrs: p.self.Addrs, Key: c.Key, Ranks: ranks,
			Spec: p.Rec.Granted(), Stamp: p.Rec.Stamp, Holders: p.Parts.holders(c.Node, p.self.ID),
			Resume: from,
		}})
	}
}

// Answered takes a node's offer or decline.
func (p *Primary) Answered(now time.Time, from vicinity.Member, rtt time.Duration, a wire.Answer) {
	if p.Rec.State.Final() {
		p.Do(DoYield{To: from.ID, Job: a.Job, Forget: true})
		return
	}
	k := p.Parts[from.ID]
	granted := k != nil && k.key == a.Key && a.Key != 0
	act, refused := p.Search.Answered(now, from, rtt, a, granted)
	p.noteSearch()
	if refused {
		p.Do(DoYield{To: from.ID, Job: a.Job, Key: a.Key})
	}
	if !act {
		p.expect(now, p.look())
		return
	}
	p.pursue(now)
	if a.Round == 0 && !p.Rec.State.Final() { // it came from a queue
		p.carryOut(now, p.Search.FollowUp(now, p.Demand(), from.ID))
	}
}

// Sent notes that the round's flood is on its way.
func (p *Primary) Sent(now time.Time, round int, f flood.Flood) {
	p.Search.Sent(now, round, f)
	p.noteSearch()
}

// Paired takes the round trips from one node to others, 0 where there is none;
// of a node that did not answer there are none at all.
func (p *Primary) Paired(now time.Time, from vicinity.ID, nodes []vicinity.ID, rtt []time.Duration) {
	if !p.Rec.State.Final() && p.Search.Paired(now, from, nodes, rtt) {
		p.pursue(now)
	}
}

// GrantFailed takes back what a node refused, and why, or did not answer to (""). A refusal
// is no reason to avoid the node: what it offers next holds again.
func (p *Primary) GrantFailed(now time.Time, to vicinity.ID, ranks []jobs.RankAttempt, refused string) {
	if p.Rec.State.Final() {
		return
	}
	if len(ranks) > 0 { // what else it has is as little to be had
		p.spares.drop(now, to)
	} else if p.spares.refused(now, to) {
		p.pursue(now)
		return
	}
	ranks = slices.DeleteFunc(slices.Clone(ranks), func(ra jobs.RankAttempt) bool {
		return p.Rec.Owned(to, ra) && p.Rec.Ranks[ra.Rank].State != jobs.WorkerPreparing // only the answer was lost
	})
	if refused == "" {
		p.unprepared(now, to, ranks, "did not answer")
	} else {
		p.unprepared(now, to, ranks, refused)
		p.Search.Readmit(to)
	}
	p.pursue(now)
}
