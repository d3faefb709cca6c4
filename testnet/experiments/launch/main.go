// Command launch repeats the start of the large job of Drost et al., Simple
// Locality-Aware Co-allocation in Peer-to-Peer Supercomputing, section 4.1, on
// simulated nodes: 338 nodes with two slots each at six sites, and one job of up
// to 671 workers, which starts with 600. Then five nodes are lost.
//
//	go run ./testnet/experiments/launch
//
// writes docs/experiments/launch. Times are of the network alone: a worker is
// ready a millisecond after its grant, and disks take no time.
package main

import (
	"fmt"
	"io"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/testnet/chart"
	"zorilla/testnet/sim"
)

const (
	nodes    = 338
	slots    = 2
	fewest   = 600
	most     = 671
	lost     = 5                // nodes
	lostAt   = 20 * time.Second // after the submission; later if the job does not run by then
	noticed  = 10 * time.Second // what memberlist takes to declare a node dead, about
	runtime  = 60 * time.Second // of a worker
	patience = 10 * time.Minute
)

func main() { chart.Main("launch", 3, run) }

// kinds are the searches to compare.
func kinds() []kind {
	return []kind{
		{"adaptive", jobs.Search{Mode: jobs.SearchAdaptive}},
		{"paper", jobs.Search{Mode: jobs.SearchPaper}},
		{"paper, waits of 0.2 s", jobs.Search{Mode: jobs.SearchPaper, Wait: codec.Duration(200 * time.Millisecond)}},
	}
}

type kind struct {
	name   string
	search jobs.Search
}

func run(w *chart.Results, seeds int) error {
	fmt.Fprintln(w, "one job of 600..671 workers on 676 slots; the paper: 671 in 90 s; target: 3 s with the adaptive search")
	fmt.Fprintln(w, "search                 seed | 600 run after   671 run after | nodes reached  messages (floods) answers  requests    MB | five nodes lost: workers  after | all ended")
	var rows [][]any
	f := chart.Figure{
		Title: "600..671 workers on 338 nodes; five nodes are lost 20 s after the submission, or when all run", X: "seconds after the submission", Y: "workers that run",
	}
	for _, k := range kinds() {
		for seed := 1; seed <= seeds; seed++ {
			r, err := launch(k.search, uint64(seed))
			if err != nil {
				return err
			}
			r.print(w, k.name, seed)
			for _, s := range r.curve {
				rows = append(rows, []any{k.name, seed, s.at.Seconds(), s.running})
			}
			if seed == 1 { // the first three quarters of a minute
				f.Series = append(f.Series, chart.Line(chart.Series{Name: k.name}, r.curve, func(s sample) (x, y float64, ok bool) {
					return s.at.Seconds(), float64(s.running), s.at <= 45*time.Second
				}))
			}
		}
	}
	w.CSV("launch.csv", []string{"search", "seed", "time_s", "running"}, rows)
	w.PNG("launch.png", f)
	return nil
}

// sample is how many workers run at a time.
type sample struct {
	at      time.Duration
	running int
}

// result is how one job went. Workers count while their nodes live.
type result struct {
	curve           []sample
	first, full     time.Duration // until the fewest and the most run
	cost            sim.Cost      // when the most run
	reached         int           // nodes, by the largest flood
	replaced        int           // workers when all that could be was replaced
	repaired, ended time.Duration // since the loss, and since the submission
	state           jobs.State
}

// trial is a job that is being watched.
type trial struct {
	o     *sim.Overlay
	g     *sim.Grid
	id    jobs.ID
	begin time.Duration
	r     result
}

const origin = 0 // in Sophia

// launch runs the job in one network.
func launch(search jobs.Search, seed uint64) (*result, error) {
	o := sim.NewOverlay(sim.OverlayConfig{Layout: sim.Paper(nodes), Seed: seed, Noise: sim.Usual(), Suspicion: noticed})
	o.Run(time.Minute)
	t := &trial{o: o, begin: o.Elapsed(), g: sim.NewGrid(sim.GridConfig{Overlay: o, Seed: seed, Fate: sim.Lasting(time.Millisecond, runtime)})}
	var err error
	t.id, err = t.g.Submit(origin, jobs.Spec{Args: []string{"queens", "22"}, Min: fewest, Max: most, Slots: 1, Search: search})
	if err != nil {
		return nil, err
	}
	t.r.first = t.wait(fewest)
	t.r.full = t.wait(most)
	t.r.cost = t.g.Cost(t.id)
	for _, r := range t.r.cost.Rounds {
		t.r.reached = max(t.r.reached, r.Reached+1)
	}
	for t.now() < lostAt {
		t.pass()
	}
	left := t.lose()
	at := t.now()
	t.r.repaired = t.wait(min(most, left)) - at
	t.r.replaced = t.running()
	for limit := t.now() + patience; t.now() < limit && !t.g.Jobs(origin).State(t.id).Final(); {
		t.pass()
	}
	t.r.ended, t.r.state = t.now(), t.g.Jobs(origin).State(t.id)
	return &t.r, nil
}

// now is the time since the submission.
func (t *trial) now() time.Duration { return t.o.Elapsed() - t.begin }

// running counts the workers that run.
func (t *trial) running() (n int) {
	st, _ := t.g.Jobs(origin).Status(t.id)
	for _, w := range st.Workers {
		if k, ok := t.o.Index(w.Node); ok && w.State == jobs.WorkerRunning && t.o.Up(k) {
			n++
		}
	}
	return n
}

// pass lets a moment pass and notes how many workers run then.
func (t *trial) pass() {
	step := 100 * time.Millisecond
	if t.now() < 5*time.Second {
		step = 5 * time.Millisecond
	}
	t.g.Pass(step)
	n := t.running()
	if c := t.r.curve; len(c) == 0 || c[len(c)-1].running != n || t.now()-c[len(c)-1].at >= time.Second {
		t.r.curve = append(t.r.curve, sample{t.now(), n})
	}
}

// wait lets time pass until so many workers run, and returns when that was; -1
// if it never came.
func (t *trial) wait(workers int) time.Duration {
	for limit := t.now() + patience; t.now() < limit; t.pass() {
		if t.running() >= workers {
			return t.now()
		}
		if t.g.Jobs(origin).State(t.id).Final() {
			break
		}
	}
	return -1
}

// lose stops five nodes with two workers each, at several sites, and returns
// how many slots are left.
func (t *trial) lose() int {
	var full []int
	for i := range nodes {
		if used, _ := t.g.Jobs(i).Slots(); i != origin && used == slots {
			full = append(full, i)
		}
	}
	var victims []int
	for k := range lost {
		victims = append(victims, full[(2*k+1)*len(full)/(2*lost)])
	}
	t.g.Crash(victims...)
	return (nodes - len(victims)) * slots
}

func (r *result) print(w io.Writer, name string, seed int) {
	c := r.cost
	fmt.Fprintf(w, "%-22s %4d | %11.3f s %13.3f s | %13d %9d (%9d) %8d %9d %5.1f | %8d %9.1f s | %s after %.0f s\n", name, seed, r.first.Seconds(), r.full.Seconds(),
		r.reached, c.Sum.Messages, len(c.Rounds), c.Answers, c.Requests, float64(c.Sum.Bytes+c.AnswerBytes+c.RequestBytes)/1e6,
		r.replaced, r.repaired.Seconds(), r.state, r.ended.Seconds())
}
