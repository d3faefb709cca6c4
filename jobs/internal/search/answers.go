package search

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"zorilla/internal/units"
	"zorilla/jobs"
	"zorilla/jobs/internal/timers"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/placement"
	"zorilla/vicinity"
)

// offer is a node's leased hold.
type offer struct {
	key     uint64
	workers int
	rtt     time.Duration
	exact   bool // rtt is measured, else an upper bound
	probed  bool // rtt is being measured
	expires time.Time
	old     *old // rtt was measured a while ago; nil = it was not
	// recalled: a job that goes before wants it.
	recalled bool
	hold     hold
}

// hold is what a node holds for a job with groups.
type hold struct {
	room wire.Room
	fits uint16 // kinds of which it may be granted workers
}

// holdOf is what an answer says of that.
func holdOf(a *wire.Answer) hold {
	if a.Room == nil {
		return hold{}
	}
	return hold{room: *a.Room, fits: a.Fits}
}

// taking is how many workers of an offer, which a key names, jobs of a batch have taken. The node
// learns of it later, and answers until then as if they were there.
type taking struct {
	key     uint64
	workers int
	at      time.Time // of the last of them
}

// heardWithin is when a node has heard of what was taken, or never will: its grant was refused.
const heardWithin = 2 * wire.HoldLease

// left returns how many of the workers that a node offers are not taken.
func (t taking) left(now time.Time, a *wire.Answer) int {
	if t.key != a.Key || !now.Before(t.at.Add(heardWithin)) {
		return a.Workers
	}
	return max(0, a.Workers-max(0, t.workers-a.Lent))
}

// assign notes that a job of a batch has some of the workers of an offer. The others stand, for the
// next job, or to be given back.
func (s *nodeAnswers) assign(now time.Time, id vicinity.ID, o offer, workers int) {
	t := s.takings[id]
	if t.key != o.key {
		t = taking{key: o.key}
	}
	t.workers, t.at = t.workers+workers, now
	s.takings[id] = t
	if o.workers -= workers; o.workers > 0 {
		s.Offers[id] = o
	}
}

// offers are those of nodes that stand.
type offers map[vicinity.ID]offer

// workers returns how many all of them are for.
func (o offers) workers() (n int) {
	for _, offer := range o {
		n += offer.workers
	}
	return n
}

// recalled returns how many ranks were assigned to offers that a job which goes before
// wants, and the distance of the nearest of these.
func (o offers) recalled(list []placement.Offer, assign []int) (ranks int, nearest time.Duration) {
	nearest = anywhere
	for _, i := range assign {
		if offer := o[vicinity.ID(list[i].Node)]; offer.recalled {
			nearest = min(nearest, offer.rtt)
			ranks++
		}
	}
	return ranks, nearest
}

// capacity is what a node could do for the job beyond what it offers.
type capacity struct {
	workers int       // that it could ever run
	free    time.Time // when there will be room for one; zero = not known
	passing bool      // it could run none, which may pass
	fits    uint16    // kinds of which it could run workers, of a job with groups
	most
}

// hope is room at a node that others may leave.
type hope struct {
	workers int
	since   time.Time
	asked   bool // for it
}

// givenBack is an offer that was given back, or refused: in the round, and why. Answers that were on
// their way then may name it again, and it is not to be had any more.
type givenBack struct {
	key   uint64
	round int
	why   string
}

// names reports whether an answer names the offer, and was sent before its node knew. To a later
// round it may offer the same again: then the word that it is given back came too late to count,
// see wire.Packet.Signed.
func (g givenBack) names(a *wire.Answer) bool {
	return a.Workers > 0 && a.Key == g.key && a.Round <= g.round
}

// nodeAnswers is what nodes have answered.
type nodeAnswers struct {
	Rounds  []jobs.Round
	Answers map[vicinity.ID]jobs.NodeAnswer // the latest of every node
	room    map[vicinity.ID]capacity
	roomFor int // workers: all of room together
	able    able
	feasibility
	Offers  offers
	takings map[vicinity.ID]taking    // of the latest key of each node that had more than one job wanted
	back    map[vicinity.ID]givenBack // the latest of each node
	hopes   map[vicinity.ID]hope
	numbers map[vicinity.ID]uint64 // of the latest answers
	about   map[vicinity.ID]vicinity.Speeds
	avoid
	left []vicinity.ID // nodes that the workers may not have which are looked for
	Plan plan
}

func newNodeAnswers() *nodeAnswers {
	return &nodeAnswers{
		Answers: map[vicinity.ID]jobs.NodeAnswer{},
		room:    map[vicinity.ID]capacity{},
		Offers:  offers{},
		takings: map[vicinity.ID]taking{},
		back:    map[vicinity.ID]givenBack{},
		hopes:   map[vicinity.ID]hope{},
		numbers: map[vicinity.ID]uint64{},
		about:   map[vicinity.ID]vicinity.Speeds{},
		avoid:   avoid{},
	}
}

// number is that of the next round.
func (s *nodeAnswers) number() int {
	if last := len(s.Rounds) - 1; last >= 0 {
		return s.Rounds[last].Number + 1
	}
	return 1
}

// roundTrip is the distance of a node by its latest answer; 0 = not known.
func (s *nodeAnswers) roundTrip(id vicinity.ID) time.Duration {
	return max(0, time.Duration(s.Answers[id].RTT))
}

// powerOf is what a node has said of the power of its cores; 0 = nothing.
func (s *nodeAnswers) powerOf(id vicinity.ID) int64 { return s.about[id].Power }

// known returns the round trips to other nodes: to those near by as they were measured, to others as their answers
// said. Those that the job keeps away from are left out.
func (s *nodeAnswers) known(now time.Time, self vicinity.ID, near []vicinity.Measured) map[vicinity.ID]time.Duration {
	list := map[vicinity.ID]time.Duration{}
	for id := range s.Answers {
		list[id] = s.roundTrip(id)
	}
	for _, m := range near {
		list[m.ID] = m.RTT
	}
	maps.DeleteFunc(list, func(id vicinity.ID, _ time.Duration) bool { return id == self || s.keepsAway(now, id) })
	return list
}

// recalled lets go of the offers that a job that goes before wants, and lists them.
func (s *nodeAnswers) recalled(now time.Time) []Returned {
	workers := map[vicinity.ID]int{}
	list := s.returns(wanted, func(id vicinity.ID) bool {
		workers[id] = s.Offers[id].workers
		return s.Offers[id].recalled
	})
	for _, o := range list {
		s.hope(now, o.Node, workers[o.Node])
	}
	return list
}

// fate notes what became of what a node has, for those who ask.
func (s *nodeAnswers) fate(id vicinity.ID, what string) {
	if a, ok := s.Answers[id]; ok {
		a.Fate = what
		s.Answers[id] = a
	}
}

// hope notes how much room others may leave at a node. It is waited for since the node
// told so first.
func (s *nodeAnswers) hope(now time.Time, id vicinity.ID, workers int) {
	h, ok := s.hopes[id]
	if workers == 0 {
		if a := s.Answers[id]; ok && a.Offered == 0 && a.Round == 0 {
			fate := "another job took its slots"
			if after, known := units.Millis(now.Sub(h.since)); known {
				fate += ", after " + after + " ms"
			}
			s.fate(id, fate)
		}
		delete(s.hopes, id)
		return
	}
	if s.Answers[id].Fate == "" {
		s.fate(id, heldForOther)
	}
	if !ok {
		h.since = now
	}
	h.workers = workers
	s.hopes[id] = h
}

// hoped returns how many workers may yet be offered by nodes nearer than a distance, and
// until when that is waited for.
func (s *nodeAnswers) hoped(now time.Time, nearer time.Duration) (workers int, until time.Time) {
	for id, h := range s.hopes {
		at := h.since.Add(MaxHope)
		if now.Before(at) && time.Duration(s.Answers[id].RTT) < nearer {
			workers += h.workers
			until = timers.Later(until, at)
		}
	}
	return workers, until
}

// recall lists the nodes that are to be asked for what they hold for others: the nearest of
// those that are nearer than the ranks to which they would be assigned, whose distances are
// given, the farthest first. None is listed twice.
func (s *nodeAnswers) recall(now time.Time, ranks []time.Duration) (list []vicinity.ID) {
	var near []vicinity.ID
	for id, h := range s.hopes {
		if now.Before(h.since.Add(MaxHope)) {
			near = append(near, id)
		}
	}
	slices.SortFunc(near, func(a, b vicinity.ID) int {
		return cmp.Or(cmp.Compare(s.Answers[a].RTT, s.Answers[b].RTT), cmp.Compare(a, b))
	})
	for _, id := range near {
		h := s.hopes[id]
		if len(ranks) == 0 || time.Duration(s.Answers[id].RTT) >= ranks[0] {
			break
		}
		ranks = ranks[min(h.workers, len(ranks)):]
		if !h.asked {
			h.asked = true
			s.hopes[id] = h
			list = append(list, id)
		}
	}
	return list
}

// expire drops the offers that have ended.
func (s *nodeAnswers) expire(now time.Time) {
	maps.DeleteFunc(s.Offers, func(_ vicinity.ID, o offer) bool { return !now.Before(o.expires) })
}

// GiveBack lets go of the offers that stand, and lists them; why is for those who ask what
// became of them.
func (s *nodeAnswers) GiveBack(why string) []Returned {
	return s.returns(why, func(vicinity.ID) bool { return true })
}

// Why offers are given back, and what else becomes of them.
const (
	NotNeeded = "not needed"
	notEnough = "not enough for the job"
	taken     = "taken for this job"
	// takenForOther is what another job got that shares the search.
	takenForOther = "taken for another job that wants the same"
	// heldForOther is what others may leave.
	heldForOther = "held for another job"
	wanted       = "a job that goes before wants it"
	failedThere  = "given back: the program failed there, and others come first"
)

// returns lets go of some offers, and lists them.
func (s *nodeAnswers) returns(why string, which func(vicinity.ID) bool) (list []Returned) {
	for _, id := range slices.Sorted(maps.Keys(s.Offers)) {
		if which(id) {
			list = append(list, Returned{id, s.Offers[id].key})
			if s.Answers[id].Fate == "" {
				s.fate(id, "given back: "+why)
			}
			s.back[id] = givenBack{s.Offers[id].key, s.number() - 1, "given back: " + why}
			delete(s.Offers, id)
		}
	}
	return list
}

// Close drops all offers, and lists the nodes that have answered.
func (s *nodeAnswers) Close() []vicinity.ID {
	clear(s.Offers)
	return slices.Sorted(maps.Keys(s.Answers))
}

// Gone drops the offer of a node that the overlay has declared dead, and counts on it no more.
func (s *nodeAnswers) Gone(id vicinity.ID) {
	delete(s.Offers, id)
	delete(s.hopes, id)
	delete(s.Plan.steps, id)
	s.forgetNode(id)
}

// Lost takes the reason why a node could not run, or lost, what it was granted for its latest
// answer.
func (s *nodeAnswers) Lost(now time.Time, id vicinity.ID, why string) {
	if a, ok := s.Answers[id]; ok {
		a.Offered, a.Reason, a.Fate, a.At = 0, why, "", now
		s.Answers[id] = a
	}
}

// Ungranted notes why the offers of nodes are given back that were taken.
func (s *nodeAnswers) Ungranted(nodes []vicinity.ID, why string) {
	for _, id := range nodes {
		if s.Answers[id].Fate == taken {
			s.fate(id, "given back: "+why)
		}
	}
}

// Tally sums up what nodes have answered.
func (s *nodeAnswers) Tally() jobs.Tally {
	t := jobs.Tally{Asked: len(s.Answers), Declined: map[string]int{}}
	for _, a := range s.Answers {
		if a.Reason == "" {
			t.Offered++
			continue
		}
		t.Declined[a.Reason]++
	}
	if len(t.Declined) > jobs.MaxReasons {
		for _, r := range t.Reasons()[jobs.MaxReasons-1:] {
			t.Declined[jobs.OtherReasons] += t.Declined[r]
			delete(t.Declined, r)
		}
	}
	return t
}
