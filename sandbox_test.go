package zorilla_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPromisesAreTested wants every test that docs/sandbox.md names to exist, and one for
// each row of the tables that name some.
func TestPromisesAreTested(t *testing.T) {
	functions, texts := map[string]bool{}, ""
	function := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || !strings.HasSuffix(path, "_test.go") && !strings.Contains(path, "workertest") {
			return err
		}
		text := read(t, path)
		for _, m := range function.FindAllStringSubmatch(text, -1) {
			functions[m[1]] = true
		}
		texts += text
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	exists := func(name string) bool {
		scripts, _ := filepath.Glob("cmd/zorilla/testdata/*/" + name + ".txtar") // the pattern is good
		_, err := os.Stat(name)
		switch {
		case strings.HasPrefix(name, "Test"):
			return functions[name]
		case strings.Contains(name, "/"):
			return err == nil
		case strings.Contains(name, " "): // a part of a test
			return strings.Contains(texts, `"`+name+`"`)
		}
		return len(scripts) == 1
	}
	named := regexp.MustCompile("`([^`]+)`")
	rows, column := 0, "" // the last one of the table, in which tests are named
	for line := range strings.Lines(read(t, "docs/sandbox.md")) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		cell := strings.TrimSpace(cells[len(cells)-1])
		switch {
		case !strings.HasPrefix(line, "|"):
			column = ""
			continue
		case column == "":
			column = cell
			continue
		case column != "test" || strings.HasPrefix(cell, "---"):
			continue
		}
		rows++
		tests := named.FindAllStringSubmatch(cell, -1)
		if len(tests) == 0 {
			t.Errorf("no test shows: %.100s", line)
		}
		for _, m := range tests {
			if !exists(m[1]) {
				t.Errorf("there is no test %s", m[1])
			}
		}
	}
	if rows < 40 {
		t.Errorf("%d promises", rows)
	}
}
