package top

import (
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"zorilla/cmd/zorilla/columns"
	"zorilla/internal/units"
	"zorilla/jobs"
	"zorilla/node/api"
)

// listRows and textRows are how many lines there are for a list, below its headings, and for
// a text.
func (s *screen) listRows() int { return max(1, s.height-5) }
func (s *screen) textRows() int { return max(1, s.height-3) }

// view is the whole screen: as many lines as the terminal has, none of which is wider.
func (s *screen) view() string {
	var lines []string
	lines = append(lines, s.head())
	if s.text != nil {
		lines = append(lines, s.bold(s.text.title))
		t := s.text
		lines = append(lines, t.lines[t.first:min(len(t.lines), t.first+s.textRows())]...)
	} else {
		lines = append(lines, s.tabLine())
		lines = append(lines, s.listLines()...)
	}
	for len(lines) < s.height-1 {
		lines = append(lines, "")
	}
	lines = append(lines[:max(0, min(len(lines), s.height-1))], s.foot())
	for i := range lines {
		lines[i] = ansi.Truncate(lines[i], s.width, "…")
	}
	return strings.Join(lines, "\n")
}

// head sums up the network.
func (s *screen) head() string {
	if len(s.now.nodes) == 0 {
		return s.bold(" zorilla top")
	}
	t := api.Sum(s.now.nodes)
	var active, waits int
	for i := range s.now.jobs {
		switch st := &s.now.jobs[i]; {
		case st.State == jobs.Pending:
			waits++
		case !st.State.Final():
			active++
		}
	}
	self := s.now.nodes[0]
	parts := []string{columns.Clean(jobs.Label(self.Name, self.ID)),
		units.Count(len(s.now.nodes), "node", "nodes"), fmt.Sprintf("%d/%d slots busy", t.Busy, t.Slots)}
	if t.Known < t.Nodes {
		parts[2] += fmt.Sprintf(" (of %d nodes)", t.Known)
	}
	parts = append(parts, fmt.Sprintf("%d active, %d waiting", active, waits))
	if t.Measured > 0 {
		parts = append(parts, fmt.Sprintf("load %.1f", t.Load), fmt.Sprintf("%s of %s used", units.Bytes(t.Memory-t.Free), units.Bytes(t.Memory)))
	}
	clock := s.now.at.Format(time.TimeOnly)
	for len(parts) > 2 && ansi.StringWidth(strings.Join(parts, "  "))+len(clock)+3 > s.width {
		parts = parts[:len(parts)-1]
	}
	left := " " + s.bold(parts[0]) + "  " + strings.Join(parts[1:], "  ")
	return left + strings.Repeat(" ", max(2, s.width-ansi.StringWidth(left)-len(clock))) + clock
}

// tabLine names the two lists, and reports what is left out.
func (s *screen) tabLine() string {
	var b strings.Builder
	for t, name := range []string{"Jobs", "Nodes"} {
		label := fmt.Sprintf(" %s %d ", name, len(s.rows(tab(t))))
		if tab(t) == s.tab {
			label = s.reverse(label)
		}
		b.WriteString(label + " ")
	}
	switch l := s.lists[s.tab]; {
	case s.typing:
		b.WriteString(" /" + l.filter + "_")
	case l.filter != "":
		b.WriteString(" only what has: " + l.filter)
	}
	return strings.TrimRight(b.String(), " ")
}

// listLines are the headings, the rows and what is known of the selected one.
func (s *screen) listLines() []string {
	rows, l := s.rows(s.tab), s.lists[s.tab]
	table := s.jobColumns()
	if s.tab == nodeTab {
		table = s.nodeColumns()
	}
	lines := s.tableOf(table, rows, l)
	for len(lines) < 1+s.listRows() {
		lines = append(lines, "")
	}
	if len(rows) == 0 {
		lines[1] = s.dim("  " + s.empty())
	}
	return append(lines, s.detail())
}

// empty says why a list has nothing.
func (s *screen) empty() string {
	switch {
	case s.lists[s.tab].filter != "":
		return "nothing has that: esc shows all"
	case s.tab == jobTab:
		return "no jobs: 'zorilla run -l -n 2 hostname' is one"
	}
	return "no nodes"
}

// detail is one line about what is selected.
func (s *screen) detail() string {
	r := s.selected()
	switch {
	case r == nil:
		return ""
	case r.node != nil:
		return s.dim(" " + columns.Clean(strings.Join(nodeDetail(r.node), "  ")))
	}
	parts := []string{strings.Join(r.job.Args, " ")}
	if why := columns.Why(*r.job); why != "" {
		parts = []string{why, parts[0]}
	}
	return s.dim(" " + columns.Clean(strings.Join(parts, "  ")))
}

// foot is what is asked, what happened, or what keys do.
func (s *screen) foot() string {
	switch {
	case s.ask != "":
		name := ""
		if st := s.job(s.ask); st != nil {
			name = " (" + columns.Cut(columns.Title(st.Name, st.Args), 40) + ")"
		}
		return s.reverse(" end job " + s.ask.Short() + name + "? y: yes, any other key: no ")
	case s.note != "":
		return s.bold(" " + columns.Clean(s.note))
	case s.err != nil:
		return s.red(" " + columns.Clean(s.err.Error()) + ": asking again")
	case s.typing:
		return s.dim(" type what is to be seen  enter keeps it  esc shows all")
	case s.text != nil:
		return s.dim(s.textKeys())
	case s.tab == nodeTab:
		return s.dim(" q quit  tab jobs  ↑↓ select  enter more  / filter")
	}
	return s.dim(" q quit  tab nodes  ↑↓ select  enter status  l log  c cancel  / filter  a " + map[bool]string{false: "all", true: "fewer"}[s.all])
}

func (s *screen) textKeys() string {
	t := s.text
	keys := " q back  ↑↓ scroll"
	switch {
	case t.job == "":
	case t.log:
		keys += "  enter status"
	default:
		keys += "  l log"
	}
	if st := s.job(t.job); st != nil && !st.State.Final() {
		keys += "  c cancel"
	}
	switch {
	case t.err != nil:
		keys += "  " + columns.Clean(t.err.Error())
	case t.log && t.ended:
		keys += "  (nothing follows)"
	case t.log && t.follow:
		keys += "  (following)"
	case t.log:
		keys += "  G to the end"
	}
	return keys
}

func (s *screen) bold(text string) string    { return columns.Style("1", text) }
func (s *screen) dim(text string) string     { return columns.Style("2", text) }
func (s *screen) reverse(text string) string { return columns.Style("7", text) }

func (s *screen) red(text string) string {
	if !s.colour {
		return text
	}
	return columns.Style("31", text)
}
