package origin

import (
	"slices"
	"time"

	"zorilla/jobs"
)

// ended is a job that has ended, as far as it takes to find it: one of this origin, or
// another's that this node worked for.
type ended struct {
	at    time.Time
	row   row
	title []string // if it is in memory
	short *jobs.Summary
}

// wanted reports whether one of this origin is. What is not in memory is read if there is no
// other way to know.
func (e *ended) wanted(o *Jobs, q *jobs.Selection) bool {
	id, state := e.row.id(o.self.ID), e.row.state()
	if q.Wants(id, state, e.title...) {
		return true
	}
	if e.title != nil || !(&jobs.Selection{States: q.States}).Wants(id, state) {
		return false
	}
	p, err := readPast(o, e.row)
	return err == nil && q.Wants(id, state, p.Name)
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
		if e.wanted(a.own, &q) {
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
		for i := range found {
			if e := &found[i]; e.short == nil {
				if l := look(a.own, e.row); l.st != nil {
					s := l.st.Summary()
					e.short = &s
				}
			}
		}
	})
	for _, e := range found {
		if e.short != nil {
			d.Ended = append(d.Ended, *e.short)
		} else {
			tellAll(a.own, []listed{{row: e.row}}, func(st *jobs.Status) { d.Ended = append(d.Ended, st.Summary()) })
		}
	}
	return d
}

// all adds what has not ended here, and jobs of others, and returns those of this origin
// that have, by their end.
func all(o *Jobs, d *jobs.Selected, q *jobs.Selection) (own []ended) {
	own = make([]ended, len(o.archive.order))
	titles := map[string][]string{} // by what IDs begin with
	for id, p := range o.archive.near {
		titles[string(id[:len(row{}.name)])] = []string{p.Name}
	}
	for id, j := range o.jobs {
		titles[string(id[:len(row{}.name)])] = append([]string{j.Primary.Rec.Spec.Name}, j.Primary.Rec.Spec.Args...)
	}
	for i, r := range o.archive.order {
		own[i] = ended{at: r.end(), row: r, title: titles[string(r.name[:])]}
	}
	for _, j := range o.jobs {
		if !j.filed {
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
