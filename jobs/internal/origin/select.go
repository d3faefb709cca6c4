package origin

import (
	"cmp"
	"slices"

	"zorilla/jobs"
)

// ended is a job that has ended, as far as it takes to find it: one of this origin, or
// another's that this node worked for.
type ended struct {
	row   row
	short *jobs.Summary
}

// Select lists jobs of List, however many have ended. The loop is held for no longer than
// it takes to note where they are; what is looked at outside of it never changes.
func (a *API) Select(q jobs.Selection) (d jobs.Selected) {
	var own []row
	var known titles
	a.own.loop.Call(func() { own, known = all(a.own, &d, &q) })
	d.Sort()
	d.Over += len(own)
	var found []ended
	for i := range d.Ended {
		found = append(found, ended{row: row{ended: d.Ended[i].Ended.UnixNano()}, short: &d.Ended[i]})
	}
	for _, r := range slices.Backward(a.own.table.wanted(own, known, &q)) {
		found = append(found, ended{row: r})
	}
	if len(d.Ended) > 0 { // else they are in order
		slices.SortStableFunc(found, func(a, b ended) int { return cmp.Compare(b.row.ended, a.row.ended) })
	}
	d.Found, d.Ended = len(found), nil
	found = found[min(max(q.Skip, 0), len(found)):]
	found = found[:min(max(q.Limit, 0), len(found))]
	a.own.loop.Call(func() {
		for i := range found {
			if e := &found[i]; e.short == nil {
				if l := a.own.table.look(e.row); l.st != nil {
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
			a.own.table.eachStatus([]listed{{row: e.row}}, func(st *jobs.Status) { d.Ended = append(d.Ended, st.Summary()) })
		}
	}
	return d
}

// all adds what has not ended here, and jobs of others, and returns those of this origin
// that have, by their end, and the titles of those that are in memory.
func all(o *Jobs, d *jobs.Selected, q *jobs.Selection) (own []row, known titles) {
	add := func(st *jobs.Status) { d.Add(q, st.Summary()) }
	o.table.open(add)
	o.others(add)
	return slices.Clone(o.table.youngest(-1)), o.table.titles()
}
