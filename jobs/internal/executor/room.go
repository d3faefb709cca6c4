package executor

import (
	"time"

	"zorilla/internal/units"
	"zorilla/jobs/disk"
	"zorilla/jobs/internal/participant"
	"zorilla/jobs/process"
)

const (
	// measureWithin bounds how long it is counted what all workers take: what is not
	// seen by then, does not count.
	measureWithin = 5 * time.Second
	// roomWithin bounds how long one worker may take to make room, until others are
	// asked, too.
	roomWithin = 10 * time.Second
)

// tenant is a worker with files on the disk.
type tenant struct {
	id    participant.WorkerID
	proc  *handle
	limit int64
}

// Busy reports whether any worker runs. It may be called from any goroutine.
func (x *Executor) Busy() bool { return x.running.Load() > 0 }

// MakeRoom ends the worker that has to make room first on a full disk, if there is one that
// takes some, and returns when its files are gone. It must not be called in the loop.
func (x *Executor) MakeRoom() {
	var list []tenant
	x.loop.Call(func() { list = x.tenants() })
	taken, roots := make([]disk.Taken, len(list)), make([]string, len(list))
	for i, t := range list {
		roots[i] = x.root(t.id)
	}
	for i, used := range process.Measure(measureWithin, roots) {
		taken[i] = disk.Taken{Used: used, Limit: list[i].limit}
	}
	first := disk.First(taken)
	if first < 0 {
		return
	}
	t, used := list[first], taken[first].Used
	x.cfg.Log.Warn().Str("job", string(t.id.Job)).Int("rank", t.id.Rank).Str("takes", units.Bytes(used)).
		Msg("the disk is nearly full: a worker is ended to make room")
	shared := x.sharing.dir(t.id)
	for i, other := range list { // whose files go, too
		if i == first || shared != nil && x.sharing.dir(other.id) == shared {
			other.yield(taken[i].Used)
		}
	}
	late := time.NewTimer(roomWithin)
	defer late.Stop()
	select {
	case <-t.proc.Done():
	case <-late.C:
	case <-x.loop.Leaving.Done():
	}
}

// yield ends a worker, and removes its files.
func (t *tenant) yield(used int64) {
	t.proc.halted()
	t.proc.Yield(used)
}

// tenants lists the workers that run, in the order of their coming.
func (x *Executor) tenants() (list []tenant) {
	for _, w := range x.part.All() {
		for _, k := range w.Workers {
			id := participant.WorkerID{Job: w.Job, RankAttempt: k.RankAttempt}
			if proc := x.procs[id]; proc != nil && !x.Ended(id) {
				list = append(list, tenant{id, proc, w.Spec.Needs(k.Rank).Disk})
			}
		}
	}
	return list
}
