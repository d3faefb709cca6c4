package origin

import (
	"testing"

	"zorilla/jobs"
	"zorilla/jobs/internal/core"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/output"
	"zorilla/jobs/internal/primary"
	"zorilla/jobs/journal"
	"zorilla/vicinity"
)

func TestEndIsToldWhenItIsDurable(t *testing.T) {
	self := vicinity.Member{ID: jobtest.Node(0)}
	p := primary.New(jobs.ID("aaaaa").At(self.ID), self, jobtest.Rand())
	p.Submit(jobtest.Start, jobs.Spec{Args: []string{"prog"}, Min: 1, Max: 1, Slots: 1}, 7)
	j := &job{Job: &core.Job{Primary: p, Steps: []*core.PendingStep{{}}}, output: &output.File{Spool: &output.Spool{}}, stdin: &output.Input{Spool: &output.Spool{}}}
	events := journal.NewMemory()
	_, before := j.view(events)
	p.Cancel(jobtest.Start, "cancelled by a user", false)
	st, version := j.view(events)
	if st.State.Final() || st.ExitCode != -1 || version < before {
		t.Fatalf("got %s with %d at version %d before the end is in the journal", st.State, st.ExitCode, version)
	}
	j.Steps = nil
	if st, after := j.view(events); st.State != jobs.Cancelled || after == version {
		t.Fatalf("got %s at version %d after %d", st.State, after, version)
	}
}
