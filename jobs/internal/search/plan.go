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

// Planned reports whether those have answered that may, and when that will be so at the latest; zero = nobody is
// asked.
func (s *Search) Planned(now time.Time) (done bool, until time.Time) {
	if s.Plan.asked.IsZero() {
		return false, time.Time{}
	}
	until = s.Plan.asked.Add(planWait)
	return !now.Before(until) || s.everybodyAnswered() && (s.own != asked), until
}

// askPlan has all nodes asked, if that is due.
func (s *Search) askPlan(now time.Time, d *Demand, n *Next) bool {
	if !s.Plan.due {
		return false
	}
	s.Plan = plan{asked: now, steps: map[vicinity.ID][]step{}}
	s.schedule.Flooded(now)
	s.flood(now, s.schedule.First(), d, n)
	s.overdue, s.horizon = true, anywhere
	return true
}

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

// Earliest returns the earliest time, from one on, at which what is wanted could begin, as nodes have said, and what
// is to be booked then: the fewest workers that the job begins with. The time is zero if there is none up to
// until; zero until = whenever.
func Earliest(s *Search, now time.Time, d Demand, from, until time.Time) (at time.Time, parts []Part) {
	tried := 0
	for _, at := range s.Plan.starts(from, until) {
		v := asAt(s, now, at, &d)
		if v.Offers.workers() < d.Least {
			continue
		}
		if parts := partsOf(v, &d); parts != nil {
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

// asAt is a search as if nodes offered now what they could run at a time.
func asAt(s *Search, now, at time.Time, d *Demand) *Search {
	v, answers := *s, *s.nodeAnswers
	v.nodeAnswers, v.group = &answers, group{}
	v.Offers = offers{}
	for id, steps := range s.Plan.steps {
		t := stepAt(steps, at)
		if t.workers == 0 || s.keepsAway(now, id) || slices.Contains(d.Left, id) {
			continue
		}
		v.Offers[id] = offer{key: 1, workers: t.workers, rtt: s.roundTrip(id), exact: true, hold: t.hold}
	}
	return &v
}

// partsOf are what the fewest workers that the job begins with would get of the offers; nil if they do not do.
func partsOf(s *Search, d *Demand) (list []Part) {
	few := *d
	few.Wanted = d.Least
	if d.Groups != nil {
		g := *d.Groups
		few.Groups, g.Most = &g, slices.Clone(g.Least)
	}
	offers := s.standing()
	c, err := s.choose(placement.NewPlan(s.timed(s.spec, offers)), &few, offers)
	if err != nil || len(c.assign) < d.Least {
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
