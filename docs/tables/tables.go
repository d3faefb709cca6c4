// Package tables reads the tables of the documentation for the tests that hold
// it to what it says: a test names a row and shows what really happened.
package tables

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// Row is a row of a table.
type Row struct {
	Table string   // the heading above it
	Name  string   // the cell that tells it from the others of its table, as plain text
	cells []string // by column
	names []string // of the columns
}

// Seen is what a test has seen. Columns that a table does not have are not
// looked at.
type Seen struct {
	State  string
	Code   int
	Reason string // or the cause of how a worker ended
}

// naming lists columns by which rows are named, the first that a table has.
var naming = [...]string{"when", "what happens", "reason", "cause"}

var (
	divider = regexp.MustCompile(`^\|(\s*-+\s*\|)+$`)
	link    = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	quoted  = regexp.MustCompile("`([^`]*)`")
)

// Read returns the rows of all tables of a page.
func Read(path string) ([]Row, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var rows []Row
	var heading string
	var columns []string
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "#"):
			heading = plain(strings.TrimLeft(line, "# "))
		case !strings.HasPrefix(line, "|"):
			columns = nil
		case divider.MatchString(line):
		case columns == nil:
			columns = split(line)
		default:
			row := Row{Table: heading, names: columns, cells: split(line)}
			if len(row.cells) != len(columns) {
				return nil, fmt.Errorf("%s: %q has %d cells, want %d", path, line, len(row.cells), len(columns))
			}
			for _, name := range naming {
				if cell, ok := row.cell(name); ok {
					row.Name = plain(cell)
					break
				}
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// Find returns the only row whose name begins with the text.
func Find(rows []Row, name string) (Row, error) {
	var found []Row
	for _, r := range rows {
		if r.Name == name {
			return r, nil
		}
		if strings.HasPrefix(r.Name, name) {
			found = append(found, r)
		}
	}
	if len(found) != 1 {
		return Row{}, fmt.Errorf("%d rows begin with %q, want 1", len(found), name)
	}
	return found[0], nil
}

// Check finds a row of a page, and returns what differs between it and what was
// seen.
func Check(path, name string, seen Seen) error {
	rows, err := Read(path)
	if err != nil {
		return err
	}
	row, err := Find(rows, name)
	if err != nil {
		return err
	}
	return row.Check(seen)
}

// Check returns what differs between a row and what was seen.
func (r Row) Check(seen Seen) error {
	if want, ok := r.cell("state"); ok && want != seen.State && want != "any of these" {
		return fmt.Errorf("%s: state %s, want %s (%s)", r.Name, seen.State, want, seen.Reason)
	}
	if want, ok := r.cell("exit code"); ok && !codeFits(want, seen.Code) {
		return fmt.Errorf("%s: exit code %d, want %s (%s)", r.Name, seen.Code, want, seen.Reason)
	}
	for _, column := range []string{"reason", "reason while it lasts", "cause"} {
		if want, ok := r.cell(column); ok && !pattern(plain(want)).MatchString(seen.Reason) {
			return fmt.Errorf("%s: %s %q, want %s", r.Name, column, seen.Reason, want)
		}
	}
	return nil
}

func (r Row) cell(column string) (string, bool) {
	for i, name := range r.names {
		if name == column {
			return r.cells[i], true
		}
	}
	return "", false
}

func split(line string) []string {
	cells := strings.Split(strings.Trim(line, "|"), "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	return cells
}

// plain takes the marks from a text.
func plain(s string) string {
	return quoted.ReplaceAllString(link.ReplaceAllString(s, "$1"), "$1")
}

// codeFits reads "3", "1..255", "128+N" and words, which say nothing.
func codeFits(want string, code int) bool {
	first, last, ranged := strings.Cut(want, "..")
	if want == "128+N" {
		first, last, ranged = "129", "192", true
	}
	low, err := strconv.Atoi(first)
	if err != nil {
		return true
	}
	if !ranged {
		return code == low
	}
	high, err := strconv.Atoi(last)
	return err == nil && low <= code && code <= high
}

// places is what may stand in the place of something in an example.
var places = strings.NewReplacer(
	`NODE`, `\S+ \(z[a-z0-9]{4}\)`, `JOB`, `[a-z0-9]{5}@z[a-z0-9]{4}`, `SIGSEGV`, `SIG[A-Z0-9]+`, `…`, `.+`, `MiB`, `[KMG]?i?B`,
	`10m0s`, `[0-9.hms]+`, `30s`, `[0-9.hms]+`, `prog`, `\S+`, `/etc/passwd`, `\S+`, `afterok`, `after\w+`, `ended FAILED`, `ended [A-Z_]+`,
	`, 3 failed`, `(, \d+ failed)?`, `, 2 MiB/s, 3s left`, `(, [0-9.]+ [KMG]?i?B/s)?(, [0-9hms]+ left)?`,
	`rank 3`, `ranks? [0-9.()]+( \([0-9]+\))?`, `workers`, `workers?`, `jobs`, `jobs?`, `allows N`, `allows \d+`, ` to 2 nodes`, `( to \d+ nodes)?`,
	`0`, `\d+`, `980`, `\d+`, `1000`, `\d+`, `12`, `\d+`, `16:20:00 UTC`, `[0-9:]+ [A-Z0-9+-]+`, `200`, `\d+`, `125`, `\d+`, `40`, `\d+`,
	`1`, `\d+`, `2`, `\d+`, `3`, `\d+`, `4`, `\d+`, `5`, `\d+`, `7`, `\d+`, `8`, `\d+`,
)

// pattern is what fits an example of a reason: other numbers, names and times
// may stand there.
func pattern(example string) *regexp.Regexp {
	return regexp.MustCompile(`^` + places.Replace(regexp.QuoteMeta(example)) + `(; \d+ others? (was|were) stopped)?$`)
}
