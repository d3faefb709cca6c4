package model

import (
	"fmt"
	"slices"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/participant"
	"zorilla/jobs/work"
)

// Answers tells that the node has found that its disk does not answer, or does again.
func (m *Model) Answers(now time.Time, yes bool) Actions {
	m.core.Part.Answers(now, yes)
	return m.Tick(now)
}

// thaw does what has waited for the disk.
func (m *Model) thaw(now time.Time) {
	for len(m.frozen) > 0 && !m.cfg.Hangs() {
		e := m.frozen[0]
		m.frozen = m.frozen[1:]
		m.execute(now, e)
	}
}

// waits reports whether an effect is done on the disk.
func waits(e participant.Effect) bool {
	switch e.(type) {
	case participant.DoClaim, participant.DoLay, participant.DoRun, participant.DoAdopt,
		participant.DoGather, participant.DoPark, participant.DoRemove, participant.DoTry:
		return true
	}
	return false
}

// execute does what the participant wants done for a worker.
func (m *Model) execute(now time.Time, e participant.Effect) {
	part := &m.core.Part
	if waits(e) && m.cfg.Hangs() {
		m.frozen = append(m.frozen, e)
		return
	}
	switch e := e.(type) {
	case participant.DoFetch:
		part.Fetched(now, e.Job, nil)
	case participant.DoClaim:
		m.claim(now, e)
	case participant.DoLay:
		k := m.disk.worker(e.Worker)
		m.after(now, k.fate.Prepare, func(now time.Time) {
			var err error
			if k.fate.Unfit != "" {
				err = fmt.Errorf("%s", k.fate.Unfit)
			}
			if err != nil || e.Resume == nil {
				part.Laid(now, e.Worker, err, now)
				return
			}
			m.savings.resume(now, e.Worker, e.Resume, func(now time.Time, err error) { part.Laid(now, e.Worker, err, now) })
		})
	case participant.DoRun:
		m.start(now, e)
	case participant.DoAdopt:
		m.adopt(now, e)
	case participant.DoEnd:
		m.disk.worker(e.Worker).end(now.Add(e.Notice), e.Note)
		m.watch(now, e.Worker)
	case participant.DoTry:
		part.Tried(now, e.Worker, m.cfg.Unable())
	case participant.DoGather:
		m.after(now, m.cfg.Disk(), func(now time.Time) {
			m.disk.worker(e.Worker).files = true
			part.Gathered(now, e.Worker, &jobs.RankOutput{Rank: e.Worker.Rank, Attempt: e.Worker.Attempt}, nil, nil)
		})
	case participant.DoPark:
		k := m.disk.worker(e.Worker)
		*k = worker{WorkerID: k.WorkerID, fate: k.fate, claim: &e.Claim}
		part.Parked(now, e.Worker, nil)
	case participant.DoRemove:
		delete(m.savings.of, e.Worker)
		m.disk.workers = slices.DeleteFunc(m.disk.workers, func(k *worker) bool { return k.WorkerID == e.Worker })
		part.Removed(now, e.Worker)
	case participant.DoAck:
		k := m.disk.worker(e.Worker)
		if k != nil {
			k.freed = max(k.freed, int(e.Safe.Stdout))
		}
		m.savings.acknowledged(now, e.Worker, e.Checkpoint)
	case participant.DoTable:
		m.disk.worker(e.Worker).told = e.Table.Epoch
		part.Tabled(e.Worker, e.Table.Epoch, true)
	default: // a simulation must not pass over what a node does
		panic(fmt.Sprintf("model: nobody does %T", e))
	}
}

// claim makes a worker's directory, or empties it.
func (m *Model) claim(now time.Time, e participant.DoClaim) {
	k := m.disk.worker(e.Worker)
	if k == nil {
		k = &worker{}
		m.disk.workers = append(m.disk.workers, k)
	}
	*k = worker{WorkerID: e.Worker}
	if m.cfg.Fate != nil {
		k.fate = m.cfg.Fate(e.Claim.Job, &e.Claim.Spec, e.Claim.RankAttempt)
	}
	m.after(now, m.cfg.Disk(), func(now time.Time) {
		k.claim = &e.Claim
		m.core.Part.Claimed(now, e.Worker, nil, now)
	})
}

// start starts a process, once it is durable that it may run.
func (m *Model) start(now time.Time, e participant.DoRun) {
	k := m.disk.worker(e.Worker)
	m.after(now, m.cfg.Disk(), func(now time.Time) {
		k.claim, k.synced = &e.Claim, true
		if m.core.Part.GivenBack(e.Worker) {
			m.core.Part.NotBegun(now, e.Worker, "it was given back", now)
			return
		}
		if why := m.cfg.Unable(); why != "" {
			m.core.Part.NotBegun(now, e.Worker, why, now)
			return
		}
		k.began, k.told = now, e.Claim.Start.Epoch
		k.exit = work.Exit{Code: k.fate.Code, Cause: work.Exited}
		run, most := k.fate.Run, e.Claim.Walltime()
		if most > 0 && (run <= 0 || run > most) {
			run, k.exit = most, work.Exit{Code: 143, Cause: work.Walltime}
		}
		if run > 0 {
			k.ends = now.Add(run)
		}
		if c := e.Claim.Resume; c != nil {
			k.epoch = c.Epoch
		}
		m.disk.happened(savedBegan, e.Worker, e.Claim.Resume)
		m.follow(now, e.Worker, k.told)
	})
}

// end has a process end that gets SIGTERM at a time: its program goes on until then.
func (k *worker) end(term time.Time, note bool) {
	k.noted = k.noted || note
	if at := term.Add(k.fate.Stop); !k.over && (k.ends.IsZero() || at.Before(k.ends)) {
		k.ends, k.exit = at, work.Exit{Code: 143, Cause: work.Stopped}
	}
}

// finish ends a process whose time has come.
func (k *worker) finish(now time.Time) {
	if !k.over && !k.began.IsZero() && !k.ends.IsZero() && !now.Before(k.ends) {
		k.wrote = k.written(k.ends)
		k.over = true
	}
}

// watch follows a process to its end, and tells the core of that.
func (m *Model) watch(now time.Time, id participant.WorkerID) {
	k := m.disk.worker(id)
	if k.ends.IsZero() {
		return
	}
	m.after(now, k.ends.Sub(now), func(now time.Time) {
		if k.finish(now); m.following[id] && k.over { // it may have been told to end sooner since
			delete(m.following, id)
			m.core.Part.Exited(now, id, k.exit, k.noted, now)
		}
	})
}

// adopt goes on with a process of an earlier life of the node.
func (m *Model) adopt(now time.Time, e participant.DoAdopt) {
	m.after(now, m.cfg.Disk(), func(now time.Time) {
		switch k := m.disk.worker(e.Worker); {
		case k.failed:
			m.core.Part.Gone(now, e.Worker, "its machine failed")
		case k.began.IsZero():
			m.core.Part.NeverBegun(now, e.Worker)
		default:
			m.follow(now, e.Worker, k.told)
		}
	})
}

// follow tells the core of a process that runs, or has ended.
func (m *Model) follow(now time.Time, id participant.WorkerID, epoch int64) {
	m.following[id] = true
	m.core.Part.Begun(now, id, epoch)
	m.savings.saveLater(now, id)
	m.watch(now, id)
}
