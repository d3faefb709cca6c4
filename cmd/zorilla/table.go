package main

import (
	"bytes"
	"io"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"

	"zorilla/internal/units"
	"zorilla/jobs"
)

// printTable writes rows with aligned columns, the first one being the
// heading. Colour is added where a cell is a job's or a worker's state.
// (text/tabwriter would count colours, and wide characters as one column.)
func (con *console) printTable(rows [][]string) error {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			row[i] = clean(cell)
			widths[i] = max(widths[i], columns(row[i]))
		}
	}
	colour := colours(con.stdout)
	var out []byte
	for _, row := range rows {
		for i, cell := range row {
			out = append(out, paint(cell, colour)...)
			for range widths[i] - columns(cell) + 2 {
				out = append(out, ' ')
			}
		}
		out = append(bytes.TrimRight(out, " "), '\n')
	}
	_, err := con.stdout.Write(out)
	return err
}

// columns is how many columns of a terminal a text takes: characters of East Asia
// and pictures two, marks upon the character before none.
func columns(s string) int {
	n := 0
	for _, r := range s {
		if r < utf8.RuneSelf { // most of a long table, and quick
			n++
			continue
		}
		kind := width.LookupRune(r).Kind()
		switch {
		case unicode.In(r, unicode.Mn, unicode.Me):
		case kind == width.EastAsianWide || kind == width.EastAsianFullwidth:
			n += 2
		default:
			n++
		}
	}
	return n
}

// section is a table after an empty line.
func (con *console) section(rows [][]string) error {
	if _, err := io.WriteString(con.stdout, "\n"); err != nil {
		return err
	}
	return con.printTable(rows)
}

func paint(cell string, colour bool) string {
	if !colour {
		return cell
	}
	code := ""
	switch cell {
	case string(jobs.Completed):
		code = "32" // green
	case string(jobs.Failed), string(jobs.Timeout), string(jobs.NodeFail), string(jobs.WorkerLost):
		code = "31" // red
	case string(jobs.Running), string(jobs.WorkerRunning):
		code = "36" // cyan
	case string(jobs.Pending), string(jobs.Cancelled):
		code = "33" // yellow
	default:
		return cell
	}
	return "\x1b[" + code + "m" + cell + "\x1b[0m"
}

// rtt writes a round trip time.
func rtt(d time.Duration) string {
	text, known := units.Millis(d)
	if !known {
		return "-"
	}
	return text + "ms"
}

// count writes "1 file", "2 files".
func count(n int, thing string) string { return units.Count(n, thing, thing+"s") }

// short cuts a text that takes more than so many columns.
func short(s string, limit int) string {
	if columns(s) <= limit {
		return s
	}
	r := []rune(s)
	for len(r) > 0 && columns(string(r)) >= limit {
		r = r[:len(r)-1]
	}
	return string(r) + "…"
}
