package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"zorilla/jobs"
)

const (
	// patience is how long a node may be away without an excuse for lost ranks.
	// Jobs wait 10 s, or 3 s after the others have declared a node dead, for
	// which they need at least 5 s.
	patience = 7 * time.Second
	// breather is what a node needs between two absences for them to count as
	// two: less may not be enough for a report.
	breather = 4 * time.Second
	// memory is how long before the end of a job that lost ranks its excuse may
	// lie.
	memory = 20 * time.Second
)

// absence is a time in which a node could not report, or could not be reported
// to.
type absence struct {
	why      deed
	from, to time.Time // to is zero while it lasts
}

// absences is what was done to the nodes. Its methods may be called from any
// goroutine.
type absences struct {
	mu     sync.Mutex // guards what follows
	hosts  map[string][]*absence
	killed map[jobs.ID]bool // a supervisor of the job was killed
}

func newAbsences() *absences {
	return &absences{hosts: map[string][]*absence{}, killed: map[jobs.ID]bool{}}
}

// begin notes that a host is away from now on, until the returned function is
// called.
func (a *absences) begin(host string, why deed, now time.Time) (end func(time.Time)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := &absence{why: why, from: now}
	a.hosts[host] = append(a.hosts[host], s)
	return func(now time.Time) {
		a.mu.Lock()
		defer a.mu.Unlock()
		s.to = now
	}
}

// supervisorKilled notes that nobody can know how a worker of the job ended.
func (a *absences) supervisorKilled(job jobs.ID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.killed[job] = true
}

// excuse returns why a job of the origin may have lost ranks at a host, or "". That
// was at its end, or at any time.
func (a *absences) excuse(st *jobs.Status, origin, host string, atEnd bool) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.killed[st.ID] {
		return "a supervisor of it was killed"
	}
	since := st.Ended.Add(-memory)
	if !atEnd || since.Before(st.Submitted) {
		since = st.Submitted
	}
	var spans []absence
	for _, s := range a.hosts[host] {
		switch {
		case s.why == deedCrash && s.overlaps(since, st.Ended):
			return fmt.Sprintf("%s had a power failure", host)
		case s.why == deedStop && !a.goodbyeLost(s, origin, host): // it is waited for
		default:
			spans = append(spans, *s)
		}
	}
	for _, s := range a.hosts[origin] {
		if host != origin && (s.why == deedCut || s.why == deedCutSite) { // who is cut off cannot tell
			spans = append(spans, *s)
		}
	}
	for _, s := range join(spans, st.Ended) {
		if s.to.Sub(s.from) >= patience && s.overlaps(since, st.Ended) {
			return fmt.Sprintf("%s was away for %s: %s", host, seconds(s.to.Sub(s.from)), s.why)
		}
	}
	return ""
}

// goodbyeLost reports whether a node that was stopped may not have been able to
// say that it comes back: it or the origin had other troubles then. The caller
// holds mu.
func (a *absences) goodbyeLost(stop *absence, origin, host string) bool {
	for _, h := range []string{origin, host} {
		for _, s := range a.hosts[h] {
			if s != stop && s.overlaps(stop.from.Add(-2*breather), stop.from.Add(breather)) {
				return true
			}
		}
	}
	return false
}

func (s *absence) overlaps(from, to time.Time) bool {
	return (to.IsZero() || s.from.Before(to)) && (s.to.IsZero() || s.to.After(from))
}

// join makes one of absences with little time between them. What lasts ends now.
func join(spans []absence, now time.Time) []absence {
	slices.SortFunc(spans, func(a, b absence) int { return cmp.Or(a.from.Compare(b.from), a.to.Compare(b.to)) })
	var list []absence
	for _, s := range spans {
		if s.to.IsZero() || s.to.After(now) {
			s.to = now
		}
		if n := len(list); n > 0 && s.from.Sub(list[n-1].to) < breather {
			l := &list[n-1]
			if s.to.After(l.to) {
				l.to = s.to
			}
			if !strings.Contains(string(l.why), string(s.why)) {
				l.why += ", " + s.why
			}
			continue
		}
		list = append(list, s)
	}
	return list
}
