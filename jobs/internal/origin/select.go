package origin

import (
	"slices"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/record"
)

// ended is a job that has ended, as far as it takes to find it: one of this origin, or
// another's that this node worked for.
type ended struct {
	at    time.Time
	past  *record.Past
	spec  *jobs.Spec // of past, if it is in memory
	short *jobs.Summary
}

// wanted reports whether one of this origin is.
func (e *ended) wanted(q *jobs.Selection) bool {
	if e.spec == nil {
		return q.Wants(e.past.ID, e.past.State, e.past.Name)
	}
	return q.Wants(e.past.ID, e.past.State, append([]string{e.spec.Name}, e.spec.Args...)...)
}

// Select lists jobs of List, however many have ended. The loop is held for no longer than
// it takes to note where they are; what is looked at outside of it never changes.
func (a *API) Select(q jobs.Selection) (d jobs.Selected) {
	var own []ended
	a.own.loop.Call(func() { own = all(a.own, &d, &q) })
	d.Sort()
	d.Over += len(own)
	var found []ended
	for i := range d.Ended {
		found = append(found, ended{at: d.Ended[i].Ended, short: &d.Ended[i]})
	}
	for _, e := range slices.Backward(own) {
		if e.wanted(&q) {
			found = append(found, e)
		}
	}
	if len(d.Ended) > 0 { // else they are in order
		slices.SortStableFunc(found, func(a, b ended) int { return b.at.Compare(a.at) })
	}
	d.Found, d.Ended = len(found), nil
	found = found[min(max(q.Skip, 0), len(found)):]
	found = found[:min(max(q.Limit, 0), len(found))]
	a.own.loop.Call(func() {
		for _, e := range found {
			if e.short == nil {
				s := summary(a.own, e.past)
				e.short = &s
			}
			d.Ended = append(d.Ended, *e.short)
		}
	})
	return d
}

// all adds what has not ended here, and jobs of others, and returns those of this origin
// that have, by their end.
func all(o *Jobs, d *jobs.Selected, q *jobs.Selection) (own []ended) {
	own = make([]ended, len(o.archive.order))
	for i, p := range o.archive.order {
		own[i] = ended{at: record.TimeOfNanos(p.Ended), past: p}
		if j := o.jobs[p.ID]; j != nil {
			own[i].spec = &j.Primary.Rec.Spec
		}
	}
	for id, j := range o.jobs {
		if o.archive.all[id] == nil {
			st, _ := o.view(j)
			d.Add(q, st.Summary())
		}
	}
	for id, w := range o.core.Part.Works {
		if !o.knows(id) {
			st := w.Status(o.self, o.cfg.Written)
			d.Add(q, st.Summary())
		}
	}
	return own
}

// summary is what lists tell of a job that has ended.
func summary(o *Jobs, p *record.Past) jobs.Summary {
	st := p.Status(o.self.ID)
	if j := o.jobs[p.ID]; j != nil {
		st, _ = o.view(j)
	}
	return st.Summary()
}
