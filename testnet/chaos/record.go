package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"zorilla/jobs"
	"zorilla/testnet/hosts/lab"
)

// record is what is known of a story so far. Its methods may be called from any
// goroutine.
type record struct {
	begin time.Time // of the story

	mu     sync.Mutex // guards what follows
	story  []*order
	ids    map[int]jobs.ID
	ends   map[jobs.ID]jobs.Status // as they were told first
	wrong  []string
	deeds  map[deed]int
	broken map[jobs.ID]bool // was not fed all of its standard input
	failed map[jobs.ID]bool // jobs of which more is to be told
}

func newRecord() *record {
	return &record{begin: time.Now(), ids: map[int]jobs.ID{}, ends: map[jobs.ID]jobs.Status{},
		deeds: map[deed]int{}, broken: map[jobs.ID]bool{}, failed: map[jobs.ID]bool{}}
}

// log writes a line of the story.
func (r *record) log(host, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Printf("%7s  %-7s  %s\n", seconds(time.Since(r.begin)), host, fmt.Sprintf(format, args...))
}

// blame notes that something is wrong.
func (r *record) blame(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	r.log("-", "WRONG: %s", text)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.wrong) < 1000 {
		r.wrong = append(r.wrong, text)
	}
}

// blameJob does so about a job, of which the report tells more.
func (r *record) blameJob(j *order, st *jobs.Status, text string) {
	r.blame("job %d (%s) %s of %s: %s", j.number, j.kind, st.ID, j.origin, text)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed[st.ID] = true
}

// accepted notes that a job was.
func (r *record) accepted(j *order, id jobs.ID) {
	r.mu.Lock()
	r.ids[j.number] = id
	r.mu.Unlock()
	r.log(j.origin, "job %d is %s: %s, -n %d..%d -c %d", j.number, id, j.kind, j.spec.Min, j.spec.Max, j.spec.Slots)
}

// idOf returns the ID of a job of the story, "" if it has not been accepted yet.
func (r *record) idOf(number int) jobs.ID {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ids[number]
}

// open reports jobs that have not ended, "" if all have.
func (r *record) open() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var open []string
	for _, j := range r.story {
		if id := r.ids[j.number]; id == "" {
			open = append(open, fmt.Sprintf("job %d (%s) was not submitted", j.number, j.kind))
		} else if _, ended := r.ends[id]; !ended {
			open = append(open, fmt.Sprintf("job %d (%s) is %s", j.number, j.kind, id))
			r.failed[id] = true
		}
	}
	if len(open) == 0 {
		clear(r.failed)
	}
	return strings.Join(open[:min(len(open), 10)], "; ")
}

// seenJobs are those of an origin that it must not forget.
type seenJobs map[jobs.ID]bool

// note notes what an origin tells of its jobs. What it has told of an end it must
// tell for ever.
func (r *record) note(n *lab.Node, list []jobs.Status, seen seenJobs) {
	told := seenJobs{}
	for _, st := range list {
		if st.LastKnown || !n.Owns(&st) {
			continue
		}
		told[st.ID] = true
		r.mu.Lock()
		before, ended := r.ends[st.ID]
		if !ended && st.State.Final() {
			r.ends[st.ID] = st
		}
		r.mu.Unlock()
		switch {
		case ended && (before.State != st.State || before.ExitCode != st.ExitCode || before.Reason != st.Reason):
			r.blame("%s told that %s ended %s with %d (%s), and now %s with %d (%s)",
				n.Name, st.ID, before.State, before.ExitCode, before.Reason, st.State, st.ExitCode, st.Reason)
		case !ended && st.State.Final():
			r.log(n.Name, "%s (%s) ended %s with %d after %s %s", st.ID, st.Spec.Name, st.State, st.ExitCode, seconds(st.Ended.Sub(st.Submitted)), st.Reason)
		}
	}
	for id := range seen {
		if !told[id] {
			r.blame("%s has forgotten job %s", n.Name, id)
			delete(seen, id)
		}
	}
	maps.Copy(seen, told)
}

// summary prints how the jobs of each kind ended, and what was done to the nodes.
func (r *record) summary() {
	r.mu.Lock()
	defer r.mu.Unlock()
	ends := map[string]map[jobs.State]int{}
	took := map[string]time.Duration{}
	for _, j := range r.story {
		if ends[j.kind] == nil {
			ends[j.kind] = map[jobs.State]int{}
		}
		st, ended := r.ends[r.ids[j.number]]
		if !ended {
			st.State = "open"
		} else {
			took[j.kind] = max(took[j.kind], st.Ended.Sub(st.Submitted))
		}
		ends[j.kind][st.State]++
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nKIND\tENDS\tLONGEST")
	for _, kind := range slices.Sorted(maps.Keys(ends)) {
		var list []string
		for _, state := range slices.Sorted(maps.Keys(ends[kind])) {
			list = append(list, fmt.Sprintf("%d %s", ends[kind][state], state))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", kind, strings.Join(list, ", "), seconds(took[kind]))
	}
	fmt.Fprintln(w, "\nTORMENT\tTIMES\t")
	for _, d := range slices.Sorted(maps.Keys(r.deeds)) {
		fmt.Fprintf(w, "%s\t%d\t\n", d, r.deeds[d])
	}
	_ = w.Flush() // like any print
	fmt.Println()
}
