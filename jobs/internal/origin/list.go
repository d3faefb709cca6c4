package origin

import (
	"fmt"
	"slices"
	"strings"

	"zorilla/jobs"
)

// Find returns the full ID of a job that this node originates or works for,
// named by its ID, a unique prefix of it, or "last".
func (a *API) Find(ref string) (jobs.ID, error) {
	if ref == "last" {
		var last jobs.ID
		switch running := a.own.loop.Call(func() { last = a.own.table.last.id }); {
		case !running:
			return "", jobs.ErrStopped
		case last == "":
			return "", fmt.Errorf("last job %w: none was submitted at this node", jobs.ErrNotFound)
		}
		return last, nil
	}
	found := a.Matching(ref)
	switch {
	case len(found) > 0:
	case a.own.loop.Stopped.Err() != nil:
		return "", jobs.ErrStopped
	default:
		return "", fmt.Errorf("job %.40q %w at this node, which knows names and first characters of its own jobs and of those that it works for now: "+
			"'zorilla ps --all --members' lists all",
			ref, jobs.ErrNotFound)
	}
	return jobs.Only(ref, found)
}

// Matching returns the jobs that this node originates or works for whose IDs
// begin with the prefix; none if it is empty.
func (a *API) Matching(prefix string) []jobs.ID {
	var found []jobs.ID
	if prefix == "" {
		return nil
	}
	a.own.loop.Call(func() {
		found = a.own.table.matching(prefix)
		for id := range a.own.core.Part.Works {
			if strings.HasPrefix(string(id), prefix) && !slices.Contains(found, id) {
				found = append(found, id)
			}
		}
	})
	return found
}

// Owns reports whether this node is the job's origin and remembers it. One that is
// stopping says so of any job: what is asked next is told that it stops.
func (a *API) Owns(id jobs.ID) (owns bool) {
	return !a.own.loop.Call(func() { owns = a.own.table.knows(id) }) || owns
}

// List returns the jobs that this node originates or works for, in the order of
// InOrder: of those that originate here and have ended at most so many as asked
// for, the youngest; negative = all. Of its own jobs a node tells nothing as a participant.
func (a *API) List(ended int) []jobs.Status {
	list := listAs(a.own, ended, func(st *jobs.Status) jobs.Status { return *st })
	slices.SortFunc(list, jobs.InOrder)
	return list
}

// Summaries lists the same jobs in short, in the order of jobs.SummariesInOrder.
func (a *API) Summaries(ended int) []jobs.Summary {
	list := listAs(a.own, ended, (*jobs.Status).Summary)
	slices.SortFunc(list, jobs.SummariesInOrder)
	return list
}

// listAs returns what is made of the statuses of the jobs of List, in no order. It may be
// called from any goroutine.
func listAs[T any](o *Jobs, ended int, of func(*jobs.Status) T) (list []T) {
	var past []listed
	o.loop.Call(func() {
		tell := func(st *jobs.Status) { list = append(list, of(st)) }
		order := o.table.youngest(ended)
		list = make([]T, 0, len(order)+len(o.core.Part.Works)) // about
		for _, r := range order {
			if l := o.table.look(r); l.st != nil {
				tell(l.st)
			} else {
				past = append(past, l)
			}
		}
		o.table.open(tell)
		o.others(tell)
	})
	o.table.eachStatus(past, func(st *jobs.Status) { list = append(list, of(st)) })
	return list
}

// others calls f with what this node knows of jobs of other origins that it works for. It runs in
// the loop.
func (o *Jobs) others(f func(*jobs.Status)) {
	for id, w := range o.core.Part.Works {
		if !o.table.knows(id) {
			st := w.Status(o.self, o.cfg.Written)
			f(&st)
		}
	}
}

// Results reports how much is kept of jobs that have ended.
func (a *API) Results() (r jobs.Results) {
	a.own.loop.Call(func() { r = a.own.table.results() })
	return r
}

// Read notes that somebody who uses this node has asked for the results of a job:
// waited for its end, read all of its output or fetched files.
func (a *API) Read(id jobs.ID) {
	a.own.loop.Post(func() { a.own.table.sawRead(id) })
}

// Remove forgets a job of this origin that has ended, with its results. It
// returns when that outlives the node.
func (a *API) Remove(id jobs.ID) error {
	var err error
	done := make(chan error, 2)
	ok := a.own.loop.Call(func() { err = a.own.table.remove(id, func(err error) { done <- err }) })
	switch {
	case !ok:
		return jobs.ErrStopped
	case err != nil:
		return err
	}
	select {
	case err := <-done:
		return err
	case <-a.own.loop.Stopped.Done():
		return jobs.ErrStopped
	}
}
