package jobs

import (
	"cmp"
	"slices"
	"time"

	"zorilla/internal/codec"
)

// Remains is what a node leaves behind that was killed: what it had written
// down, and its workers, which go on without it.
type Remains struct {
	number  uint64
	journal []coreEntry
	works   []*coreWork
}

// Kill ends the node at once, as SIGKILL does; the Core must not be used any
// more. What was on its way to the disk may have got there. If the machine fails
// with it, the workers are gone, and perhaps that they were to be prepared.
func (c *Core) Kill(now time.Time, machine bool) Remains {
	r := Remains{number: c.number, journal: c.journal}
	for _, s := range c.writing[:c.cfg.Rand.IntN(len(c.writing)+1)] {
		for _, ev := range s.events {
			r.journal = append(r.journal, coreEntry{s.job.core.rec.id, ev})
		}
	}
	for _, w := range c.works {
		left := *w
		left.workers = slices.DeleteFunc(slices.Clone(w.workers), func(k *coreWorker) bool {
			return k.state == WorkerPreparing && (machine || now.Before(k.kept))
		})
		for _, k := range left.workers {
			if machine && k.state == WorkerRunning {
				k.state, k.reason = WorkerLost, "its machine failed"
			}
		}
		r.works = append(r.works, &left)
	}
	return r
}

// Revive makes a node go on with what an earlier life of it left. A worker
// whose end came in the meantime has ended.
func Revive(now time.Time, cfg CoreConfig, r Remains) (*Core, Actions) {
	c := NewCore(cfg)
	c.number, c.journal = r.number+1, r.journal
	for _, e := range r.journal { // mirrors Service.load
		j := c.jobs[e.job]
		if j == nil {
			j = c.newJob(e.job)
		}
		var ev event
		if err := codec.Unmarshal(codec.MustMarshal(e.ev), &ev); err != nil || !ev.sound(&j.core.rec) {
			panic("jobs.Core: its journal cannot be read")
		}
		j.core.rec.apply(ev)
	}
	for _, w := range r.works {
		c.adopt(now, w)
	}
	for _, id := range c.order {
		j := c.jobs[id]
		c.clock.saw(j.core.rec.stamp, now)
		if j.core.rec.state.Final() {
			continue
		}
		j.core.resume(now, cfg.Schedule)
		c.flush(now, j)
		j.follow(now)
	}
	return c, c.leave(now)
}

// adopt mirrors Service.adopt.
func (c *Core) adopt(now time.Time, old *coreWork) {
	if len(old.workers) == 0 {
		return
	}
	c.clock.saw(old.stamp, now)
	w := c.newWork(now, old.job, old.origin, old.spec, old.stamp)
	w.epoch = old.epoch
	for _, k := range old.workers {
		if k.declined { // its room was given away then
			w.workers = append(w.workers, &coreWorker{RankAttempt: k.RankAttempt, fate: k.fate, kept: now, state: WorkerLost, reason: k.reason, declined: true})
			continue
		}
		c.claims.adopted(&claimRecord{Job: w.job, Spec: w.spec, At: k.since}, now)
		n := &coreWorker{RankAttempt: k.RankAttempt, fate: k.fate, kept: now, since: k.since, started: true,
			state: WorkerRunning, due: k.due, timeout: k.timeout, reason: k.reason}
		switch {
		case k.state == WorkerRunning && !k.dropped && !k.stopped:
		case k.state == WorkerRunning: // nobody here knows why it was to end
			n.reason = "its machine stopped it"
		case k.state == WorkerEnded && k.stopped, k.state == WorkerLost:
			n.due, n.reason = now, cmp.Or(k.reason, "its machine stopped it")
		case k.state == WorkerEnded:
			n.due = now
		default: // it never ran
			n = c.newWorker(now, w, k.RankAttempt)
		}
		w.workers = append(w.workers, n)
	}
}
