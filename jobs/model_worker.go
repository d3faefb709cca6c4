package jobs

import (
	"fmt"
	"slices"
	"time"

	"zorilla/jobs/process"
)

// execute does what the participant wants done for a worker.
func (m *Model) execute(now time.Time, e effect) {
	part := &m.core.part
	switch e := e.(type) {
	case doFetch:
		part.fetched(now, e.job, nil)
	case doClaim:
		m.claim(now, e)
	case doLay:
		k := m.disk.worker(e.worker)
		m.after(now, k.fate.Prepare, func(now time.Time) {
			var err error
			if k.fate.Unfit != "" {
				err = fmt.Errorf("%s", k.fate.Unfit)
			}
			part.laid(now, e.worker, err, now)
		})
	case doRun:
		m.start(now, e)
	case doAdopt:
		m.adopt(now, e)
	case doEnd:
		m.disk.worker(e.worker).end(now, e.note)
		m.watch(now, e.worker)
	case doTry:
		part.tried(now, e.worker, m.unable())
	case doGather:
		m.after(now, m.sync(), func(now time.Time) { m.gather(now, e) })
	case doPark:
		k := m.disk.worker(e.worker)
		*k = modelWorker{workerID: k.workerID, fate: k.fate, claim: &e.claim}
		part.parked(now, e.worker, nil)
	case doRemove:
		m.disk.workers = slices.DeleteFunc(m.disk.workers, func(k *modelWorker) bool { return k.workerID == e.worker })
		part.removed(now, e.worker)
	case doAck:
		k := m.disk.worker(e.worker)
		if k != nil {
			k.freed = max(k.freed, int(e.safe.stdout))
		}
	case doTable:
		m.disk.worker(e.worker).told = e.table.Epoch
		part.tabled(e.worker, e.table.Epoch, true)
	default: // a simulation must not pass over what a node does
		panic(fmt.Sprintf("jobs.Model does not know %T", e))
	}
}

// claim makes a worker's directory, or empties it.
func (m *Model) claim(now time.Time, e doClaim) {
	k := m.disk.worker(e.worker)
	if k == nil {
		k = &modelWorker{}
		m.disk.workers = append(m.disk.workers, k)
	}
	*k = modelWorker{workerID: e.worker}
	if m.cfg.Fate != nil {
		k.fate = m.cfg.Fate(e.claim.Job, &e.claim.Spec, e.claim.RankAttempt)
	}
	m.after(now, m.sync(), func(now time.Time) {
		k.claim = &e.claim
		m.core.part.claimed(now, e.worker, nil, now)
	})
}

// start starts a process, once it is durable that it may run.
func (m *Model) start(now time.Time, e doRun) {
	k := m.disk.worker(e.worker)
	m.after(now, m.sync(), func(now time.Time) {
		k.claim, k.synced = &e.claim, true
		if why := m.unable(); why != "" {
			m.core.part.notBegun(now, e.worker, why, now)
			return
		}
		k.began, k.told = now, e.claim.Start.Epoch
		k.exit = process.Exit{Code: k.fate.Code, Cause: process.Exited}
		run, most := k.fate.Run, time.Duration(e.claim.Spec.Walltime)
		if most > 0 && (run <= 0 || run > most) {
			run, k.exit = most, process.Exit{Code: 143, Cause: process.Walltime}
		}
		if run > 0 {
			k.ends = now.Add(run)
		}
		m.follow(now, e.worker, k.told)
	})
}

// end has a process end.
func (k *modelWorker) end(now time.Time, note bool) {
	k.noted = k.noted || note
	if at := now.Add(k.fate.Stop); !k.over && (k.ends.IsZero() || at.Before(k.ends)) {
		k.ends, k.exit = at, process.Exit{Code: 143, Cause: process.Stopped}
	}
}

// finish ends a process whose time has come.
func (k *modelWorker) finish(now time.Time) {
	if !k.over && !k.began.IsZero() && !k.ends.IsZero() && !now.Before(k.ends) {
		k.wrote = k.written(k.ends)
		k.over = true
	}
}

// watch follows a process to its end, and tells the core of that.
func (m *Model) watch(now time.Time, id workerID) {
	k := m.disk.worker(id)
	if k.ends.IsZero() {
		return
	}
	m.after(now, k.ends.Sub(now), func(now time.Time) {
		if k.finish(now); m.following[id] && k.over { // it may have been told to end sooner since
			delete(m.following, id)
			m.core.part.exited(now, id, k.exit, k.noted, now)
		}
	})
}

// adopt goes on with a process of an earlier life of the node.
func (m *Model) adopt(now time.Time, e doAdopt) {
	m.after(now, m.sync(), func(now time.Time) {
		switch k := m.disk.worker(e.worker); {
		case k.failed:
			m.core.part.gone(now, e.worker, "its machine failed")
		case k.began.IsZero():
			m.core.part.neverBegun(now, e.worker)
		default:
			m.follow(now, e.worker, k.told)
		}
	})
}

// follow tells the core of a process that runs, or has ended.
func (m *Model) follow(now time.Time, id workerID, epoch int64) {
	m.following[id] = true
	m.core.part.begun(now, id, epoch)
	m.watch(now, id)
}

// gather stores the output files of a worker that has ended.
func (m *Model) gather(now time.Time, e doGather) {
	m.disk.worker(e.worker).files = true
	m.core.part.gathered(now, e.worker, &RankOutput{Rank: e.worker.Rank, Attempt: e.worker.Attempt}, nil, nil)
}
