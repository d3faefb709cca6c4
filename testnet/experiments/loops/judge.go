package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"zorilla/jobs"
)

// wantHome is the least share of workers at the own site, where there is room for all.
const wantHome = 0.99

// job is one run of a job.
type job struct {
	Part, User         string // User is the host at which it was submitted
	ID                 jobs.ID
	Wanted             int // workers
	Submitted, Started time.Time
	Workers            []worker
	Attempts           int
	Failed             string // "" or what is wrong with it
	Told               string // of nodes' answers, if it passed over slots of its own node
}

// worker is where a rank was, and until when.
type worker struct {
	Host  string
	Ended time.Time
}

// siteOf returns the site of a host.
func siteOf(host string) string {
	site, _, _ := strings.Cut(host, "-")
	return site
}

// count returns how many workers were at places that are as asked.
func (j *job) count(at func(host string) bool) (n int) {
	for _, w := range j.Workers {
		if at(w.Host) {
			n++
		}
	}
	return n
}

func (j *job) here(host string) bool { return host == j.User }
func (j *job) home(host string) bool { return siteOf(host) == siteOf(j.User) }

// passedOver returns how many slots of its own node were idle when a job was submitted, and
// not taken though it could have had them. A slot is not idle if the worker of a job of
// the same part has it that was submitted before: the older job goes first, so it
// may have that slot from its submission on.
func passedOver(j *job, all []job) int {
	idle := slots
	for i := range all {
		o := &all[i]
		if o.ID == j.ID || o.Part != j.Part || o.Submitted.After(j.Submitted) {
			continue
		}
		for _, w := range o.Workers {
			if w.Host == j.User && w.Ended.After(j.Submitted) {
				idle--
			}
		}
	}
	return max(0, min(idle, j.Wanted)-j.count(j.here))
}

// tally sums up the jobs of a user, or of all users of a part.
type tally struct {
	jobs, failed         int
	workers, here, home  int
	passedOver, repeated int // jobs
	starts               []time.Duration
}

// sum sums up the jobs of a part, those of one user if one is named.
func sum(all []job, part, user string) (t tally) {
	for i := range all {
		j := &all[i]
		if j.Part != part || user != "" && j.User != user {
			continue
		}
		t.jobs++
		t.workers += j.Wanted
		t.here += j.count(j.here)
		t.home += j.count(j.home)
		if j.Failed != "" {
			t.failed++
		}
		if passedOver(j, all) > 0 {
			t.passedOver++
		}
		if j.Attempts > 1 {
			t.repeated++
		}
		if !j.Started.IsZero() {
			t.starts = append(t.starts, j.Started.Sub(j.Submitted))
		}
	}
	return t
}

// check returns what is not as it must be.
func check(parts []part, all []job) error {
	var errs []error
	for _, p := range parts {
		t := sum(all, p.plan, "")
		if t.jobs == 0 {
			errs = append(errs, fmt.Errorf("%s: no job was run", p.plan))
			continue
		}
		if t.failed > 0 {
			errs = append(errs, fmt.Errorf("%s: %d of %d jobs failed", p.plan, t.failed, t.jobs))
		}
		if t.passedOver > 0 {
			errs = append(errs, fmt.Errorf("%s: %d of %d jobs passed over idle slots of their own nodes", p.plan, t.passedOver, t.jobs))
		}
		if share := float64(t.home) / float64(t.workers); p.roomy && share < wantHome {
			errs = append(errs, fmt.Errorf("%s: %.1f %% of the workers at the own site, want %.0f", p.plan, 100*share, 100*wantHome))
		}
	}
	return errors.Join(errs...)
}
