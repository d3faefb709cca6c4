package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"zorilla/testnet/chart"
)

// row is what came of a crowd in several networks.
type row struct {
	crowd
	ratios      []float64 // of the networks, in order, as the others are
	worst       float64
	starts      []time.Duration
	trips       []float64
	far         time.Duration
	copies      []int
	nearer      []int
	lasts       []float64 // of the networks: the last start over that of one job that has all the workers
	wholes      []time.Duration
	wholeCopies []int
	failed      int
}

// measure runs a crowd in several networks.
func (c *crowd) measure() (row, error) {
	r := row{crowd: *c}
	for seed := range c.seeds {
		o, err := c.run(uint64(seed) + 1)
		if err != nil {
			return r, err
		}
		r.ratios = append(r.ratios, o.ratio)
		r.starts = append(r.starts, o.starts...)
		r.trips = append(r.trips, o.trips...)
		r.copies = append(r.copies, o.copies...)
		r.nearer = append(r.nearer, o.nearer...)
		r.worst, r.far, r.failed = max(r.worst, o.worst), max(r.far, o.far), r.failed+o.failed
		if o.whole > 0 {
			r.wholes, r.wholeCopies = append(r.wholes, o.whole), append(r.wholeCopies, o.wholeCopies)
			r.lasts = append(r.lasts, float64(slices.Max(o.starts))/float64(o.whole))
		}
	}
	slices.Sort(r.ratios)
	slices.Sort(r.starts)
	slices.Sort(r.trips)
	slices.Sort(r.copies)
	slices.Sort(r.nearer)
	slices.Sort(r.lasts)
	slices.Sort(r.wholes)
	slices.Sort(r.wholeCopies)
	return r, nil
}

// at is the element of an ordered list that so large a share of it is not greater than; zero if it is empty.
func at[T any](list []T, share float64) (x T) {
	if len(list) > 0 {
		x = list[int(share*float64(len(list)-1))]
	}
	return x
}

// where says who submits.
func (c *crowd) where() string {
	switch {
	case c.moved > 0:
		return fmt.Sprintf("moved %g s ago", c.moved.Seconds())
	case c.warmUp <= 10*time.Second:
		return fmt.Sprintf("all %g s old", c.warmUp.Seconds())
	case c.alone:
		return "alone"
	case c.one:
		return "one"
	}
	return "many"
}

func sumOf(list []int) (all int) {
	for _, n := range list {
		all += n
	}
	return all
}

const header = `network noise     nodes fill jobs x workers  apart  origins        ` +
	`| ratio: median  worst network  job ` +
	`| start ms: median  p90  worst  round trips: median  p90   far ms ` +
	`| copies a job: median  most  (nearer)  of all ` +
	`| over one job of all: last start, median  worst  copies | failed`

func (r row) String() string {
	s := fmt.Sprintf("%-7s %-9s %5d %4d %4d x %-7d %6d  %-14s | %13.3f %14.3f %5.2f | %16.0f %5.0f %6.0f %20.1f %4.1f %8.0f | %20d %5d %9d %7d |",
		r.name, r.noise, r.nodes, r.fill, r.jobs, r.workers, r.apart.Milliseconds(), r.where(), at(r.ratios, 0.5), at(r.ratios, 1), r.worst,
		millis(at(r.starts, 0.5)), millis(at(r.starts, 0.9)), millis(at(r.starts, 1)), at(r.trips, 0.5), at(r.trips, 0.9), millis(r.far),
		at(r.copies, 0.5), at(r.copies, 1), at(r.nearer, 1), sumOf(r.copies)/r.seeds)
	if len(r.lasts) > 0 {
		s += fmt.Sprintf(" %39.1f %6.1f %7.1f", at(r.lasts, 0.5), at(r.lasts, 1), float64(sumOf(r.copies))/float64(sumOf(r.wholeCopies)))
	} else {
		s += fmt.Sprintf(" %39s %6s %7s", "", "", "")
	}
	return s + fmt.Sprintf(" | %6d", r.failed)
}

const columns = "network noise nodes fill jobs workers apart_ms origins networks " +
	"ratio_median ratio_worst ratio_worst_job " +
	"start_median_ms start_p90_ms start_worst_ms trips_median trips_p90 far_ms " +
	"copies_median copies_most nearer_most copies_all whole_start_median_ms whole_copies_median failed"

func (r row) cells() []any {
	return []any{
		r.name, r.noise, r.nodes, r.fill, r.jobs, r.workers, r.apart.Milliseconds(), r.where(), r.seeds, at(r.ratios, 0.5), at(r.ratios, 1), r.worst,
		millis(at(r.starts, 0.5)), millis(at(r.starts, 0.9)), millis(at(r.starts, 1)), at(r.trips, 0.5), at(r.trips, 0.9), millis(r.far),
		at(r.copies, 0.5), at(r.copies, 1), at(r.nearer, 1), sumOf(r.copies) / r.seeds, millis(at(r.wholes, 0.5)), at(r.wholeCopies, 0.5), r.failed,
	}
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// run prints a line for each kind of crowd, and keeps a table of them.
func run(w *chart.Results, o options) error {
	var rows [][]any
	for _, part := range o.parts {
		for _, t := range o.topologies {
			fmt.Fprintln(w, header)
			for _, noise := range o.noises {
				for i, c := range kinds[part](t, noise) {
					if len(o.rows) > 0 && !slices.Contains(o.rows, i+1) {
						continue
					}
					if o.seeds > 0 {
						c.seeds = o.seeds
					}
					r, err := c.measure()
					if err != nil {
						return err
					}
					fmt.Fprintln(w, r)
					rows = append(rows, r.cells())
				}
			}
			fmt.Fprintln(w)
		}
	}
	w.CSV("crowd.csv", strings.Fields(columns), rows)
	return nil
}
