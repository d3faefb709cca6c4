package zorilla_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestDecisions wants the four parts in each record of docs/decisions, and each
// record in its index.
func TestDecisions(t *testing.T) {
	const dir = "docs/decisions"
	index := read(t, filepath.Join(dir, "README.md"))
	records, err := filepath.Glob(filepath.Join(dir, "[0-9]*.md"))
	if err != nil || len(records) < 8 {
		t.Fatalf("%d records, %v", len(records), err)
	}
	heading := regexp.MustCompile(`(?m)^## (.*)$`)
	date := regexp.MustCompile(`(?m)^## Date\n\n20\d\d-\d\d-\d\d`)
	for i, path := range records {
		name, text := filepath.Base(path), read(t, path)
		if prefix := fmt.Sprintf("%04d-", i+1); !strings.HasPrefix(name, prefix) {
			t.Errorf("%s: the next number is %s", name, prefix)
		}
		title, _, _ := strings.Cut(text, "\n")
		if row := fmt.Sprintf("| %d | [%s](%s) |", i+1, strings.TrimPrefix(title, fmt.Sprintf("# %d. ", i+1)), name); !strings.Contains(index, row) {
			t.Errorf("the index lacks %s", row)
		}
		var parts []string
		for _, m := range heading.FindAllStringSubmatch(text, -1) {
			parts = append(parts, m[1])
		}
		if want := []string{"Date", "Context", "Choice", "Rejected"}; !slices.Equal(parts, want) || !date.MatchString(text) {
			t.Errorf("%s has the parts %q, want %q, and a date", name, parts, want)
		}
	}
}

// TestPagesCanBeRead wants links of the pages to lead somewhere, and those that
// newcomers begin with to be short.
func TestPagesCanBeRead(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^):# ]+)(?:#[^)]*)?\)`)
	pages := []string{"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "PROTOCOL.md", "CHANGELOG.md"}
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md"} {
		more, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, more...)
	}
	for _, page := range pages {
		text := read(t, page)
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s leads to %s: %v", page, m[1], err)
			}
		}
		for i, line := range strings.Split(text, "\n") {
			if page == "ARCHITECTURE.md" && utf8.RuneCountInString(line) > 120 {
				t.Errorf("%s: line %d has more than 120 columns", page, i+1)
			}
		}
	}
	for page, most := range map[string]int{"CONTRIBUTING.md": 120, "README.md": 100} {
		if n := strings.Count(read(t, page), "\n"); n > most {
			t.Errorf("%s has %d lines, at most %d: what is beyond belongs into docs", page, n, most)
		}
	}
}
