package zorilla_test

import (
	"os"
	"strings"
	"testing"
	"unicode/utf8"
)

// maxColumns is the width of a line: a reader sees the whole statement, and the comment beside
// it, without moving a window sideways, also in a review with two versions next to each other.
const maxColumns = 160

// tabColumns is how wide a tab is shown.
const tabColumns = 4

func TestLinesFitTheWindow(t *testing.T) {
	for _, path := range sources(t) {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		src, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for line := range strings.Lines(string(src)) {
			if n++; columns(line) > maxColumns {
				t.Errorf("%s:%d is wider than %d columns: break it", path, n, maxColumns)
			}
		}
	}
}

// columns returns how wide a line is shown.
func columns(line string) int {
	line = strings.TrimRight(line, "\r\n")
	return utf8.RuneCountInString(line) + strings.Count(line, "\t")*(tabColumns-1)
}
