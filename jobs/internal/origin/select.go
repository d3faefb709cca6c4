package origin

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"zorilla/jobs"
)

// ended is a job that has ended, as far as it takes to find it: one of this origin, or
// another's that this node worked for.
type ended struct {
	row   row
	short *jobs.Summary
}

// titles are those of the jobs that are in memory, by what their IDs begin with.
type titles map[[len(row{}.name)]byte][]string

// searched is what a text was last found in, of jobs that are not in memory: a page asks for the
// same text again and again, or for one that somebody goes on typing, and each time the journal
// would be read of all jobs.
type searched struct {
	lock sync.Mutex
	text string
	has  map[[len(row{}.name)]byte]bool // the title of a job never changes
}

// wanted returns those of the jobs that are, in their order. What is not in memory is read if
// there is no other way to know. It is called outside of the loop.
func (s *searched) wanted(t *table, rows []row, known titles, q *jobs.Selection) []row {
	other := func(r row) bool { return len(q.States) > 0 && !slices.Contains(q.States, r.state()) }
	if q.Text == "" {
		return slices.DeleteFunc(rows, other)
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	text, before := strings.ToLower(q.Text), s.has
	same, narrower := text == s.text, strings.Contains(text, s.text)
	s.text, s.has = text, map[[len(row{}.name)]byte]bool{}
	return slices.DeleteFunc(rows, func(r row) bool {
		id, state := r.id(t.self), r.state()
		has, read := before[r.name]
		read = read && (same || narrower && !has)
		if title, near := known[r.name]; near || q.Wants(id, state) {
			return !q.Wants(id, state, title...)
		} else if !read && other(r) {
			return true
		} else if !read {
			p, err := t.readPast(r)
			if err != nil {
				return true
			}
			has = (&jobs.Selection{Text: text}).Wants(id, state, p.Name)
		}
		s.has[r.name] = has
		return !has || other(r)
	})
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
	for _, r := range slices.Backward(a.own.table.searched.wanted(a.own.table, own, known, &q)) {
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
	return slices.Clone(o.table.archive.order), o.table.titles()
}

// titles returns those of the jobs that are in memory.
func (t *table) titles() titles {
	known := titles{}
	for id, p := range t.archive.near {
		known[nameOf(id)] = []string{p.Name}
	}
	for id, j := range t.jobs {
		known[nameOf(id)] = append([]string{j.Primary.Rec.Spec.Name}, j.Primary.Rec.Spec.Args...)
	}
	return known
}
