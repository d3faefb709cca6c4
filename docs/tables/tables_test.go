package tables

import (
	"os"
	"path/filepath"
	"testing"
)

const page = "# Page\n\n## Ends\n\n| state | exit code | when | reason |\n|---|---|---|---|\n| FAILED | 128+N | a [rank](x.md) was `ended` | `rank 2 on NODE was ended by SIGSEGV (…)` |\n| DONE | 0 | all is well | |\n\n## Causes\n\n| cause | what |\n|---|---|\n| memory | too little |\n"

func TestRowsAreChecked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(path, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	rows, err := Read(path)
	if err != nil || len(rows) != 3 {
		t.Fatalf("%+v, %v", rows, err)
	}
	for _, c := range []struct {
		name string
		seen Seen
		ok   bool
	}{
		{"a rank was", Seen{"FAILED", 139, "rank 0 on node1 (zabcd) was ended by SIGKILL (killed)"}, true},
		{"a rank was", Seen{"FAILED", 139, "rank 10 on node1 (zabcd) was ended by SIGKILL (killed); 3 others were stopped"}, true},
		{"a rank was", Seen{"FAILED", 139, "rank 0 on node1 ended with 139"}, false},
		{"a rank was", Seen{"FAILED", 128, "rank 0 on node1 (zabcd) was ended by SIGKILL (killed)"}, false},
		{"a rank was ended", Seen{"DONE", 139, "rank 0 on node1 (zabcd) was ended by SIGKILL (killed)"}, false},
		{"all", Seen{"DONE", 0, ""}, true},
		{"all", Seen{"DONE", 0, "but why"}, false},
		{"memory", Seen{Code: 4, Reason: "memory"}, true},
		{"memory", Seen{Reason: "walltime"}, false},
	} {
		row, err := Find(rows, c.name)
		if err != nil {
			t.Fatal(err)
		}
		if err := row.Check(c.seen); (err == nil) != c.ok {
			t.Errorf("%s, %+v: %v", c.name, c.seen, err)
		}
	}
	for _, name := range []string{"", "a rank was lost"} {
		if row, err := Find(rows, name); err == nil {
			t.Errorf("found %+v for %q", row, name)
		}
	}
}
