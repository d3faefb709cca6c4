package jobs

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"zorilla/vicinity"
)

// Reasons of declines; explain counts nodes by them.
const (
	reasonBusy     = "busy"
	reasonSlots    = "too few slots"
	reasonMemory   = "too little memory"
	reasonDisk     = "too little disk"
	reasonGPUs     = "too few GPUs"
	reasonWhere    = "does not match --where"
	reasonDenied   = "denied by owner"
	reasonPaused   = "owner paused"
	reasonLeaving  = "leaving"
	reasonDraining = "draining"
	reasonQueueing = "too many jobs waiting"
)

// maxWheres bounds the expressions that are kept ready.
const maxWheres = 256

// never says why the node will not work for a job as it and its owner are now,
// or "". Such a job is not queued.
func (c *claims) never(ad *Advertisement) string {
	switch has := c.has; {
	case c.closed != "":
		return c.closed
	case !c.admitted(ad.Origin(), ad.Addrs):
		return reasonDenied
	case has.slots < ad.Slots:
		return reasonSlots
	case ad.Memory > has.memory:
		return reasonMemory
	case has.gpus < ad.GPUs:
		return reasonGPUs
	case !c.matches(ad.Where):
		return reasonWhere
	}
	return ""
}

// notNow says why nothing was offered to a job.
func (c *claims) notNow(ad *Advertisement) string {
	o, w := ad.order(), ad.needs()
	most := c.limits.MaxJobs
	switch {
	case c.idle() != "":
		return c.idle()
	case c.has.disk < ad.Disk:
		return reasonDisk
	case c.left(o).fits(w) == 0:
		return reasonBusy
	case most > 0 && c.jobs[o.id] == 0 && c.others(o) >= most:
		return ownerAllows(most, "job")
	case c.limits.MaxWorkersPerJob > 0 && c.jobs[o.id] >= c.limits.MaxWorkersPerJob:
		return ownerAllows(c.limits.MaxWorkersPerJob, "worker") + " per job"
	}
	return reasonBusy
}

func ownerAllows(n int, what string) string {
	if n > 1 {
		what += "s"
	}
	return fmt.Sprintf("owner allows %d %s", n, what)
}

// admitted reports whether the owner lets the origin's jobs in. addrs is where
// the origin says that it is, if nothing better is known.
func (c *claims) admitted(origin vicinity.ID, addrs []string) bool {
	if origin == c.self {
		return true
	}
	m, ok := c.member(origin)
	if !ok {
		m = vicinity.Member{ID: origin, Addrs: addrs}
	}
	return c.limits.admits(m)
}

// matches reports whether the node is as an expression wants it. One that
// cannot be read, of a newer node perhaps, does not match.
func (c *claims) matches(text string) bool {
	if text == "" {
		return true
	}
	w, ok := c.wheres[text]
	if !ok {
		w, _ = newWhere(text) // its zero value matches nothing
		if len(c.wheres) >= maxWheres {
			c.wheres = map[string]where{}
		}
		c.wheres[text] = w
	}
	p := c.about
	p.Disk = int(c.has.disk)
	return w.holds(p)
}

// limit tells what the owner allows from now on. Offers that stand are taken
// back where it is less; what works goes on. The caller offers what is free to
// the queue.
func (c *claims) limit(l Limits) {
	c.limits = l
	c.queue = slices.DeleteFunc(c.queue, func(q *queued) bool { return !c.admitted(q.ad.Origin(), q.ad.Addrs) })
	for _, id := range slices.SortedFunc(maps.Keys(c.holds), func(a, b ID) int { // the last in order first
		if c.holds[a].order.before(c.holds[b].order) {
			return 1
		}
		return -1
	}) {
		h := c.holds[id]
		_, jobs := c.promised()
		if l.Paused || !c.admitted(h.ad.Origin(), nil) || l.MaxWorkersPerJob > 0 && c.jobs[id]+h.workers > l.MaxWorkersPerJob || jobs && c.jobs[id] == 0 {
			delete(c.holds, id)
		}
	}
	c.wakeQueue()
}

// measured tells how much disk space is free.
func (c *claims) measured(free int64) {
	if free > c.has.disk {
		c.wakeQueue()
	}
	c.has.disk = free
}

// Waiting is a job that waits for room at a node.
type Waiting struct {
	Job      ID          `json:"job"`
	Origin   vicinity.ID `json:"origin"`
	Priority int         `json:"priority"`
	Wanted   int         `json:"wanted"` // workers that it looks for, at all nodes together
	Slots    int         `json:"slots"`  // per worker
	Memory   int64       `json:"memory,omitempty"`
	Disk     int64       `json:"disk,omitempty"`
	GPUs     int         `json:"gpus,omitempty"`
	Reason   string      `json:"reason"` // why nothing is offered to it now; "" = something is
	Since    time.Time   `json:"since"`
	Expires  time.Time   `json:"expires"` // if its origin does not ask again
}

// waiting lists the queue in order.
func (c *claims) waiting(now time.Time) []Waiting {
	c.expire(now)
	list := []Waiting{}
	for _, q := range c.queue {
		ad := &q.ad
		w := Waiting{
			Job: ad.Job, Origin: ad.Origin(), Priority: ad.Priority, Wanted: ad.Wanted, Slots: ad.Slots,
			Memory: ad.Memory, Disk: ad.Disk, GPUs: ad.GPUs, Since: q.since, Expires: q.expires,
		}
		switch {
		case c.holds[ad.Job] != nil:
		case c.idle() == "" && c.room(ad.order(), ad.needs()) > 0:
			w.Reason = "its origin did not want what was offered"
		default:
			w.Reason = c.notNow(ad)
		}
		list = append(list, w)
	}
	return list
}

// heldSlots returns the slots that are used or held.
func (c *claims) heldSlots() int {
	n := c.used.slots
	for _, h := range c.holds {
		n += h.needs.slots * h.workers
	}
	return n
}

// busy returns the slots that are used or held.
func (c *claims) busy() int { return min(c.heldSlots(), c.has.slots) }

// expire forgets holds and queued advertisements whose time has passed.
func (c *claims) expire(now time.Time) {
	for id, h := range c.holds {
		if !now.Before(h.expires) {
			c.released(id, false)
			c.loose = true
		}
	}
	if now.Before(c.stale) {
		return
	}
	c.queue = slices.DeleteFunc(c.queue, func(q *queued) bool { return !now.Before(q.expires) })
	c.stale = time.Time{}
	for _, q := range c.queue {
		c.stale = earlier(c.stale, q.expires)
	}
}

// wake returns when offers has something to do next; zero = never.
func (c *claims) wake() time.Time {
	if c.loose {
		return time.Unix(0, 0)
	}
	at := c.stale
	for _, h := range c.holds {
		at = earlier(at, h.expires)
	}
	return at
}
