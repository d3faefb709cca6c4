package primary

import (
	"fmt"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/record"
)

// deadlineOf is when a job is ended that has a deadline: then, or, if it has not started, when its walltime does not
// fit before it any more; zero = never.
func deadlineOf(r *record.Record) time.Time {
	at := r.Spec.Search.Deadline
	switch {
	case at.IsZero() || r.Cancelled != "":
		return time.Time{}
	case r.Started.IsZero() && r.Spec.Array == nil:
		return at.Add(-time.Duration(r.Spec.Walltime))
	}
	return at
}

// endAtDeadline ends the job: one that has started as if a user had cancelled it, so that what it has made is here.
func (p *Primary) endAtDeadline(now time.Time) {
	if at := p.Rec.Spec.Search.Deadline; p.Rec.Started.IsZero() {
		text := "it has not started"
		if now.Before(at) {
			text = fmt.Sprintf("its walltime of %v does not fit before it any more", p.Rec.Spec.Walltime)
		}
		p.expect(now, p.look())
		p.End(now, jobs.Failed, fmt.Sprintf("missed its deadline: %s: %s", text, p.reason()), jobs.CodeZorilla)
	} else {
		p.Cancel(now, "its deadline has come", false)
	}
}
