package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/groups"
	"zorilla/jobs/work"
)

// order is a job of the story, before it is submitted.
type order struct {
	number int
	kind   string
	at     time.Duration
	origin string
	spec   jobs.Spec // without what is known only when it is submitted
	prog   program
	ends   []end  // that are right whatever happens
	words  string // that tell of the limit at which it ends; "" = of none
	// lossy tells that a lost node may end it: a rigid job.
	lossy  bool
	after  int // number of the job that must end first; -1 = none
	depend jobs.DependencyKind
	cancel time.Duration // after its submission; 0 = not
}

// end is how a job may end.
type end struct {
	state jobs.State
	code  int
}

func (e end) String() string { return fmt.Sprintf("%s with %d", e.state, e.code) }

// orders makes the jobs of a story.
func orders(o options, hosts []string, self string) []*order {
	rnd := rand.New(rand.NewPCG(o.seed, 1))
	list := make([]*order, o.jobs)
	for i := range list {
		j := &order{
			number: i, at: time.Duration(float64(o.length) * 0.9 * float64(i) / float64(o.jobs)), origin: hosts[rnd.IntN(len(hosts))],
			after: -1, ends: []end{{jobs.Completed, 0}},
		}
		j.prog.Key = fmt.Sprintf("chaos-%d-%d", o.seed, i)
		j.spec.Min, j.spec.Max, j.spec.Slots = 1, 1, 1
		kind := pick(rnd)
		if h, ok := hostileAt(o.seed, i); ok {
			kind = h
		}
		j.kind = kind.name
		kind.make(j, rnd)
		if j.after == 0 { // it wants another job
			if j.after = i - 1 - rnd.IntN(8); j.after < 0 {
				j.after, j.depend = -1, ""
			}
		}
		j.spec.Name = j.prog.Key
		if j.spec.Args = j.prog.args(self); j.kind == "not found" {
			j.spec.Args[0] = "no-such-program-of-chaos"
		}
		j.lossy = j.spec.Rigid()
		list[i] = j
	}
	return list
}

// kind is one sort of job.
type kind struct {
	name   string
	weight int
	make   func(*order, *rand.Rand)
}

func kinds() []kind {
	return []kind{
		{"gang", 4, gang},
		{"files", 3, files},
		{"malleable", 4, malleable},
		{"groups", 4, grouped},
		{"array", 4, array},
		{"lines", 2, lines},
		{"bulk", 2, bulk},
		{"fed", 2, fed},
		{"retried gang", 2, retriedGang},
		{"retried ranks", 2, retriedRanks},
		{"after", 3, after},
		{"cancelled", 2, cancelled},
		{"walltime", 1, walltime},
		{"codes", 2, codes},
		{"bad exit", 1, badExit},
		{"signal", 1, signalled},
		{"not found", 1, notFound},
	}
}

func pick(rnd *rand.Rand) kind {
	all, total := kinds(), 0
	for _, k := range all {
		total += k.weight
	}
	n := rnd.IntN(total)
	for _, k := range all {
		if n -= k.weight; n < 0 {
			return k
		}
	}
	panic("weights do not add up")
}

// between returns a time of so many milliseconds.
func between(rnd *rand.Rand, least, most int) time.Duration {
	return time.Duration(least+rnd.IntN(most-least+1)) * time.Millisecond
}

// paced makes it write lines for some seconds, seldom for longer than a lost
// node is waited for.
func (j *order) paced(rnd *rand.Rand) {
	j.prog.Lines, j.prog.Errs, j.prog.Gap = 5+rnd.IntN(20), rnd.IntN(4), between(rnd, 20, 120)
	j.prog.Trail = rnd.IntN(4) == 0
	if rnd.IntN(8) == 0 {
		j.prog.Lines, j.prog.Gap = 60, between(rnd, 150, 250)
	}
}

func (j *order) ranks(n int) { j.spec.Min, j.spec.Max = n, n }

func gang(j *order, rnd *rand.Rand) {
	j.ranks(1 + rnd.IntN(6))
	j.spec.Priority = rnd.IntN(3) - 1
	j.spec.Slots = 1 + rnd.IntN(2)
	j.paced(rnd)
}

func files(j *order, rnd *rand.Rand) {
	gang(j, rnd)
	if rnd.IntN(3) > 0 {
		j.prog.In = 300_000
	}
	j.prog.Out = 1 + rnd.IntN(400_000)
	j.spec.Outputs = []string{"out-*"}
	if rnd.IntN(3) == 0 { // they are fetched from several attempts then
		j.spec.Min = 1
	}
}

func malleable(j *order, rnd *rand.Rand) {
	j.spec.Min = 1 + rnd.IntN(2)
	j.spec.Max = j.spec.Min + 1 + rnd.IntN(5)
	j.paced(rnd)
}

// grouped has two or three groups with a link between them.
func grouped(j *order, rnd *rand.Rand) {
	var names []string
	for i := range 2 + rnd.IntN(2) {
		g := groups.Group{Name: fmt.Sprintf("g%d", i), Min: 1 + rnd.IntN(2), Slots: groups.Range{Min: int64(1 + rnd.IntN(2))}}
		g.Max = g.Min + rnd.IntN(2)
		g.Restart = []string{groups.RestartJob, groups.RestartGroup, groups.RestartRank}[rnd.IntN(3)]
		if rnd.IntN(3) == 0 {
			g.Clusters, g.Prefer = 1, codec.Duration(3*time.Second)
		}
		names, j.spec.Groups = append(names, g.Name), append(j.spec.Groups, g)
	}
	j.spec.Links = []groups.Link{{Name: "all", Groups: names, MaxRTT: codec.Duration(2 * time.Second)}}
	j.spec.Min, j.spec.Max = j.spec.Topology.Least(), j.spec.Topology.Most()
	j.paced(rnd)
}

func array(j *order, rnd *rand.Rand) {
	tasks := 10 + rnd.IntN(60)
	j.spec.Array = &jobs.Array{Tasks: []work.TaskIDs{{First: 1, Last: tasks, Step: 1}}}
	j.spec.Max = min(tasks, 1+rnd.IntN(5))
	j.prog.Lines, j.prog.Errs, j.prog.Gap = 1+rnd.IntN(3), rnd.IntN(2), between(rnd, 0, 60)
	if rnd.IntN(4) == 0 {
		j.prog.Codes = []int{0, 0, 3, 0, 0, 0, 7}
		j.ends = []end{{jobs.Failed, 7}}
	}
	if rnd.IntN(4) == 0 {
		j.prog.Out = 2000
		j.spec.Outputs = []string{"out-*"}
	}
}

func lines(j *order, rnd *rand.Rand) {
	array(j, rnd)
	j.prog.Lined, j.spec.Array.Lines = true, true
}

func bulk(j *order, rnd *rand.Rand) {
	j.ranks(1 + rnd.IntN(2))
	j.prog.Lines, j.prog.Gap, j.prog.Bulk = 3, between(rnd, 50, 300), 1_000_000+rnd.IntN(8_000_000)
}

// fed lets rank 0 read its standard input when it has written its lines: what it
// is fed waits at its origin, and on the way.
func fed(j *order, rnd *rand.Rand) {
	j.ranks(1 + rnd.IntN(2))
	j.paced(rnd)
	j.spec.Stdin, j.prog.Stdin = true, 1+rnd.IntN(4_000_000)
}

func retriedGang(j *order, rnd *rand.Rand) {
	gang(j, rnd)
	j.spec.Retries, j.prog.Flaky = 3, 9
}

func retriedRanks(j *order, rnd *rand.Rand) {
	malleable(j, rnd)
	j.spec.Retries, j.prog.Flaky = 3, 9
}

// after wants the job to wait for another one.
func after(j *order, rnd *rand.Rand) {
	j.ranks(1 + rnd.IntN(3))
	j.paced(rnd)
	j.after = 0
	j.depend = []jobs.DependencyKind{jobs.AfterOK, jobs.AfterAny, jobs.AfterNotOK}[rnd.IntN(3)]
}

func cancelled(j *order, rnd *rand.Rand) {
	j.ranks(1 + rnd.IntN(3))
	if rnd.IntN(2) == 0 {
		j.spec.Max += 2
	}
	j.paced(rnd)
	j.prog.Sleep, j.cancel = time.Hour, between(rnd, 200, 6000)
	j.ends = []end{{jobs.Cancelled, jobs.CodeCancelled}}
}

func walltime(j *order, rnd *rand.Rand) {
	j.ranks(1 + rnd.IntN(3))
	j.prog.Lines, j.prog.Sleep = 4, time.Hour
	j.spec.Walltime = codec.Duration(between(rnd, 1000, 4000))
	j.ends, j.words = []end{{jobs.Timeout, jobs.CodeTimeout}}, overTime(j.spec.Walltime)
}

// overTime is what is told of a job that needed longer than it may.
func overTime(limit codec.Duration) string { return fmt.Sprintf("needed more than %v (-t)", limit) }

// codes lets every rank come to its own end; the highest counts.
func codes(j *order, rnd *rand.Rand) {
	j.ranks(3 + rnd.IntN(3))
	j.paced(rnd)
	j.prog.Codes = []int{0, 3, 1 + rnd.IntN(120)}
	goOn := false
	j.spec.KillOnBadExit = &goOn
	j.ends = []end{{jobs.Failed, max(3, j.prog.Codes[2])}}
}

// badExit lets one rank of a gang fail, which stops the others.
func badExit(j *order, rnd *rand.Rand) {
	j.ranks(3)
	j.paced(rnd)
	j.prog.Codes = []int{0, 42, 0}
	j.prog.Sleep = between(rnd, 0, 500)
	j.ends = []end{{jobs.Failed, 42}}
}

func signalled(j *order, rnd *rand.Rand) {
	j.paced(rnd)
	j.prog.Die = true
	j.ends = []end{{jobs.Failed, 137}}
}

func notFound(j *order, _ *rand.Rand) {
	j.ranks(2)
	j.ends = []end{{jobs.Failed, 127}}
}
