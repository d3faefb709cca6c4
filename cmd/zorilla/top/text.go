package top

import (
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"

	"zorilla/cmd/zorilla/columns"
	"zorilla/jobs"
)

// text is what is shown of a job, or of a node.
type text struct {
	job    jobs.ID // "" = it is about a node
	title  string
	log    bool // its output, which goes on; else its status
	follow bool // the end is seen
	ended  bool // nothing follows
	err    error
	whole  []string
	lines  []string // the whole, in lines of the terminal
	width  int      // of these
	first  int      // that is seen
}

// fill takes the whole text; about whom it is reports whether it is still wanted.
func (s *screen) fill(job jobs.ID, lines []string, err error) {
	if t := s.text; t != nil && t.job == job && !t.log {
		t.whole, t.err, t.width = lines, err, 0
		t.fit(s.width, s.textRows())
	}
}

// maxLines bounds the lines of output that are kept; older ones are left out.
const maxLines = 5000

// follow takes lines of output.
func (s *screen) follow(job jobs.ID, lines []string, ended bool, err error) {
	t := s.text
	if t == nil || t.job != job || !t.log {
		return
	}
	t.whole = append(t.whole, lines...)
	for _, line := range lines {
		t.lines = append(t.lines, wrapped(line, t.width)...)
	}
	if drop := len(t.whole) - maxLines; drop > 0 {
		t.whole = append([]string(nil), t.whole[drop:]...)
	}
	if drop := len(t.lines) - maxLines; drop > 0 {
		t.lines = append([]string(nil), t.lines[drop:]...)
		t.first = max(0, t.first-drop)
	}
	t.ended, t.err = ended, err
	t.fit(s.width, s.textRows())
}

// fit has lines be as wide as the terminal, and the window be where there are some.
func (t *text) fit(width, rows int) {
	if t.width != width {
		t.width, t.lines = width, nil
		for _, line := range t.whole {
			t.lines = append(t.lines, wrapped(line, width)...)
		}
	}
	last := max(0, len(t.lines)-rows)
	if t.follow {
		t.first = last
	}
	t.first = max(0, min(t.first, last))
}

// wrapped cuts a line into such as a terminal has.
func wrapped(line string, width int) []string {
	if width < 1 || ansi.StringWidth(line) <= width {
		return []string{line}
	}
	return strings.Split(ansi.Hardwrap(line, width, true), "\n")
}

// move moves the window; at its end it stays there when lines come.
func (t *text) move(by, rows int) {
	t.follow = false
	t.first += by
	t.fit(t.width, rows)
	t.follow = t.log && t.first >= len(t.lines)-rows
}

// tabStop is how many columns of a terminal lie between places that tabs lead to.
const tabStop = 8

// outputLine makes a line of a program's output fit for a terminal: what would colour it, or
// move its cursor, is left out, and tabs are blanks.
func outputLine(s string) string {
	s = ansi.Strip(s)
	if i := strings.LastIndexByte(strings.TrimRight(s, "\r"), '\r'); i >= 0 { // written over
		s = s[i+1:]
	}
	before := "" // since the last tab
	var b strings.Builder
	for i, part := range strings.Split(strings.TrimRight(s, "\r"), "\t") {
		if i > 0 {
			b.WriteString(strings.Repeat(" ", tabStop-columns.Width(before)%tabStop))
		}
		before = strings.Map(func(r rune) rune {
			if !unicode.IsPrint(r) {
				return -1
			}
			return r
		}, part)
		b.WriteString(before)
	}
	return b.String()
}
