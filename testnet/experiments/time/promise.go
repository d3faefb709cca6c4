package main

import (
	"slices"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/timing"
)

const (
	before    = longest / 12 // for so long the grid is watched before the gang comes
	patience  = 2 * longest  // a gang that waits longer will not be waited for
	gangShare = 0.9          // of all slots
)

// policy is from when on the gang has its start promised.
type policy struct {
	name string
	timing.Timing
}

var (
	atOnce = policy{"at once", timing.Timing{BookAfter: timing.BookAtOnce}}
	usual  = policy{"10 min", timing.Timing{}}
	never  = policy{"never", timing.Timing{BookAfter: timing.BookNever}}
)

// gang is how a job of most slots came to them.
type gang struct {
	shape  shape
	policy policy
	seed   uint64

	started  bool
	wait     time.Duration
	idle     float64       // slots that were free for it, in all slots x W
	idleThen float64       // share of slots that were free before
	searched time.Duration // from submission to the first promise
	promised []time.Time   // starts, each better than the one before, or in its place
	start    time.Time
}

// late is how much later the gang started than was promised first, or last.
func (g *gang) late() (first, last time.Duration) {
	if len(g.promised) == 0 || !g.started {
		return 0, 0
	}
	return g.start.Sub(g.promised[0]), g.start.Sub(g.promised[len(g.promised)-1])
}

// pursue submits a gang to a grid that is full.
func pursue(s shape, p policy, seed uint64) gang {
	l := newLoad(s, seed)
	l.g.Pass(time.Minute)
	out := gang{shape: s, policy: p, seed: seed}
	out.idleThen = float64(l.pass(before, func() bool { return false })) / float64(before) / float64(s.all())
	origin := l.rnd.IntN(s.nodes)
	n := int(gangShare * float64(s.all()))
	id, err := l.g.Submit(origin, jobs.Spec{
		Args: []string{"gang"}, Min: n, Max: n, Slots: 1, Walltime: codec.Duration(longest / 2), Search: jobs.Search{Timing: p.Timing},
	})
	if err != nil {
		panic(err)
	}
	at, core := l.o.Now(), l.g.Jobs(origin)
	free := l.pass(patience, func() bool {
		st, _ := core.Status(id)
		if st.Promised != nil && !slices.Contains(out.promised, st.Promised.At) {
			if len(out.promised) == 0 {
				out.searched = l.o.Now().Sub(at)
			}
			out.promised = append(out.promised, st.Promised.At)
		}
		out.started, out.start = st.State == jobs.Running, st.Started
		return out.started || st.State.Final()
	})
	if out.wait = l.o.Now().Sub(at); out.started {
		out.wait = out.start.Sub(at)
	}
	out.idle = float64(free)/float64(longest)/float64(s.all()) - out.idleThen*float64(out.wait)/float64(longest)
	return out
}
