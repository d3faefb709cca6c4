package zorilla_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// maxColumns is the width of a line: a reader sees the whole statement, and the comment beside
// it, without moving a window sideways, also in a review with two versions next to each other.
const maxColumns = 160

// tabColumns is how wide a tab is shown.
const tabColumns = 4

// wide lists the packages that still have wider lines, with how many. A figure here may only fall.
var wide = map[string]int{
	"jobs/internal/record": 1,
	"jobs/process":         5,
	"node/api":             7,
	"node/api/apitest":     8,
	"transfer":             6,
	"transfer/exchange":    4,
	"transfer/storetest":   2,
	"transfer/swarm":       1,
}

func TestLinesFitTheWindow(t *testing.T) {
	got, where := map[string]int{}, map[string][]string{}
	for _, path := range sources(t) {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		src, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.ToSlash(filepath.Dir(path))
		n := 0
		for line := range strings.Lines(string(src)) {
			n++
			if columns(line) > maxColumns {
				got[dir]++
				where[dir] = append(where[dir], filepath.Base(path)+":"+strconv.Itoa(n))
			}
		}
	}
	for dir, n := range got {
		if n > wide[dir] {
			t.Errorf("%s: %d lines are wider than %d columns, at most %d may be: break one of %s", dir, n, maxColumns, wide[dir], strings.Join(where[dir], " "))
		}
	}
	for dir, most := range wide {
		switch n := got[dir]; {
		case n == 0:
			t.Errorf("%s: no line is wider than %d columns: remove it from the table", dir, maxColumns)
		case n < most:
			t.Errorf("%s: %d lines are wider than %d columns, the table says %d: lower the table", dir, n, maxColumns, most)
		}
	}
}

// columns returns how wide a line is shown.
func columns(line string) int {
	line = strings.TrimRight(line, "\r\n")
	return utf8.RuneCountInString(line) + strings.Count(line, "\t")*(tabColumns-1)
}
