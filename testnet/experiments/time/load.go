package main

import (
	"math/rand/v2"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/model"
	"zorilla/testnet/sim"
)

const (
	longest  = time.Hour // W: the longest walltime of small jobs
	shortest = longest / 20
)

// shape is what there is, and how well users know how long their jobs take.
type shape struct {
	nodes, slots int     // and of each
	factor       float64 // of walltimes to real lengths
}

func (s shape) all() int { return s.nodes * s.slots }

// waiting is how many small jobs always wait.
func (s shape) waiting() int { return s.all() / 5 }

// load is a grid that small jobs fill without end: whenever one starts another is submitted, at a random node.
type load struct {
	shape
	o     *sim.Overlay
	g     *sim.Grid
	rnd   *rand.Rand
	small map[jobs.ID]*small // has no job that waits in its own call of Submit
	waits []time.Duration    // of those that have begun, but the first
}

// small is a job of one slot.
type small struct {
	submitted time.Duration
	began     bool
}

// newLoad returns a grid that is as if it had been full for long.
func newLoad(s shape, seed uint64) *load {
	o := sim.NewOverlay(sim.OverlayConfig{Layout: sim.SixSites(s.nodes, true), Seed: seed, Noise: sim.Usual(), Idle: true})
	l := &load{shape: s, o: o, rnd: rand.New(rand.NewPCG(seed, 0x10ad)), small: map[jobs.ID]*small{}}
	l.g = sim.NewGrid(sim.GridConfig{
		Overlay: o, Graph: sim.Ideal(o, seed), Seed: seed, Slots: func(int) int { return s.slots }, Fate: l.fate,
	})
	for i := range s.all() { // those that have run for a while
		walltime := l.walltime()
		for l.rnd.Float64() > float64(walltime)/float64(longest) { // of these there are the more the longer they are
			walltime = l.walltime()
		}
		gone := time.Duration(l.rnd.Float64() * float64(walltime) / s.factor)
		l.submit(i%s.nodes, walltime-gone, time.Duration(float64(walltime)/s.factor)-gone)
	}
	for range s.waiting() {
		l.o.Schedule(time.Second, l.another)
	}
	return l
}

func (l *load) walltime() time.Duration {
	return (shortest + time.Duration(l.rnd.Int64N(int64(longest-shortest)))).Round(time.Second)
}

// another submits a small job that takes the place of one that has begun.
func (l *load) another() {
	walltime := l.walltime()
	l.submit(l.rnd.IntN(l.o.Len()), walltime, time.Duration(float64(walltime)/l.factor))
}

// submit submits a small job that will run for a time.
func (l *load) submit(at int, walltime, run time.Duration) {
	id, err := l.g.Submit(at, jobs.Spec{Args: []string{"small", run.String()}, Min: 1, Max: 1, Slots: 1, Walltime: codec.Duration(walltime)})
	if err != nil {
		panic(err)
	}
	if l.small[id] == nil {
		l.small[id] = &small{submitted: l.o.Elapsed()}
	}
}

// fate has a gang run for its walltime.
func (l *load) fate(id jobs.ID, spec *jobs.Spec, _ jobs.RankAttempt) model.Fate {
	f := model.Fate{Prepare: time.Millisecond, Run: spec.Walltime.Std()}
	if spec.Args[0] != "small" {
		return f
	}
	f.Run, _ = time.ParseDuration(spec.Args[1])
	s := l.small[id]
	if s == nil {
		s = &small{submitted: l.o.Elapsed()}
		l.small[id] = s
	}
	if !s.began {
		s.began = true
		if l.o.Elapsed() >= time.Second {
			l.waits = append(l.waits, l.o.Elapsed()-s.submitted)
			l.o.Schedule(0, l.another)
		}
	}
	return f
}

// free counts the slots that nothing runs in.
func (l *load) free() (n int) {
	for i := range l.o.Len() {
		used, _ := l.g.Jobs(i).Slots()
		n -= used
	}
	return n + l.all()
}

// pass lets time pass, looks each second, and returns how many slots were free in it, in slots times time.
func (l *load) pass(limit time.Duration, until func() bool) (free time.Duration) {
	for end := l.o.Elapsed() + limit; l.o.Elapsed() < end && !until(); {
		l.g.Pass(time.Second)
		free += time.Second * time.Duration(l.free())
	}
	return free
}
