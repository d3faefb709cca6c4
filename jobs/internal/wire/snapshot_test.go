package wire

import (
	"slices"
	"strings"
	"testing"

	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/transfer"
)

func TestSnapshotCheck(t *testing.T) {
	good := Snapshot{Job: jobs.ID("aaaaa").At(jobtest.Node(0)), RankAttempt: jobs.RankAttempt{Rank: 3, Attempt: 1}, Globs: []string{"out/*", "."}}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Snapshot){
		"no job":                  func(s *Snapshot) { s.Job = "last" },
		"a rank below 0":          func(s *Snapshot) { s.Rank = -1 },
		"a rank beyond all":       func(s *Snapshot) { s.Rank = jobs.MaxRanks },
		"an attempt below 0":      func(s *Snapshot) { s.Attempt = -1 },
		"nothing to look for":     func(s *Snapshot) { s.Globs = nil },
		"too much to look for":    func(s *Snapshot) { s.Globs = slices.Repeat([]string{"a"}, jobs.MaxGlobs+1) },
		"what is not in the work": func(s *Snapshot) { s.Globs = []string{"a", "../a"} },
		"an absolute path":        func(s *Snapshot) { s.Globs = []string{"/etc/passwd"} },
		"a path that is too long": func(s *Snapshot) { s.Globs = []string{strings.Repeat("a/", transfer.MaxPath)} },
	} {
		s := good
		change(&s)
		if s.Check() == nil {
			t.Errorf("%s: %+v is taken", name, s)
		}
	}
}
