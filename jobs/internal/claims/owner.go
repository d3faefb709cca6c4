package claims

import (
	"fmt"
	"slices"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/timers"
	"zorilla/jobs/internal/where"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/process"
	"zorilla/vicinity"
)

// maxWheres bounds the expressions that are kept ready.
const maxWheres = 256

// unable says which networks workers cannot be kept to where so much is enforced.
func unable(enforces []string) map[string]string {
	why := map[string]string{}
	for net, its := range map[string]struct{ needs, why string }{
		jobs.NetNone: {process.Namespaces, wire.ReasonNoNet},
		jobs.NetJob:  {process.NetworkJob, wire.ReasonNoFence},
	} {
		if !slices.Contains(enforces, its.needs) {
			why[net] = its.why
		}
	}
	return why
}

// never says why the node will not work for a job as it and its owner are now,
// or "". Such a job is not queued.
func (c *Claims) never(ad *wire.Advertisement) string {
	switch {
	case c.Closed != "":
		return c.Closed
	case !c.admitted(ad.Origin(), ad.Addrs):
		return wire.ReasonDenied
	}
	if why := c.unfit(ad); why != "" {
		return why
	}
	if why := c.cannot[ad.Network()]; why != "" {
		return why
	}
	return forbidden(&c.Limits, c.self, ad)
}

// forbidden says what a job asks for that the owner does not allow it at self, or "".
func forbidden(l *jobs.Limits, self vicinity.ID, ad *wire.Advertisement) string {
	switch {
	case l.AllowsNet(ad.Network()):
	case l.Network == jobs.NetJob:
		return wire.ReasonNetJob
	default:
		return wire.ReasonNetwork
	}
	if why := tooLong(l, ad); why != "" || len(ad.Mounts) == 0 {
		return why
	}
	if _, missing := l.Grant(ad.Origin() == self, ad.Mounts); missing != "" {
		return fmt.Sprintf("%s %.*s", wire.ReasonMount, maxNamed, missing)
	}
	return ""
}

// maxNamed bounds a path in a reason, so that it fits into an answer.
const maxNamed = wire.MaxReason - len(wire.ReasonMount) - 1

// notNow says why nothing was offered to a job.
func (c *Claims) notNow(ad *wire.Advertisement) string {
	o := ad.Order()
	most := c.Limits.MaxJobs
	switch {
	case c.idle(ad) != "":
		return c.idle(ad)
	case ad.Single && c.Jobs[o.ID] > 0:
		return wire.ReasonSingle
	case c.runnable(ad).in(c.Has) == 0:
		return wire.ReasonDisk
	case c.runnable(ad).in(c.left(ad)) == 0:
		return wire.ReasonBusy
	case most > 0 && c.Jobs[o.ID] == 0 && c.others(ad) >= most:
		return ownerAllows(most, "job")
	case c.Limits.MaxWorkersPerJob > 0 && c.Jobs[o.ID] >= c.Limits.MaxWorkersPerJob:
		return ownerAllows(c.Limits.MaxWorkersPerJob, "worker") + " per job"
	}
	return wire.ReasonBusy
}

func ownerAllows(n int, what string) string {
	if n > 1 {
		what += "s"
	}
	return fmt.Sprintf("owner allows %d %s", n, what)
}

// admitted reports whether the owner lets the origin's jobs in. addrs is where
// the origin says that it is, if nothing better is known.
func (c *Claims) admitted(origin vicinity.ID, addrs []string) bool {
	if origin == c.self {
		return true
	}
	m, ok := c.Member(origin)
	if !ok {
		m = vicinity.Member{ID: origin, Addrs: addrs}
	}
	return c.Limits.Admits(m)
}

// matches reports whether the node is as an expression wants it. One that
// cannot be read, of a newer node perhaps, does not match.
func (c *Claims) matches(text string) bool {
	if text == "" {
		return true
	}
	w, ok := c.wheres[text]
	if !ok {
		w, _ = where.Compile(text) // its zero value matches nothing
		if len(c.wheres) >= maxWheres {
			c.wheres = map[string]where.Expr{}
		}
		c.wheres[text] = w
	}
	p := c.about
	p.Disk = int(c.Has.Disk)
	return w.Holds(p)
}

// Describe says what the node is like from now on, for conditions of jobs: what waits and does
// not match any more waits no longer. Offers stand.
func (c *Claims) Describe(self vicinity.Member) {
	c.about = where.PropertiesOf(self)
	c.drop(func(q *Queued) string { return c.unfit(&q.Ad) })
	c.Loose = true // has those hear of it that were dropped
}

// Limit tells what the owner allows from now on. Offers that stand are taken
// back where it is less; what works goes on. The caller offers what is free to
// the queue.
func (c *Claims) Limit(l jobs.Limits) {
	c.Limits, c.shift = l, shift{shut: c.shift.shut} // what the hours are now is looked up by who knows the time
	c.drop(func(q *Queued) string {
		if !c.admitted(q.Ad.Origin(), q.Ad.Addrs) {
			return wire.ReasonDenied
		}
		return forbidden(&l, c.self, &q.Ad)
	})
	for _, id := range lastFirst(c.Holds, func(*Hold) bool { return true }) {
		h := c.Holds[id]
		_, jobs := c.promised()
		why := forbidden(&l, c.self, &h.Ad)
		switch {
		case l.Paused:
			why = wire.ReasonPaused
		case !c.admitted(h.Ad.Origin(), nil):
			why = wire.ReasonDenied
		case why != "":
		case l.MaxWorkersPerJob > 0 && c.Jobs[id]+h.Workers > l.MaxWorkersPerJob:
			why = ownerAllows(l.MaxWorkersPerJob, "worker") + " per job"
		case jobs && c.Jobs[id] == 0:
			why = ownerAllows(l.MaxJobs, "job")
		}
		if why != "" {
			c.voids.end(c.at, c.Holds, id, why)
		}
	}
	c.bound(c.at, &l)
	c.wakeQueue()
}

// Measured tells how much disk space is free. On a full disk what is offered is taken back.
func (c *Claims) Measured(free int64) {
	was, forWorkers := c.Disk.Full, c.Disk.look(free)
	if c.Disk.Full {
		c.voids.endAll(c.at, c.Holds, wire.ReasonFull)
	}
	if was && !c.Disk.Full || forWorkers > c.Has.Disk {
		c.wakeQueue()
	}
	c.Has.Disk = forWorkers
}

// Waiting lists the queue in order, then what is booked for jobs that are not in it.
func (c *Claims) Waiting(now time.Time) []jobs.Waiting {
	c.expire(now)
	list := []jobs.Waiting{}
	for _, q := range c.Queue {
		ad := &q.Ad
		w := jobs.Waiting{
			Job: ad.Job, Origin: ad.Origin(), Priority: ad.Priority, Wanted: ad.Wanted, Slots: ad.Slots,
			Memory: ad.Memory, Disk: ad.Disk, GPUs: ad.GPUs, Since: q.since, Expires: q.expires,
		}
		switch {
		case c.Holds[ad.Job] != nil:
		case c.idle(ad) == "" && c.room(ad) > 0:
			w.Reason = "its origin did not want what was offered"
		default:
			w.Reason = c.notNow(ad)
		}
		list = append(list, w)
	}
	return c.shown(now, list)
}

// HeldSlots returns the slots that are used or held.
func (c *Claims) HeldSlots() int {
	n := c.Used.Slots
	for _, h := range c.Holds {
		n += h.Room.Slots
	}
	return n
}

// Busy returns the slots that are used or held.
func (c *Claims) Busy() int { return min(c.HeldSlots(), c.Has.Slots) }

// expire forgets holds and queued advertisements whose time has passed.
func (c *Claims) expire(now time.Time) {
	c.at = now
	c.voids.expire(now)
	if begun, ended := c.shift.turn(now, c.Limits.Hours); ended {
		c.voids.endAll(now, c.Holds, wire.ReasonHours)
	} else if begun {
		c.wakeQueue()
		c.Loose = true
	}
	for id, h := range c.Holds {
		if !now.Before(h.Expires) {
			c.voids.end(now, map[jobs.ID]*Hold{id: h}, id, wire.ReasonLate) // it may still come
			c.Released(id, 0, false)
			c.Loose = true
		}
	}
	c.bookings.expire(now)
	if now.Before(c.stale) {
		return
	}
	c.Queue = slices.DeleteFunc(c.Queue, func(q *Queued) bool { return !now.Before(q.expires) })
	c.stale = time.Time{}
	for _, q := range c.Queue {
		c.stale = timers.Earlier(c.stale, q.expires)
	}
}

// Wake returns when Offers has something to do next; zero = never.
func (c *Claims) Wake() time.Time {
	if c.Loose || c.moved {
		return time.Unix(0, 0)
	}
	at := timers.Earlier(timers.Earlier(c.stale, c.Due()), c.shift.lookAt(c.Limits.Hours))
	for _, h := range c.Holds {
		at = timers.Earlier(at, h.Expires)
		if !h.recalled.IsZero() && c.at.Before(h.recalled.Add(RecallTime)) {
			at = timers.Earlier(at, h.recalled.Add(RecallTime))
		}
	}
	return at
}
