// Package top shows a network and its jobs on a whole terminal, as they change.
//
// A screen is the core: what a node has told and what keys were pressed go in, what is to be
// done and what is to be seen comes out. It has no terminal, clock or connection. The shell,
// Run, has them, by way of bubbletea.
package top

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"zorilla/cmd/zorilla/columns"
	"zorilla/cmd/zorilla/selector"
	"zorilla/jobs"
	"zorilla/node/api"
	"zorilla/vicinity"
)

// news is what a node told.
type news struct {
	at    time.Time
	nodes []api.NodeInfo // the node itself is first
	jobs  []jobs.Summary
	err   error // it did not tell; the rest is empty then
}

// deed is what a screen wants done.
type deed int

const (
	nothing deed = iota
	quit
	suspend
	refresh    // ask the node at once
	cancel     // end a job
	showStatus // tell all of a job, now and with each news
	showLog    // follow the output of a job
	leave      // what is shown of a job is not looked at any more
)

// want is a deed about a job.
type want struct {
	deed deed
	job  jobs.ID
}

// tab is one of the two lists.
type tab int

const (
	jobTab tab = iota
	nodeTab
	tabs
)

// list is where the user is in one of them. The selection stays with what it is about when
// the order changes.
type list struct {
	selected string
	at       int // its row, as last seen
	first    int // the row at the top of the screen
	filter   string
}

// screen is what the user sees.
type screen struct {
	colour        bool
	width, height int
	now           news                   // the last good one
	names         map[vicinity.ID]string // of its nodes
	err           error                  // since then
	tab           tab                    // the list that is seen, or below the text
	lists         [tabs]list
	all           bool    // also all jobs that have ended
	typing        bool    // the filter
	ask           jobs.ID // whether to cancel it
	note          string  // of what was done, until the next key
	text          *text   // nil = the list is seen
	listed        [tabs][]row
}

func newScreen(colour bool) *screen {
	return &screen{colour: colour, width: 80, height: 24}
}

// update takes an answer of the node. Answers may overtake each other: one to an earlier question
// is dropped.
func (s *screen) update(n news) want {
	if n.at.Before(s.now.at) {
		return want{}
	}
	if s.err = n.err; n.err != nil {
		return want{}
	}
	s.now = n
	s.names = map[vicinity.ID]string{}
	for i := range n.nodes {
		s.names[n.nodes[i].ID] = n.nodes[i].Name
	}
	s.clamp()
	if s.text != nil && s.text.job != "" && !s.text.log {
		return want{showStatus, s.text.job}
	}
	return want{}
}

// resize takes the size of the terminal.
func (s *screen) resize(width, height int) {
	s.width, s.height = max(width, 1), max(height, 1)
	s.clamp()
}

// said takes what became of a deed.
func (s *screen) said(note string) { s.note = note }

// row is one of a list.
type row struct {
	key   string // its whole ID
	id    string // as it is shown
	words string // that a filter looks at
	job   *jobs.Summary
	node  *api.NodeInfo
}

// rows are those of a list that its filter lets through, as of the last clamp.
func (s *screen) rows(t tab) []row { return s.listed[t] }

// find makes the rows of a list.
func (s *screen) find(t tab) (out []row) {
	filter := strings.ToLower(s.lists[t].filter)
	add := func(r row) {
		if strings.Contains(strings.ToLower(r.words), filter) {
			out = append(out, r)
		}
	}
	if t == nodeTab {
		for i := range s.now.nodes {
			n := &s.now.nodes[i]
			words := []string{string(n.ID), n.Name, n.Site, columns.State(n), n.Platform}
			for k, v := range n.Labels {
				words = append(words, k+"="+v)
			}
			add(row{key: string(n.ID), id: n.ID.Short(), node: n, words: strings.Join(words, " ")})
		}
		return out
	}
	want := selector.Selection{Ended: selector.Recent}
	if s.all {
		want.Ended = -1
	}
	for _, i := range inOrder(s.now.jobs, want.Of(s.now.jobs)) {
		st := &s.now.jobs[i]
		words := append([]string{string(st.ID), st.Name, string(st.State), columns.Why(*st)}, st.Args...)
		add(row{key: string(st.ID), job: st, words: strings.Join(words, " ")})
	}
	for i, short := range jobs.DistinctOf(out, func(r row) jobs.ID { return r.job.ID }) {
		out[i].id = short
	}
	return out
}

// inOrder has jobs that have not ended first, and of both the newest.
func inOrder(list []jobs.Summary, at []int) []int {
	slices.SortStableFunc(at, func(i, j int) int {
		a, b := &list[i], &list[j]
		if a.State.Final() != b.State.Final() {
			if b.State.Final() {
				return -1
			}
			return 1
		}
		return cmp.Or(b.Ended.Compare(a.Ended), b.Submitted.Compare(a.Submitted))
	})
	return at
}

// clamp moves the selection and the window of each list to where there are rows.
func (s *screen) clamp() {
	for t := range tabs {
		s.listed[t] = s.find(t)
		l, rows := &s.lists[t], s.rows(t)
		at := slices.IndexFunc(rows, func(r row) bool { return r.key == l.selected })
		if at < 0 { // it is gone: what has taken its place
			at = min(l.at, len(rows)-1)
		}
		s.choose(t, rows, at)
	}
	if s.text != nil {
		s.text.fit(s.width, s.textRows())
	}
}

// choose selects a row.
func (s *screen) choose(t tab, rows []row, at int) {
	l := &s.lists[t]
	l.at = max(0, min(at, len(rows)-1))
	if len(rows) == 0 {
		l.first, l.at = 0, 0
		return
	}
	l.selected = rows[l.at].key
	seen := s.listRows()
	l.first = max(0, min(l.first, l.at, len(rows)-seen))
	l.first = max(l.first, l.at-seen+1)
}

// selected is the row that keys are about, or nil.
func (s *screen) selected() *row {
	rows, l := s.rows(s.tab), s.lists[s.tab]
	if l.at >= len(rows) {
		return nil
	}
	return &rows[l.at]
}

// job returns what is known of a job.
func (s *screen) job(id jobs.ID) *jobs.Summary {
	for i := range s.now.jobs {
		if s.now.jobs[i].ID == id {
			return &s.now.jobs[i]
		}
	}
	return nil
}
