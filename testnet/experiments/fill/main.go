// Command fill repeats the experiment on scheduling of Drost et al., Simple
// Locality-Aware Co-allocation in Peer-to-Peer Supercomputing, section 4.2 and
// figure 5, on simulated nodes: 430 nodes with two slots each at six sites, and
// jobs of eight workers that never end, one after the other from one node in
// Sophia, until the grid is full.
//
//	go run ./testnet/experiments/fill
//
// writes docs/experiments/fill.
package main

import (
	"fmt"
	"io"
	"time"

	"zorilla/jobs"
	"zorilla/testnet/chart"
	"zorilla/testnet/sim"
)

const (
	nodes   = 430
	slots   = 2
	workers = 8
	limit   = 10 * time.Minute // a job that waits for so long finds no room
)

func main() { chart.Main("fill", 5, run) }

func run(w *chart.Results, seeds int) error {
	fmt.Fprintln(w, "search    seed  jobs  workers  "+
		"not the nearest free slot (target < 2 %)  or one that a lost packet kept  "+
		"RTT/oracle  messages a job  floods a job  all placed after")
	header := []string{"search", "seed", "job", "started_s"}
	for _, name := range siteNames {
		header = append(header, name, name+"_ideal")
	}
	var rows [][]any
	for _, mode := range []string{jobs.SearchPaper, jobs.SearchAdaptive} {
		placed, wrong := 0, 0
		for seed := 1; seed <= seeds; seed++ {
			r, err := fill(w, mode, uint64(seed))
			if err != nil {
				return err
			}
			placed, wrong = placed+r.placed(), wrong+r.wrong
			fmt.Fprintf(w, "%-9s %4d  %4d  %7d  %23d, %5.2f %% %24d, %5.2f %% %17.3f %15.0f %13.1f %14.1f s\n", mode, seed, len(r.jobs), r.placed(), r.wrong,
				percent(r.wrong, r.placed()), r.kept, percent(r.kept, r.placed()),
				float64(r.rtt)/float64(r.best), float64(r.messages)/float64(len(r.jobs)), float64(r.floods)/float64(len(r.jobs)), r.time.Seconds())
			for i, j := range r.jobs {
				row := []any{mode, seed, i + 1, j.started.Seconds()}
				for s := range j.sites {
					row = append(row, j.sites[s], j.best[s])
				}
				rows = append(rows, row)
			}
			if seed == 1 {
				w.PNG(mode+".png", r.figure(mode))
			}
		}
		fmt.Fprintf(w, "%-9s  all  %d of %d workers were not at the nearest free slot: %.2f %%, target < 2 %%\n", mode, wrong, placed, percent(wrong, placed))
	}
	w.CSV("fill.csv", header, rows)
	return nil
}

func percent(n, of int) float64 { return 100 * float64(n) / float64(max(1, of)) }

// result is how one grid filled up.
type result struct {
	jobs             []job
	wrong            int // workers for which a clearly nearer slot was free
	kept             int // the same, if slots that are held for jobs of before count as free
	rtt, best        time.Duration
	messages, floods int
	time             time.Duration
}

// job is where all workers are once a job runs.
type job struct {
	started     time.Duration
	sites, best []int // workers per site, and where the nearest slots would have been
}

func (r *result) placed() int { return len(r.jobs) * workers }

// fill fills a grid with jobs.
func fill(w io.Writer, mode string, seed uint64) (*result, error) {
	layout := layout()
	graph := sim.Settled(sim.OverlayConfig{Layout: layout, Seed: seed, Noise: sim.Usual()}, time.Minute)
	o := sim.NewOverlay(sim.OverlayConfig{Layout: layout, Seed: seed, Noise: sim.Usual(), Idle: true})
	g := sim.NewGrid(sim.GridConfig{Overlay: o, Graph: graph, Seed: seed})
	const origin = 0 // in Sophia
	free := func(i int) int {
		used, held := g.Jobs(i).Slots()
		return slots - used - held
	}
	unused := func(i int) int {
		used, _ := g.Jobs(i).Slots()
		return slots - used
	}
	r := &result{}
	ideal := o.Nearest(origin, nodes*slots, func(int) int { return slots })
	for len(ideal) >= (len(r.jobs)+1)*workers {
		best, unheld := o.Nearest(origin, workers, unused), o.Nearest(origin, workers, free)
		id, err := g.Start(origin, jobs.Spec{Args: []string{"prog"}, Min: workers, Max: workers, Slots: 1, Search: jobs.Search{Mode: mode}}, limit)
		if err != nil && id == "" {
			return nil, err
		}
		if err != nil {
			fmt.Fprintf(w, "%s, seed %d: job %d of %d does not start: %v\n", mode, seed, len(r.jobs)+1, len(ideal)/workers, err)
			return r, nil
		}
		g.Pass(100 * time.Millisecond) // reports, and what is given back
		chosen := g.Workers(origin, id)
		r.kept += wrong(o.Distances(origin, chosen), o.Distances(origin, best))
		r.add(o, origin, chosen, unheld, ideal)
		c := g.Cost(id)
		r.messages, r.floods, r.time = r.messages+c.Sum.Messages, r.floods+len(c.Rounds), o.Elapsed()
	}
	return r, nil
}

// add notes where a job's workers are.
func (r *result) add(o *sim.Overlay, origin int, chosen, best, ideal []int) {
	got, want := o.Distances(origin, chosen), o.Distances(origin, best)
	r.wrong += wrong(got, want)
	for i := range got {
		r.rtt, r.best = r.rtt+got[i], r.best+want[min(i, len(want)-1)]
	}
	j := job{started: o.Elapsed(), sites: make([]int, len(siteNames)), best: make([]int, len(siteNames))}
	if n := len(r.jobs); n > 0 {
		copy(j.sites, r.jobs[n-1].sites)
	}
	for _, k := range chosen {
		j.sites[o.Site(k)]++
	}
	for _, k := range ideal[:(len(r.jobs)+1)*workers] {
		j.best[o.Site(k)]++
	}
	r.jobs = append(r.jobs, j)
}

// wrong counts the workers that are clearly farther than they could be; both
// lists are in order.
func wrong(got, best []time.Duration) (n int) {
	for i := range best {
		if got[i]-best[i] > sim.Resolution {
			n++
		}
	}
	return n
}

// figure draws the workers of each site as the grid fills up.
func (r *result) figure(mode string) chart.Figure {
	f := chart.Figure{
		Title: fmt.Sprintf("430 nodes fill up with jobs of 8 workers from Sophia, %s search (dashed: nearest first)", mode),
		X:     "jobs", Y: "workers at the site",
	}
	var ideals []chart.Series // drawn last
	for s, name := range siteNames {
		got, ideal := chart.Series{Name: name, Colour: s + 1}, chart.Series{Colour: s + 1, Dashed: true}
		for i, j := range r.jobs {
			got.X, got.Y = append(got.X, float64(i+1)), append(got.Y, float64(j.sites[s]))
			ideal.X, ideal.Y = got.X, append(ideal.Y, float64(j.best[s]))
		}
		f.Series, ideals = append(f.Series, got), append(ideals, ideal)
	}
	f.Series = append(f.Series, ideals...)
	return f
}
