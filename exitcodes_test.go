package zorilla_test

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"zorilla/docs/tables"
)

// TestEachRowOfTheExitCodesHasATest wants, for each row of docs/exit-codes.md, a
// line of a script (row 'NAME' ...) or of a test (wantRow(t, "NAME", ...)) that
// shows it, and no line for a row that is not there. The lines themselves compare
// what happens with the row.
func TestEachRowOfTheExitCodesHasATest(t *testing.T) {
	rows, err := tables.Read("docs/exit-codes.md")
	if err != nil || len(rows) < 50 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	shown := map[string]bool{}
	marks := map[string]*regexp.Regexp{
		".txtar": regexp.MustCompile(`(?m)^row '([^']+)'`),
		".go":    regexp.MustCompile(`(?m)^\s+wantRow\(t, "([^"]+)"`),
	}
	for _, dir := range []string{"cmd/zorilla", "jobs"} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			mark := marks[filepath.Ext(path)]
			if err != nil || mark == nil {
				return err
			}
			for _, m := range mark.FindAllStringSubmatch(read(t, path), -1) {
				row, err := tables.Find(rows, m[1])
				if err != nil {
					t.Errorf("%s: %v", path, err)
				}
				shown[row.Name] = true
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	names := map[string]bool{}
	for _, row := range rows {
		if names[row.Name] {
			t.Errorf("two rows are called %q: no test can tell them apart", row.Name)
		}
		names[row.Name] = true
		if !shown[row.Name] {
			t.Errorf("%s: no test shows the row %q", strings.ToLower(row.Table), row.Name)
		}
	}
}

// TestEachDeclineHasARow wants the reasons that nodes give in the table.
func TestEachDeclineHasARow(t *testing.T) {
	rows, err := tables.Read("docs/exit-codes.md")
	if err != nil {
		t.Fatal(err)
	}
	reasons := regexp.MustCompile(`(?m)^\s*Reason\w+\s*= "([^"]+)"`).FindAllStringSubmatch(read(t, "jobs/internal/wire/reasons.go"), -1)
	if len(reasons) < 11 {
		t.Errorf("%d reasons in jobs/internal/wire/reasons.go, want at least 11: have they moved?", len(reasons))
	}
	for _, m := range reasons {
		if row, err := tables.Find(rows, m[1]); err != nil || row.Name != m[1] {
			t.Errorf("docs/exit-codes.md has no row for the decline %q", m[1])
		}
	}
}
