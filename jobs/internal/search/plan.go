package search

import (
	"maps"
	"slices"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/placement"
	"zorilla/vicinity"
)

// A job that waits may have its start promised. Nodes are asked from when on they could run how many of its
// workers, and the earliest time is taken at which the choice of nodes would do that is made when workers
// begin.

const (
	// planWait bounds how long the answers of nodes that were asked for a plan are waited for.
	planWait = 3 * time.Second
	// maxPlanned bounds the times that are tried of a job for which more counts than how many workers there are.
	maxPlanned = 16
)

// plan is what nodes have said of the time to come.
type plan struct {
	due   bool      // they are to be asked
	asked time.Time // when they were; zero = they are not
	steps map[vicinity.ID][]step
}

// step is from when on a node could run how many workers.
type step struct {
	at      time.Time
	workers int
	hold    hold
}

// Part is what a node is to be booked for.
type Part struct {
	Node    vicinity.ID
	Name    string
	Workers int
	Room    wire.Room
}

// Ask has nodes asked when they could run the job's workers.
func (p *plan) Ask() { *p = plan{due: true} }

// begin notes that they are asked.
func (p *plan) begin(now time.Time) { *p = plan{asked: now, steps: map[vicinity.ID][]step{}} }

// note takes what a node says of the time to come.
func (p *plan) note(now time.Time, from vicinity.ID, a *wire.Answer) {
	if p.steps == nil || a.Steps == nil {
		return
	}
	list := make([]step, len(a.Steps))
	for i, t := range a.Steps {
		list[i] = step{at: now.Add(time.Duration(t.In) * time.Millisecond), workers: t.Workers}
		if t.Room != nil {
			list[i].hold = hold{*t.Room, a.Fits}
		}
	}
	p.steps[from] = list
}

// stepAt is what a node could run that begins at a time.
func stepAt(list []step, at time.Time) (found step) {
	for _, t := range list {
		if t.at.After(at) {
			break
		}
		found = t
	}
	return found
}

// Forecast is what a search knows of the time to come.
type Forecast struct {
	Search *Search
	Now    time.Time
	Demand Demand // of an unstarted job
}

// Ready reports whether those have answered that may, and when that will be so at the latest; zero = nobody is
// asked.
func (f Forecast) Ready() (yes bool, until time.Time) {
	s := f.Search
	if s.Plan.asked.IsZero() {
		return false, time.Time{}
	}
	until = s.Plan.asked.Add(planWait)
	return !f.Now.Before(until) || s.everybodyAnswered() && s.own != asked, until
}

// Earliest returns the earliest time, from one on, at which what is wanted could begin, as nodes have said, and what
// is to be booked then: the fewest workers that the job begins with. The time is zero if there is none up to
// until; zero until = whenever.
func (f Forecast) Earliest(from, until time.Time) (at time.Time, parts []Part) {
	tried := 0
	for _, at := range f.Search.Plan.starts(from, until) {
		v := f.at(at)
		if v.Search.Offers.workers() < f.Demand.Least {
			continue
		}
		if parts := v.parts(); parts != nil {
			return at, parts
		}
		if tried++; tried == maxPlanned {
			break
		}
	}
	return time.Time{}, nil
}

// starts lists the times at which more may be possible than before, in order.
func (p *plan) starts(from, until time.Time) (list []time.Time) {
	list = append(list, from)
	for _, steps := range p.steps {
		for _, t := range steps {
			if t.at.After(from) {
				list = append(list, t.at)
			}
		}
	}
	slices.SortFunc(list, time.Time.Compare)
	return slices.DeleteFunc(slices.CompactFunc(list, time.Time.Equal), func(at time.Time) bool { return !until.IsZero() && at.After(until) })
}

// at is the search as if nodes offered now what they could run at a time.
func (f Forecast) at(at time.Time) Forecast {
	v, answers := *f.Search, *f.Search.nodeAnswers
	v.nodeAnswers, v.group = &answers, group{}
	v.Offers = offers{}
	for id, steps := range v.Plan.steps {
		t := stepAt(steps, at)
		if t.workers > 0 && !v.keepsAway(f.Now, id) && !slices.Contains(f.Demand.Left, id) {
			v.Offers[id] = offer{key: 1, workers: t.workers, rtt: v.roundTrip(id), exact: true, hold: t.hold}
		}
	}
	f.Search = &v
	return f
}

// parts are what the fewest workers that the job begins with would get of the offers; nil if they do not do.
func (f Forecast) parts() (list []Part) {
	s, few := f.Search, f.Demand
	few.Wanted = few.Least
	if few.Groups != nil {
		g := *few.Groups
		few.Groups, g.Most = &g, slices.Clone(g.Least)
	}
	offers := s.standing()
	c, err := s.choose(placement.NewPlan(s.timed(s.spec, offers)), &few, offers)
	if err != nil || len(c.assign) < few.Least {
		return nil
	}
	room := map[int]*Part{}
	for worker, i := range c.assign {
		if room[i] == nil {
			id := vicinity.ID(offers[i].Node)
			room[i] = &Part{Node: id, Name: s.Answers[id].Name}
		}
		room[i].add(needsOf(s.spec, c, worker))
	}
	for _, i := range slices.Sorted(maps.Keys(room)) {
		list = append(list, *room[i])
	}
	return list
}

func (p *Part) add(n jobs.Needs) {
	p.Workers++
	p.Room.Slots += n.Slots
	p.Room.Memory += n.Memory
	p.Room.Disk += n.Disk
	p.Room.GPUs += n.GPUs
}

// needsOf is what a worker of a choice needs: those of a job with groups come in the order of the groups.
func needsOf(spec *jobs.Spec, c *choice, worker int) jobs.Needs {
	kinds, of := spec.Kinds()
	for group, n := range c.sizes {
		if worker < n && len(kinds) > 0 {
			return kinds[of[group]].Needs
		}
		worker -= n
	}
	return spec.Needs(0)
}

// choice is what a plan gives to the first demand that is left.
type choice struct {
	demand *Demand
	number int               // of the demand in its list
	offers []placement.Offer // all that stood
	assign []int             // an offer for each worker
	worst  time.Duration     // distance of the farthest
	sizes  []int             // of a job with groups: workers of each
	hoped  bool              // of a job with groups: it depends on round trips that are shorter or longer than estimated
	near   *nearness         // to where ranks were lost; nil = none were
	any    bool              // any other node that answers may be better, not only a nearer one
}

// farthest is the distance of the farthest node that ranks were assigned to.
func farthest(offers []placement.Offer, assign []int) (worst time.Duration) {
	for _, i := range assign {
		worst = max(worst, offers[i].RTT)
	}
	return worst
}

// nodes lists the node of each worker.
func (c *choice) nodes() (list []vicinity.ID) {
	for _, i := range c.assign {
		list = append(list, vicinity.ID(c.offers[i].Node))
	}
	return list
}
