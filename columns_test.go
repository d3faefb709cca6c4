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
	"cmd/zorilla":                  58,
	"cmd/zorilla/config":           1,
	"cmd/zorilla/doctor":           11,
	"cmd/zorilla/hint":             9,
	"cmd/zorilla/top":              2,
	"docs/tables":                  1,
	"examples/async":               1,
	"internal/codec":               1,
	"internal/reserved":            4,
	"jobs":                         2,
	"jobs/agent":                   5,
	"jobs/gpu":                     2,
	"jobs/internal/claims":         2,
	"jobs/internal/core":           1,
	"jobs/internal/executor":       9,
	"jobs/internal/origin":         7,
	"jobs/internal/participant":    2,
	"jobs/internal/peer":           1,
	"jobs/internal/primary":        8,
	"jobs/internal/record":         2,
	"jobs/internal/search":         1,
	"jobs/internal/wire":           7,
	"jobs/internal/wire/wiretest":  5,
	"jobs/journal":                 3,
	"jobs/launch":                  1,
	"jobs/model":                   1,
	"jobs/placement":               1,
	"jobs/process":                 5,
	"jobs/reach":                   1,
	"jobs/sandbox":                 3,
	"jobs/session/lead":            1,
	"jobs/trees":                   1,
	"node":                         14,
	"node/api":                     7,
	"node/api/apitest":             7,
	"node/gossip":                  3,
	"node/web":                     23,
	"testnet/chaos":                9,
	"testnet/experiments/crowd":    4,
	"testnet/experiments/fill":     2,
	"testnet/experiments/floods":   3,
	"testnet/experiments/kernels":  3,
	"testnet/experiments/loops":    4,
	"testnet/experiments/many":     1,
	"testnet/experiments/search":   7,
	"testnet/experiments/vicinity": 5,
	"testnet/experiments/whole":    5,
	"transfer":                     6,
	"transfer/exchange":            4,
	"transfer/swarm":               1,
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
