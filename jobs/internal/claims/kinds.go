package claims

import (
	"math"
	"slices"

	"zorilla/jobs"
	"zorilla/jobs/internal/calendar"
	"zorilla/jobs/internal/wire"
)

// runnable is which workers of a job the node could ever run: the groups of a job are of kinds, and a hold is
// room for any mix of their workers.
type runnable struct {
	needs []jobs.Needs // of each kind that is among them
	fits  uint16       // a bit for each of these kinds; 0 if all workers of the job want the same
	mixed bool         // the job has kinds
}

// runnable finds out which workers of a job the node could ever run. Of a job without kinds all are.
func (c *Claims) runnable(ad *wire.Advertisement) (r runnable) {
	if len(ad.Kinds) == 0 {
		return runnable{needs: []jobs.Needs{ad.Needs}}
	}
	r.mixed = true
	for i := range ad.Kinds {
		if k := &ad.Kinds[i]; c.unfitFor(k) == "" {
			r.needs, r.fits = append(r.needs, k.Needs), r.fits|1<<i
		}
	}
	return r
}

// unfitFor says why the node cannot run workers of a kind, or "".
func (c *Claims) unfitFor(k *jobs.Kind) string {
	if why := tooSmall(c.Has, k.Needs); why != "" {
		return why
	}
	if !c.matches(k.Where) {
		return wire.ReasonWhere
	}
	return ""
}

// unfit says why the node can run no worker of a job, or "".
func (c *Claims) unfit(ad *wire.Advertisement) (why string) {
	if len(ad.Kinds) == 0 {
		if why = tooSmall(c.Has, ad.Needs); why != "" {
			return why
		}
	}
	if !c.matches(ad.Where) {
		return wire.ReasonWhere
	}
	for i := range ad.Kinds {
		text := c.unfitFor(&ad.Kinds[i])
		if text == "" {
			return ""
		}
		if why == "" || why == wire.ReasonWhere {
			why = text
		}
	}
	return why
}

// tooSmall says what a node that has so much does not have enough of for a worker, or "".
func tooSmall(s calendar.Supply, w jobs.Needs) string {
	switch {
	case s.Slots < w.Slots:
		return wire.ReasonSlots
	case w.Memory > s.Memory:
		return wire.ReasonMemory
	case s.GPUs < w.GPUs:
		return wire.ReasonGPUs
	}
	return ""
}

// in returns for how many workers a supply is enough; of a job with kinds, for how many at most.
func (r runnable) in(s calendar.Supply) (n int) {
	least := math.MaxInt
	for _, w := range r.needs {
		if fits := s.Fits(w); fits > 0 {
			n, least = max(n, fits), min(least, w.Slots)
		}
	}
	if r.mixed && n > 0 {
		n = min(s.Slots/least, jobs.MaxRanks)
	}
	return n
}

// lack reports whether more than there is was taken of something that they need.
func (r runnable) lack(s calendar.Supply) bool { return slices.ContainsFunc(r.needs, s.Lacks) }

// mix returns the part of a supply that so many of them could use, whatever their kinds.
func (r runnable) mix(s calendar.Supply, workers int) calendar.Supply {
	var most calendar.Supply
	for _, w := range r.needs {
		most = calendar.Supply{Slots: max(most.Slots, w.Slots), Memory: max(most.Memory, w.Memory), Disk: max(most.Disk, w.Disk), GPUs: max(most.GPUs, w.GPUs)}
	}
	n := int64(workers)
	most.Memory, most.Disk = min(most.Memory, math.MaxInt64/jobs.MaxRanks)*n, min(most.Disk, math.MaxInt64/jobs.MaxRanks)*n
	most.Slots, most.GPUs = min(most.Slots*workers, jobs.MaxSlots), min(most.GPUs*workers, jobs.MaxGPUs)
	s = s.Limited(most)
	return calendar.Supply{Slots: max(0, s.Slots), Memory: max(0, s.Memory), Disk: max(0, s.Disk), GPUs: max(0, s.GPUs)} // what is short is no debt of others
}

// supplyOf is what workers of ranks take together.
func supplyOf(spec *jobs.Spec, ranks []jobs.RankAttempt) (s calendar.Supply) {
	for _, ra := range ranks {
		s = s.Minus(spec.Needs(ra.Rank), -1)
	}
	return s
}

// roomOf is a supply as answers have it.
func roomOf(s calendar.Supply) *wire.Room {
	return &wire.Room{Slots: s.Slots, Memory: max(0, s.Memory), Disk: max(0, s.Disk), GPUs: max(0, s.GPUs)}
}
