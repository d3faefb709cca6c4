package participant

import (
	"time"

	"zorilla/jobs/internal/wire"
)

// Spares of a job are claims that have no worker: the node has the inputs of the job in its store, so that a rank
// which is lost elsewhere can go on here at once. Nothing is written down of them: a node that was started again has
// none, and an origin that was hears of them in the next report.

// spares is what the job has here; nil = none.
func (w *Work) spares() *wire.Spares {
	s := w.part.Claims.Spares[w.Job]
	if s == nil {
		return nil
	}
	return &wire.Spares{Key: s.Key, Workers: s.Workers, Ready: w.inputs == inputsHere}
}

// hasSpares reports whether the job has those still that were reported.
func (w *Work) hasSpares(reported *wire.Spares) bool {
	s := w.spares()
	return s != nil && reported != nil && s.Key == reported.Key
}

// giveSparesBack frees the room of the job's spares.
func (w *Work) giveSparesBack(now time.Time) {
	if s := w.spares(); s != nil {
		w.part.Claims.FreeSpares(w.Job, s.Workers)
		w.part.Claims.Loose = true
		w.tell(now)
	}
}

// GiveSparesBack frees the room of the spares of all jobs.
func (p *Participant) GiveSparesBack(now time.Time) {
	for _, w := range p.All() {
		w.giveSparesBack(now)
	}
}

// LetSparesGo ends the spares of a job that its origin does not want any more.
func (w *Work) LetSparesGo(now time.Time) {
	w.spared = false
	w.giveSparesBack(now)
	w.schedule(now)
}

// empty reports whether nothing of the job is here, and its origin knows.
func (w *Work) empty() bool { return len(w.Workers) == 0 && w.spares() == nil && !w.spared }
