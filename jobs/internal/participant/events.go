package participant

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"zorilla/internal/sanitize"
	"zorilla/jobs"
	"zorilla/jobs/work"
	"zorilla/transfer"
)

// What the executor of a participant tells.

// of finds a worker that must be there, since it has something done for it.
func (p *Participant) of(id WorkerID) (*Work, *Worker) {
	w := p.Works[id.Job]
	return w, w.find(id.RankAttempt)
}

// Fetched tells that the inputs of a job are here, or why they are not.
func (p *Participant) Fetched(now time.Time, job jobs.ID, err error) {
	w := p.Works[job]
	if w.inputs = inputsHere; err != nil {
		w.inputs, w.failed = inputsFailed, err.Error()
		w.giveSparesBack(now)
	}
	if w.spares() != nil {
		w.tell(now)
	}
	for _, k := range slices.Clone(w.Workers) {
		k.advance(now)
	}
	w.schedule(now)
}

// Moved reports how much of the inputs is here so far.
func (p *Participant) Moved(job jobs.ID, so transfer.Stats) {
	if w := p.Works[job]; w != nil {
		if k := w.find(w.first); k != nil {
			k.stats = so
		}
	}
}

// Claimed tells that a worker's directory is made, or why not. What was tried since
// then counts.
func (p *Participant) Claimed(now time.Time, id WorkerID, err error, since time.Time) {
	_, k := p.of(id)
	if err != nil {
		k.unprepared(now, err.Error(), since)
		return
	}
	k.Phase = PhaseWaiting
	k.advance(now)
}

// Laid tells that a worker's input files are there, or why not.
func (p *Participant) Laid(now time.Time, id WorkerID, err error, since time.Time) {
	w, k := p.of(id)
	switch {
	case errors.Is(err, jobs.ErrNoCheckpoint) && k.resume != nil: // which is no fault of this node
		k.missing = k.resume.Number
		k.decline(now, sanitize.OneLine(err.Error()))
		return
	case err != nil:
		k.unprepared(now, err.Error(), since)
		return
	}
	k.Phase, k.State = PhaseReady, jobs.WorkerReady
	w.tell(now)
	k.advance(now)
}

// Begun tells that a worker's process runs, or ran, and knows its job's table as of
// an epoch.
func (p *Participant) Begun(now time.Time, id WorkerID, epoch int64) {
	w, k := p.of(id)
	if k.State, k.Phase = jobs.WorkerRunning, PhaseRunning; k.begun.IsZero() {
		k.begun = now
	}
	if w.Spec.Array == nil {
		k.epoch = epoch
	}
	w.tell(now)
	k.advance(now)
}

// NotBegun reports why a worker could not be started.
func (p *Participant) NotBegun(now time.Time, id WorkerID, why string, since time.Time) {
	_, k := p.of(id)
	k.unstarted(now, why, since)
}

// NeverBegun tells that a worker which was adopted had not begun to run. The origin
// will say again that it may.
func (p *Participant) NeverBegun(now time.Time, id WorkerID) {
	w, k := p.of(id)
	k.State, k.start, k.adopted, k.begun = jobs.WorkerPreparing, nil, false, time.Time{}
	k.prepare(now)
	w.tell(now)
}

// Gone reports why a worker cannot be adopted.
func (p *Participant) Gone(now time.Time, id WorkerID, why string) {
	_, k := p.of(id)
	k.part(now, why, false)
	k.lose(now, why)
}

// Exited reports how a worker's process ended, and whether an earlier life of this
// node noted that its origin wanted that. If its program did not begin, trials since
// then count.
func (p *Participant) Exited(now time.Time, id WorkerID, exit work.Exit, noted bool, since time.Time) {
	w, k := p.of(id)
	exit.Detail = sanitize.OneLine(exit.Detail)
	switch {
	case exit.Cause == work.Unstarted:
		k.unstarted(now, exit.Detail, since)
		return
	case k.lost != "" && !(k.work.Spec.MPI && !k.wanted(WantDrop) && exit.Code != 0 && (exit.Cause == work.Exited || exit.Cause == work.Signalled)):
		k.part(now, k.lost, false)
		k.lose(now, k.lost)
		return
	case exit.Cause == work.Lost || exit.Cause == work.Orphaned:
		k.part(now, exit.Detail, false)
		k.lose(now, exit.Detail)
		return
	case exit.Cause == work.Stopped && !k.wanted(WantStop) && !noted:
		k.part(now, "its machine stopped it", false)
		k.lose(now, "its machine stopped it")
		return
	}
	if exit.Code == 0 || exit.Cause == work.Stopped {
		k.part(now, "", false)
	} else {
		k.part(now, cmp.Or(exit.Detail, fmt.Sprint("ended with ", exit.Code)), true)
	}
	p.Claims.Began()
	if p.Leaving > 0 { // perhaps its files would not all be stored in time: the next life does that
		k.over(now)
		return
	}
	k.ended, k.Phase = &exit, PhaseGathering
	globs := w.Spec.Gathered()
	switch {
	case len(globs) == 0 && (w.Spec.Array != nil || exit.Cause == work.Full || exit.Cause == work.Disk):
		p.Gathered(now, id, nil, nil, nil)
	case exit.Cause == work.Full: // they were removed
		p.Gathered(now, id, nil, []string{w.Spec.Who(k.Rank) + ": its output files were removed, since the disk of its node was nearly full"}, nil)
	default:
		p.Do(DoGather{id, w.Spec.Who(k.Rank), globs, k.patience(now, &exit)})
		if len(globs) > 0 { // else it takes no time
			w.tell(now)
		}
	}
}

// overtime is how long files wait for room on a disk when the walltime of their worker has passed.
const overtime = time.Minute

// patience is until when the files of a worker wait for room on the disk; zero = without limit.
func (k *Worker) patience(now time.Time, exit *work.Exit) (until time.Time) {
	limit := cmp.Or(k.work.Spec.Walltime, k.allowed).Std()
	if limit <= 0 {
		return until
	}
	if until = exit.Started.Add(limit); until.Before(now) {
		until = now
	}
	return until.Add(overtime)
}

// Waits reports what a worker that runs, or whose files are being stored, waits for, or "". It
// reports whether anybody wants the worker.
func (p *Participant) Waits(now time.Time, id WorkerID, why string) (wanted bool) {
	w := p.Works[id.Job]
	if w == nil {
		return false
	}
	k := w.find(id.RankAttempt)
	if k == nil {
		return false
	}
	if k.State == jobs.WorkerRunning && k.reason != why {
		k.reason = why
		w.tell(now)
	}
	return !k.wanted(WantDrop | WantEvict)
}

// Gathered tells that the files of a worker that has ended are stored.
func (p *Participant) Gathered(now time.Time, id WorkerID, output *jobs.RankOutput, warn []string, err error) {
	_, k := p.of(id)
	if p.Leaving == 0 && k.State != jobs.WorkerLost {
		if err != nil && k.ended.Code == 0 { // what it did is lost, and must not look as if it were not
			k.ended.Code, k.ended.Cause, k.ended.Detail = jobs.CodeZorilla, work.Failed, sanitize.OneLine(err.Error())
		}
		k.State, k.exit, k.output, k.warn = jobs.WorkerEnded, k.ended, output, warn
	}
	k.over(now)
}

// Parked tells that the claim of a worker that did not begin says so, or that it could
// not be written and is gone.
func (p *Participant) Parked(now time.Time, id WorkerID, err error) {
	_, k := p.of(id)
	k.unclaimed = err != nil
	k.over(now)
}

// Removed tells that nothing is left of a worker.
func (p *Participant) Removed(now time.Time, id WorkerID) {
	w, k := p.of(id)
	w.Workers = slices.DeleteFunc(w.Workers, func(other *Worker) bool { return other == k })
	w.tell(now)
}

// Tried reports whether workers can be started here: why not, or "". It returns
// whether that is new.
func (p *Participant) Tried(now time.Time, id WorkerID, trouble string) (changed bool) {
	was := p.Claims.Starts.Broken != ""
	switch {
	case p.Leaving > 0:
	case trouble != "":
		p.Claims.Missed(now, trouble)
	case id.Job == "":
		p.Claims.Worked()
	default:
		p.Claims.Began()
	}
	if id.Job != "" {
		_, k := p.of(id)
		k.judged(now, trouble)
	} else {
		p.Claims.Starts.Trying, p.Claims.Loose, p.News = false, true, true
	}
	return was != (p.Claims.Starts.Broken != "")
}

// Grown tells that workers of a job have written something.
func (p *Participant) Grown(now time.Time, job jobs.ID) {
	if w := p.Works[job]; w != nil {
		w.tell(now)
	}
}

// maxDoubts is how often the origin may seem to miss output before that is believed.
const maxDoubts = 3

// Unreadable tells that what a worker wrote is not here any more from some offset on: the
// origin misses output which it had confirmed, unless it has told of more since. Words of
// streams and reports may overtake each other, so it is asked anew first.
func (p *Participant) Unreadable(now time.Time, id WorkerID, stream work.Stream, from int64) {
	if w := p.Works[id.Job]; w != nil {
		if k := w.find(id.RankAttempt); k != nil && k.acked.Of(stream) <= from {
			if k.doubts++; k.doubts < maxDoubts {
				k.adopted = true
				w.tell(now)
				return
			}
			k.State, k.reason = jobs.WorkerLost, "its origin misses output that it had confirmed: the disk there lost it"
			w.tell(now)
		}
	}
}

// Tabled tells that a worker knows its job's table as of an epoch, or that it could
// not be told.
func (p *Participant) Tabled(id WorkerID, epoch int64, ok bool) {
	w := p.Works[id.Job]
	if w == nil {
		return
	}
	if k := w.find(id.RankAttempt); k != nil {
		if k.telling = false; ok {
			k.epoch = epoch
		}
	}
}
