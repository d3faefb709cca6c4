package primary

import (
	"fmt"
	"strings"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/record"
)

// setBack takes it that what waits count from was just now if it lies ahead: the clock has been set back since
// it was written down, and a wait of seconds would last for as many hours as that.
func setBack(rec *record.Record, now time.Time) {
	for _, at := range []*time.Time{&rec.Eligible, &rec.Lacking} {
		if at.After(now) {
			*at = now
		}
	}
}

// Unmet lists the dependencies that are not fulfilled yet.
func (l *ledger) Unmet() (list []jobs.Dependency) {
	for i, d := range l.Rec.Spec.After {
		if !l.Rec.Met[i] {
			list = append(list, d)
		}
	}
	return list
}

// Followed notes what has become of a job that this one waits for: its final
// state, or "" if nobody knows it any more.
func (p *Primary) Followed(now time.Time, job jobs.ID, state jobs.State) {
	if p.Rec.State.Final() {
		return
	}
	for i, d := range p.Rec.Spec.After {
		switch {
		case d.Job != job || p.Rec.Met[i]:
		case state == "":
			p.End(now, jobs.Failed, fmt.Sprintf("was not started: %s:%s: that job is not known any more", d.Kind, d.Job.Short()), jobs.CodeZorilla)
			return
		case !d.Met(state):
			p.End(now, jobs.Failed, fmt.Sprintf("was not started: %s:%s: that job ended %s", d.Kind, d.Job.Short(), state), jobs.CodeZorilla)
			return
		default:
			p.emit(record.Event{Kind: record.Followed, At: now, After: i + 1})
		}
	}
	p.Tick(now)
}

// begin has the job look for workers once its time has come.
func (l *ledger) begin(now time.Time) {
	if record.Early(&l.Rec) && !now.Before(l.Rec.Spec.Search.Begin) {
		l.emit(record.Event{Kind: record.Followed, At: now, After: l.Rec.Spec.Conditions()})
	}
}

// beginAt is when that is due; zero = it was, or is not wanted.
func (l *ledger) beginAt() time.Time {
	if !record.Early(&l.Rec) {
		return time.Time{}
	}
	return l.Rec.Spec.Search.Begin
}

// dependencyReason reports what the job waits for before it looks for workers.
func (l *ledger) dependencyReason() string {
	var text string
	if list := l.Unmet(); len(list) > 0 {
		text = fmt.Sprintf("waits for job %s to end (%s)", list[0].Job.Short(), list[0].Kind)
		if len(list) > 1 {
			text += fmt.Sprintf(" and %d more", len(list)-1)
		}
	}
	if record.Early(&l.Rec) {
		text = strings.TrimPrefix(text+"; begins at ", "; ") + l.Rec.Spec.Search.Begin.Local().Format(time.RFC3339)
	}
	return text
}

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

// missed says of a job that has not started how it misses its deadline.
func missed(now time.Time, r *record.Record) string {
	if now.Before(r.Spec.Search.Deadline) {
		return fmt.Sprintf("missed its deadline: its walltime of %v does not fit before it any more", r.Spec.Walltime)
	}
	return "missed its deadline: it has not started"
}
