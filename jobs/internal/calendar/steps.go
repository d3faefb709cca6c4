package calendar

import (
	"math"
	"slices"
	"time"

	"zorilla/jobs"
)

// Plan asks from when on a job could have how many workers.
type Plan struct {
	As      jobs.ID
	Length  time.Duration // of its workers; 0 = for ever
	Held    []Use
	Shut    []Span        // when none may begin
	Ahead   time.Duration // how far
	Steps   int           // at most so many
	Workers func(free Supply) (n int, room Supply)
}

// Span is a time up to another one.
type Span struct{ From, To time.Time }

// Step says that so many workers could begin at any moment from a time on, up to the next step.
type Step struct {
	In      int64 // milliseconds from now
	Workers int
	Room    Supply // as Plan.Workers says
	free    Supply
}

// maxPieces bounds how finely time is looked at; the last piece is all that comes after.
const maxPieces = 128

// Steps returns from when on how many workers could begin. The first step is now.
func (c *Calendar) Steps(now time.Time, plan *Plan) (steps []Step) {
	p := c.profileFor(now, plan.As, plan.Held)
	free := c.Has.Beside(c.Used)
	for _, ms := range p.candidates(now, plan) {
		from, to := now.Add(time.Duration(ms)*time.Millisecond), time.Time{}
		if plan.Length > 0 {
			to = from.Add(plan.Length)
		}
		s := plan.step(ms, Supply{})
		if !plan.shut(from) {
			s = plan.step(ms, free.plus(p.least(from, to)))
		}
		switch n := len(steps); {
		case n > 0 && (steps[n-1].same(s) || n == maxPieces):
			steps[n-1] = plan.step(steps[n-1].In, steps[n-1].free.Limited(s.free))
		default:
			steps = append(steps, s)
		}
	}
	for len(steps) > plan.Steps {
		steps = plan.merge(steps)
	}
	return steps
}

// candidates are the moments, in milliseconds from now, at which more or fewer workers may be able to begin: where
// something ends, and where what begins comes into their time.
func (p *profile) candidates(now time.Time, plan *Plan) []int64 {
	list := []int64{0}
	for _, at := range p.at {
		d := at.Sub(now)
		if d <= 0 {
			continue
		}
		list = append(list, int64((d+time.Millisecond-1)/time.Millisecond))
		if plan.Length > 0 && d >= plan.Length {
			list = append(list, (d-plan.Length).Milliseconds()+1)
		}
	}
	for _, s := range plan.Shut {
		for _, at := range []time.Time{s.From, s.To} {
			if d := at.Sub(now); d > 0 {
				list = append(list, int64((d+time.Millisecond-1)/time.Millisecond))
			}
		}
	}
	slices.Sort(list)
	list = slices.Compact(list)
	return slices.DeleteFunc(list, func(ms int64) bool { return ms > plan.Ahead.Milliseconds() })
}

func (p *Plan) shut(at time.Time) bool {
	return slices.ContainsFunc(p.Shut, func(s Span) bool { return !at.Before(s.From) && at.Before(s.To) })
}

func (p *Plan) step(in int64, free Supply) Step {
	n, room := p.Workers(free)
	return Step{in, n, room, free}
}

func (s *Step) same(o Step) bool { return s.Workers == o.Workers && s.Room == o.Room }

// merge makes one step of the two neighbours of which that takes the least.
func (p *Plan) merge(steps []Step) []Step {
	var best Step
	at, least := 0, int64(math.MaxInt64)
	for i := range len(steps) - 1 {
		a, b, end := steps[i], steps[i+1], p.Ahead.Milliseconds()
		if i+2 < len(steps) {
			end = steps[i+2].In
		}
		both := p.step(a.In, a.free.Limited(b.free))
		lost := int64(a.Workers-both.Workers)*(b.In-a.In) + int64(b.Workers-both.Workers)*(end-b.In)
		if lost <= least { // of several the last: what comes sooner matters more
			best, at, least = both, i, lost
		}
	}
	steps[at] = best
	return slices.Delete(steps, at+1, at+2)
}
