// Package columns has the columns of listings of jobs and nodes, a text for each cell, and what
// makes texts fit for a terminal: ps, nodes and status print them, top shows them on a whole
// terminal.
package columns

import (
	"strings"
	"time"
	"unicode"

	"github.com/charmbracelet/x/ansi"

	"zorilla/internal/units"
	"zorilla/jobs"
	"zorilla/node/api"
)

// None stands in a cell for what there is not, or nobody knows.
const None = "-"

// Clean makes a text that may come from other machines fit for one line of a terminal.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case !unicode.IsPrint(r):
			return '?'
		}
		return r
	}, s)
}

// Width is how many columns of a terminal a text takes: characters of East Asia and pictures
// two, marks upon the character before none. It has to be clean.
func Width(s string) int {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return ansi.StringWidth(s)
		}
	}
	return len(s) // most of a long table, and quick
}

// Cut makes a text clean, in which what steers a terminal would take no room, and cuts it if it
// takes more than so many columns.
func Cut(s string, limit int) string {
	s = Clean(s)
	if Width(s) <= limit {
		return s
	}
	return ansi.Truncate(s, limit, "…")
}

// colours of the states of jobs, workers and nodes.
var colours = map[string]string{
	string(jobs.Completed): "32",                                                                                                         // green
	string(jobs.Failed):    "31", string(jobs.Timeout): "31", string(jobs.NodeFail): "31", string(jobs.WorkerLost): "31", "broken": "31", // red
	string(jobs.Running): "36", string(jobs.WorkerRunning): "36", // cyan
	string(jobs.Pending): "33", string(jobs.Cancelled): "33", "paused": "33", "draining": "33", api.StateHours: "33", // yellow
}

// Paint colours a cell that is a state.
func Paint(cell string) string {
	if code := colours[cell]; code != "" {
		return Style(code, cell)
	}
	return cell
}

// Style has a terminal show a text in another way: bold, reversed, in a colour.
func Style(code, text string) string { return "\x1b[" + code + "m" + text + "\x1b[m" }

// RTT is a round trip time.
func RTT(d time.Duration) string {
	text, known := units.Millis(d)
	if !known {
		return None
	}
	return text + "ms"
}
