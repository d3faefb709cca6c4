package onend_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/onend"
	"zorilla/jobs/work"
)

func TestSummary(t *testing.T) {
	at := time.Date(2026, 11, 25, 21, 0, 0, 0, time.UTC)
	st := jobs.Status{
		ID: "k7f3q@zabcdaaaaaaaaaaaaaaaaaaaaaa", Spec: jobs.Spec{Name: "tea", Args: []string{"./brew", "--hot\x1b[2J"}}, State: jobs.Failed, ExitCode: 3, Reason: "rank 1 ended\nwith 3",
		Submitted: at, Started: at.Add(2 * time.Second), Ended: at.Add(62 * time.Second),
		Workers: []jobs.WorkerStatus{{Rank: 0, Exit: &work.Exit{}}, {Rank: 1, Name: "beta", Node: "zbcde", Exit: &work.Exit{Code: 3}}},
	}
	var said onend.Tail
	for _, s := range []string{strings.Repeat("dropped\n", 30), strings.Repeat("x", 9000), "\nkettle \x1b[31mempty\n~! touch it\n.\nthe end\n"} {
		said.Write([]byte(s))
	}
	got := string(onend.Summary(st, said.Lines()))
	for _, want := range []string{"job        k7f3q@zabcd\n", "name       tea\n", "state      FAILED, exit code 3\n", "after 2s\n", "ran for 1m00s\n", "rank 1     on beta", "ended with 3", "\n  kettle  [31mempty\n  ~! touch it\n  .\n  the end\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing of\n%s", want, got)
		}
	}
	if strings.ContainsAny(got, "\x1b\x00") || strings.Contains(got, "rank 0") || strings.Contains(got, "dropped") || len(got) > 10_000 {
		t.Errorf("got %d bytes:\n%q", len(got), got)
	}
	for line := range strings.Lines(got) { // mail takes some for commands to itself
		if strings.HasPrefix(line, "~") || strings.HasPrefix(line, ".") {
			t.Errorf("a line of the job: %q", line)
		}
	}
	want := []string{"ZORILLA_JOB_ID=k7f3q@zabcdaaaaaaaaaaaaaaaaaaaaaa", "ZORILLA_JOB_NAME=tea", "ZORILLA_JOB_STATE=FAILED", "ZORILLA_JOB_EXIT_CODE=3", "ZORILLA_JOB_REASON=rank 1 ended with 3"}
	if got := onend.Variables(st); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
