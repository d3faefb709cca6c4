package primary

import (
	"strings"
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/internal/wire/wiretest"
	"zorilla/vicinity"
)

// While nodes prepare a job's workers, explain tells since when, which of them it waits for, and what
// they are at.
func TestExplainTellsWhatStagingWaitsFor(t *testing.T) {
	who := jobs.Label("n", jobtest.Node(2))
	for name, x := range map[string]struct {
		inputs int64
		change func(*wire.WorkerReport)
		says   bool
		want   string
	}{
		"fetching":  {4 << 30, func(w *wire.WorkerReport) { w.Fetched = 1 << 30 }, true, "fetches inputs, has 1 GiB of 4 GiB, no progress for 8s"},
		"silent":    {4 << 30, nil, false, "fetches inputs, has 0 B of 4 GiB, silent for 8s"},
		"no inputs": {0, nil, true, "prepares 1 worker, no progress for 8s"},
	} {
		t.Run(name, func(t *testing.T) {
			c := granted(t, jobs.Spec{})
			c.p.Staged.Total = x.inputs
			said := func(want string) {
				t.Helper()
				e := c.p.Explain(c.now)
				if !strings.HasSuffix(e.Summary, ": "+who+" "+want) {
					t.Errorf("the summary is %q, want that it ends with %q", e.Summary, want)
				}
				c.said(2, "taken for this job: "+want)
				c.said(1, "taken for this job")
			}
			if x.says {
				c.says(wiretest.RA(1, 1), jobs.WorkerPreparing, x.change)
			}
			before, _, _ := strings.Cut(x.want, ", no progress")
			before, _, _ = strings.Cut(before, ", silent")
			said(before)
			for range 4 {
				c.after(wire.ReportEvery)
				c.report(1, jobs.WorkerReady, 0, wiretest.RA(0, 1))
				if x.says {
					c.says(wiretest.RA(1, 1), jobs.WorkerPreparing, x.change)
				}
			}
			said(x.want)
			if e := c.p.Explain(c.now.Add(2 * time.Minute)); !strings.Contains(e.Summary, ", after 2m08s: ") {
				t.Errorf("the summary is %q, want since when", e.Summary)
			}
			c.says(wiretest.RA(1, 1), jobs.WorkerReady, nil)
			c.said(2, "taken for this job")
			if e := c.p.Explain(c.now); strings.Contains(e.Summary, who) {
				t.Errorf("the summary is %q when nothing is waited for", e.Summary)
			}
		})
	}
}

// However many nodes are late, a few of them are named.
func TestFewLateNodesAreNamed(t *testing.T) {
	now := time.Unix(1000, 0)
	ls, late := Leases{}, map[vicinity.ID]string{}
	for i := range maxLate + 2 {
		ls.at(jobtest.Node(i)).granted = now.Add(time.Duration(-i) * time.Second)
		late[jobtest.Node(i)] = "is late"
	}
	text := ls.lateText(now, &record.Record{}, late)
	if !strings.HasPrefix(text, "after 4s: ") || strings.Count(text, "is late") != maxLate || !strings.HasSuffix(text, "; and 2 more") {
		t.Errorf("says %q", text)
	}
}
