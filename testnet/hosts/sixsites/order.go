package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"zorilla/jobs"
)

// nearest returns the sites in the order of their distance from a host.
func (s *scene) nearest(host string) []int {
	own := s.siteOf(host)
	order := make([]int, len(s.sites))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		switch d := s.rtt[own][a] - s.rtt[own][b]; {
		case d < 0:
			return -1
		case d > 0:
			return 1
		}
		return 0
	})
	return order
}

// order fills the network from two hosts, one after the other, with jobs as
// large as a site, and compares where they run with the distances.
func (s *scene) order(ctx context.Context) error {
	for _, host := range []string{"rennes-1", "sophia-2"} {
		var list []*labJob
		var path []string
		wrong, cost := 0, 0.0
		own := s.siteOf(host)
		for _, want := range s.nearest(host) {
			j, err := s.submit(host, fmt.Sprint(2*slots))
			if err != nil {
				return err
			}
			list = append(list, j)
			st, _, err := j.becomes(ctx, 30*time.Second, "runs", running(2*slots))
			if err != nil {
				return err
			}
			path = append(path, s.places(st))
			for _, w := range st.Workers {
				d := s.rtt[own][s.siteOf(w.Name)] - s.rtt[own][want]
				cost = max(cost, d)
				if d > near {
					wrong++
				}
			}
		}
		if err := all(ctx, 20*time.Second, list...); err != nil {
			return err
		}
		first := path[0] == s.sites[own]
		s.row(fmt.Sprintf("six jobs of %d from %s, each while those before run", 2*slots, host), strings.Join(path, ", "), "own site first", first)
		s.row("their workers that are more than 1 ms farther than a site with free slots", fmt.Sprintf("%d of %d; at most %s farther", wrong, 12*slots, millis(cost)), "one in eight at most", wrong <= 12*slots/8)
	}
	return nil
}

// places tells the sites of a job's running workers, with the number of workers
// where there are several sites.
func (s *scene) places(st jobs.Status) string {
	count := make([]int, len(s.sites))
	total := 0
	for _, w := range st.Workers {
		if w.State == jobs.WorkerRunning {
			count[s.siteOf(w.Name)]++
			total++
		}
	}
	var all []string
	for i, n := range count {
		switch {
		case n > 0 && n == total:
			return s.sites[i]
		case n > 0:
			all = append(all, fmt.Sprintf("%d %s", n, s.sites[i]))
		}
	}
	return strings.Join(all, " + ")
}

// full submits a job when no slot is free: it waits, and runs where slots get
// free.
func (s *scene) full(ctx context.Context) error {
	const host = "lyon-1"
	var list []*labJob
	at := map[string]*labJob{} // by site
	for range s.sites {
		j, err := s.submit(host, fmt.Sprint(2*slots))
		if err != nil {
			return err
		}
		list = append(list, j)
		st, _, err := j.becomes(ctx, 30*time.Second, "runs", running(2*slots))
		if err != nil {
			return err
		}
		at[s.places(st)] = j
	}
	late, err := s.submit(host, fmt.Sprint(slots))
	if err != nil {
		return err
	}
	st, _, err := late.becomes(ctx, 10*time.Second, "has asked and waits", func(st jobs.Status) bool {
		return len(st.Rounds) > 0 && st.State == jobs.Pending && strings.Contains(st.Reason, "waiting for")
	})
	if err != nil {
		return err
	}
	s.row("a job for which no slot is free says so", st.Reason, "waits with a reason", true)
	leaver := list[2]
	for place, j := range at {
		if !strings.Contains(place, "+") && j != list[0] { // a whole site other than its own
			leaver = j
		}
	}
	before, err := leaver.status(ctx)
	if err != nil {
		return err
	}
	freed := time.Now()
	if _, err := leaver.ends(ctx, 20*time.Second); err != nil {
		return err
	}
	st, _, err = late.becomes(ctx, 30*time.Second, "runs", running(slots))
	if err != nil {
		return err
	}
	right := strings.Contains(s.places(before), strings.TrimLeft(s.places(st), "0123456789 "))
	s.row("it runs where slots get free", fmt.Sprintf("at %s, %s after that", s.places(st), seconds(time.Since(freed))), "at "+s.places(before), right)
	list = slices.DeleteFunc(list, func(j *labJob) bool { return j == leaver })
	return all(ctx, 20*time.Second, append(list, late)...)
}
