package model

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/participant"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/internal/timers"
	"zorilla/jobs/internal/wire"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// keptName is a checkpoint of which a node has all.
type keptName struct {
	job          jobs.ID
	rank, number int
	manifest     transfer.Hash
}

// keeping is what a node keeps of checkpoints, and what became of those of its workers.
type keeping struct {
	kept map[keptName]lease
	log  []saved
	torn []jobs.ID // of which only what is replaced got into the journal, of all that was to be written at once
}

// lease is until when a checkpoint is kept; while it lasts, nothing has to be heard of it.
type lease struct {
	by    vicinity.ID // the node that asked to keep it
	until time.Time
}

// saved is what has happened to a checkpoint at a node. Programs, and the nodes that kept it, know that; no origin does.
type saved struct {
	what savedKind
	keptName
	participant.WorkerID
	c *jobs.Checkpoint // nil = the worker began anew
}

type savedKind int

const (
	savedMade    savedKind = iota // a program has written it
	savedTold                     // and was told that it is safe
	savedBegan                    // a program began with it
	savedMissing                  // no node gave it to a worker that was to begin with it
	savedKept                     // the node keeps it from now on
	savedDropped                  // and does not any more: it is not needed
	savedExpired                  // the same, as nobody has asked for it
)

func nameOf(job jobs.ID, rank int, c *jobs.Checkpoint) keptName {
	return keptName{job, rank, c.Number, c.Manifest}
}

// happened notes what became of a checkpoint of a worker.
func (d *keeping) happened(what savedKind, id participant.WorkerID, c *jobs.Checkpoint) {
	e := saved{what: what, WorkerID: id, c: c}
	if c != nil {
		e.keptName = nameOf(id.Job, id.Rank, c)
	}
	d.log = append(d.log, e)
}

// hold keeps a checkpoint that is here.
func (d *keeping) hold(now time.Time, from vicinity.ID, n keptName) {
	if have, ok := d.kept[n]; ok {
		from = have.by
	} else {
		d.log = append(d.log, saved{what: savedKept, keptName: n})
	}
	d.kept[n] = lease{from, now.Add(wire.KeepLease)}
}

func (d *keeping) drop(n keptName, what savedKind) {
	delete(d.kept, n)
	d.log = append(d.log, saved{what: what, keptName: n})
}

// names lists what is kept of a job, or with "" of all.
func (d *keeping) names(job jobs.ID) (list []keptName) {
	for n := range d.kept {
		if job == "" || n.job == job {
			list = append(list, n)
		}
	}
	slices.SortFunc(list, func(a, b keptName) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return list
}

// expire lets go of what nobody has asked for during a lease.
func (d *keeping) expire(now time.Time) {
	for _, n := range d.names("") {
		if now.After(d.kept[n].until) {
			d.drop(n, savedExpired)
		}
	}
}

// needed lets go of what is not needed.
func (d *keeping) needed(now time.Time, from vicinity.ID, k *wire.Keep) {
	for _, n := range d.names(k.Job) {
		by := d.kept[n].by
		if from != k.Job.Origin() && from != by {
			continue
		}
		i := slices.IndexFunc(k.Needed, func(r wire.Needed) bool { return r.Rank == n.rank })
		switch {
		case k.New != nil && n.rank == k.New.Rank && n.number == k.New.Number:
		case i >= 0 && n.number >= k.Needed[i].Oldest:
			d.kept[n] = lease{by, now.Add(wire.KeepLease)}
		case i >= 0 || k.All:
			d.drop(n, savedDropped)
		}
	}
}

// tear is the end of a node amid a write: what the journal has under keys of its own is written one after the other,
// and before the rest.
func (d *disk) tear(w *write, draw func(int) int) {
	var list []record.Event
	for _, ev := range w.Events {
		if ev.Kind == record.Checkpointed {
			list = append(list, ev)
		}
	}
	if len(list) == 0 {
		return
	}
	list = list[:draw(len(list)+1)]
	for _, ev := range list {
		d.journal = append(d.journal, entry{w.Job, ev})
	}
	if len(list) > 0 {
		d.torn = append(d.torn, w.Job)
	}
}

// newest returns which events of a journal are the last ones under their keys, in order; others of checkpoints were replaced.
func (d *disk) newest() (list []entry) {
	type key struct {
		job  jobs.ID
		rank int
	}
	seen := map[key]bool{}
	for _, e := range slices.Backward(d.journal) {
		if e.ev.Kind == record.Checkpointed && !seen[key{e.job, e.ev.Ranks[0].Rank}] {
			seen[key{e.job, e.ev.Ranks[0].Rank}] = true
			list = append(list, e)
		}
	}
	slices.Reverse(list)
	return list
}

// begin begins the leases of what an earlier life of the node kept, whose clock may have been wrong.
func (d *keeping) begin(now time.Time) {
	for n, l := range d.kept {
		d.kept[n] = lease{l.by, timers.Earlier(timers.Later(l.until, now.Add(2*wire.RenewKeep)), now.Add(wire.KeepLease))}
	}
}
