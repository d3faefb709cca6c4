package participant

import (
	"fmt"
	"slices"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/wire"
)

// What ranks of an MPI program have to do with those at other nodes.

// GangLost ends the workers here that are ranks of a parallel program which cannot go on. If
// that is because one of them failed, its origin hears how, and the others are stopped, as it
// would do itself: they are no reason for the end of the job, whichever it hears of first.
func (p *Participant) GangLost(now time.Time, id wire.Gang, why string, failed bool) {
	w := p.Works[id.Job]
	if w == nil {
		return
	}
	for _, k := range slices.Clone(w.Workers) {
		switch _, replica := w.Spec.RankOf(k.Rank); {
		case replica != id.Replica || k.start == nil || k.start.Epoch != id.Epoch:
		case failed:
			w.Want(now, WantStop|WantNow, []jobs.RankAttempt{k.RankAttempt})
		default:
			k.evict(now, WantEvict|WantNow, why)
		}
	}
}

// part tells the gang of a rank of an MPI program that it has ended, and, if others may wait
// for it without end, why.
func (k *Worker) part(now time.Time, why string, failed bool) {
	w := k.work
	if !w.Spec.MPI || k.start == nil {
		return
	}
	if why != "" {
		why = fmt.Sprintf("%s: %s", w.Spec.Who(k.Rank), why)
	}
	w.part.Do(DoPart{Worker: k.id(), Claim: w.claim(now, k, k.start), Why: why, Failed: failed, Again: k.Phase == PhaseStarting})
}

// Has reports whether something of rank 0 of a gang's copy is here, of whatever start.
func (p *Participant) Has(id wire.Gang) bool {
	w := p.Works[id.Job]
	return w != nil && slices.ContainsFunc(w.Workers, func(k *Worker) bool {
		rank, replica := w.Spec.RankOf(k.Rank)
		return rank == 0 && replica == id.Replica
	})
}
