package primary

import (
	"fmt"
	"slices"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/internal/timers"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/process"
	"zorilla/jobs/work"
	"zorilla/vicinity"
)

// What the primary does about participants that report, and get nowhere: their disk hangs, or
// their program. Silence is another matter, see silence.go.

const (
	// noProgress is how long a participant may report nothing new while it prepares or begins
	// ranks. A fetch of which nothing comes fails after half of that, what is laid out is reported
	// each second, and all else takes moments. It doubles with each time that a node is given up
	// for it, up to maxDoublings times: what is only slow comes to its end.
	noProgress   = time.Minute
	maxDoublings = 5
	// leastProgress is what it may be at least, if the job is to begin sooner (--give-up).
	leastProgress = 5 * time.Second
	// overtime is how long the end of a rank may take to get here beyond its walltime: SIGTERM,
	// SIGKILL, and the report of that.
	overtime = 30 * time.Second
	// storing is how long what a rank has left may then take, as its node reports.
	storing = time.Hour
)

// overdue is what a job knows of what is late.
type overdue struct {
	stuck        map[vicinity.ID]int // how often nodes were given up for want of progress
	runs         map[int]run         // by rank: of those that were started
	first        time.Time           // when a walltime may be over, at the soonest; zero = there is none
	stalledUntil time.Time           // this node itself heard nothing before
}

// run is what is known of a rank since its START.
type run struct {
	attempt int
	begun   time.Time // when its node reported first that it runs; zero = it did not
	ended   time.Time // when its node reported first that its process has, and the rest is on its way; zero = it has not
}

func newOverdue() overdue { return overdue{stuck: map[vicinity.ID]int{}, runs: map[int]run{}} }

// ran notes what a participant reports of a rank that was started.
func (o *overdue) ran(now time.Time, rec *record.Record, w *wire.WorkerReport) {
	r, ok := o.runs[w.Rank]
	if !ok || r.attempt != w.Attempt || w.State != jobs.WorkerRunning && w.State != jobs.WorkerEnded {
		return
	}
	if r.begun.IsZero() {
		r.begun = now
		if wall := time.Duration(rec.Spec.Walltime); wall > 0 && rec.Tasks == nil {
			o.first = timers.Earlier(o.first, now.Add(wall+overtime))
		}
	}
	if r.ended.IsZero() {
		r.ended = now
	}
	if !w.Storing && w.State != jobs.WorkerEnded {
		r.ended = time.Time{}
	}
	o.runs[w.Rank] = r
}

// patience is how long a participant may get nowhere, of whose job the ranks have to begin by a
// time; zero = whenever.
func (o *overdue) patience(id vicinity.ID, since, by time.Time) time.Duration {
	d := noProgress << min(o.stuck[id], maxDoublings)
	if !by.IsZero() { // as much is left to begin elsewhere
		d = min(d, max(by.Sub(since)/2, leastProgress))
	}
	return d
}

// unfinished lists the ranks of a participant that are not ready, and those that were started and
// do not run.
func (o *overdue) unfinished(rec *record.Record, id vicinity.ID) (preparing, idle []jobs.RankAttempt) {
	for i := range rec.Ranks {
		k := &rec.Ranks[i]
		ra := jobs.RankAttempt{Rank: i, Attempt: k.Attempt}
		switch {
		case k.Node != id:
		case k.State == jobs.WorkerPreparing:
			preparing = append(preparing, ra)
		case k.State == jobs.WorkerRunning:
			if r, ok := o.runs[i]; ok && r.attempt == k.Attempt && r.begun.IsZero() {
				idle = append(idle, ra)
			}
		}
	}
	return preparing, idle
}

// stuckAt returns when a participant counts as one that gets nowhere. While inputs move, to
// whichever node, those that wait for them may have to wait for their turn.
func (p *Primary) stuckAt(id vicinity.ID) time.Time {
	since := timers.Later(p.Parts[id].progress, p.staging.at)
	var by time.Time
	if p.Rec.Spec.GiveUp > 0 {
		by = p.giveUpAt()
	}
	return since.Add(p.patience(id, since, by))
}

// overdueAt returns when something may be late.
func (p *Primary) overdueAt() time.Time {
	at := p.first
	for id, k := range p.Parts {
		if k.watched {
			at = timers.Earlier(at, p.stuckAt(id))
		}
	}
	return at
}

// checkProgress gives back what participants have that get nowhere, if there is anybody else.
func (p *Primary) checkProgress(now time.Time) {
	for _, id := range p.Parts.nodes() {
		k := p.Parts[id]
		if k == nil || !k.watched || p.Rec.State.Final() || now.Before(p.stuckAt(id)) {
			continue
		}
		preparing, idle := p.unfinished(&p.Rec, id)
		switch {
		case len(preparing)+len(idle) == 0:
			k.watched = false
		case !k.expectedBack.IsZero() || !p.Search.Others(id):
			k.progress = now
		default:
			p.unstick(now, id, preparing, idle)
		}
	}
}

// unstick has ranks placed again whose node gets nowhere with them.
func (p *Primary) unstick(now time.Time, id vicinity.ID, preparing, idle []jobs.RankAttempt) {
	k := p.Parts[id]
	why := fmt.Sprintf("no progress for %v: its disk or program may hang", now.Sub(timers.Later(k.progress, p.staging.at)).Round(time.Second))
	ranks := slices.Concat(preparing, idle)
	p.Warn(now, fmt.Sprintf("%s placed again: node %s: %s", p.Rec.Spec.List(ranks), jobs.Label(p.Rec.Ranks[ranks[0].Rank].Name, id), why))
	p.stuck[id]++
	k.progress = now
	p.unprepared(now, id, preparing, why)
	for _, ra := range idle {
		if p.Rec.Owned(id, ra) {
			p.declined(now, id, wire.WorkerReport{RankAttempt: ra, Reason: why})
		}
	}
}

// checkWalltime ends ranks whose time is over, and whose nodes did not.
func (p *Primary) checkWalltime(now time.Time) {
	if p.first.IsZero() || now.Before(p.first) {
		return
	}
	p.first = time.Time{}
	wall := time.Duration(p.Rec.Spec.Walltime)
	for i := range p.Rec.Ranks {
		k, r := &p.Rec.Ranks[i], p.runs[i]
		if p.Rec.State.Final() || k.State != jobs.WorkerRunning || r.attempt != k.Attempt || r.begun.IsZero() {
			continue
		}
		end := timers.Later(r.begun.Add(wall), p.stalledUntil).Add(overtime)
		if part := p.Parts[k.Node]; part != nil && !part.expectedBack.IsZero() {
			end = timers.Later(end, part.expectedBack.Add(overtime))
		}
		if !r.ended.IsZero() {
			end = timers.Later(end, r.ended.Add(storing))
		}
		if now.Before(end) {
			p.first = timers.Earlier(p.first, end)
			continue
		}
		ra := jobs.RankAttempt{Rank: i, Attempt: k.Attempt}
		p.Warn(now, fmt.Sprintf("%s: node %s did not end it at its walltime: its disk or program may hang", p.Rec.Spec.Who(i), jobs.Label(k.Name, k.Node)))
		node, wrote := k.Node, p.Received[ra]
		w := wire.WorkerReport{RankAttempt: ra, State: jobs.WorkerEnded, Stdout: wrote.Stdout, Stderr: wrote.Stderr,
			Exit: &work.Exit{Code: jobs.CodeTimeout, Cause: work.Walltime, Detail: process.OverTime(wall), Ended: now}}
		p.emit(p.exited(now, w))
		if p.stopSurplus(i); !k.GivenBack {
			p.failed(now, node, w)
		}
	}
}
