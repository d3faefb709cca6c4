package model

import (
	"maps"
	"slices"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/internal/calendar"
	"zorilla/jobs/internal/core"
	"zorilla/jobs/internal/participant"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// Bookings, by what the audit has seen nodes accept: it counts moment by moment, and asks no calendar.

// Promises counts what became of promised starts.
type Promises struct {
	Made, Forward, Broken int // promised at first; earlier than before; later than before, or at other nodes
	Kept, Sooner, Late    int // begun as promised, before, or too late
	Ended                 int // jobs that ended, or needed none any more, before that
	Asked, Refused        int // nodes were asked to book, and did not
}

func (p *Promises) Add(o Promises) {
	*p = Promises{p.Made + o.Made, p.Forward + o.Forward, p.Broken + o.Broken, p.Kept + o.Kept, p.Sooner + o.Sooner, p.Late + o.Late,
		p.Ended + o.Ended, p.Asked + o.Asked, p.Refused + o.Refused}
}

// booked is a booking that a node has accepted, by that node's clock.
type booked struct {
	calendar.Booking
	told bool // its origin was told so: it is durable
}

// use is slots of a worker; until is zero for ever.
type use struct {
	slots int
	until time.Time
}

// bookingAudit is what the audit has seen of bookings.
type bookingAudit struct {
	Promises Promises
	clock    func(vicinity.ID) time.Duration // how far it is ahead; nil = clocks are not looked at
	has      map[vicinity.ID][]*booked
	uses     map[vicinity.ID]map[participant.WorkerID]use
	revived  map[vicinity.ID]bool // and have not been looked at since
	asking   *asking
	asks     map[askedBy]uint64                          // which booking each request was about
	answered map[uint64]map[vicinity.ID]calendar.Booking // by key: that are durable, as if all clocks were right
	promised map[jobs.ID]*record.Booking
}

// askedBy names a request of a node to another one.
type askedBy struct {
	from, to vicinity.ID
	number   uint64
}

// asking is a request for a booking that has just come to a node.
type asking struct {
	node   vicinity.ID
	number uint64
	*wire.Book
	no bool // it was refused
}

func newBookingAudit() bookingAudit {
	return bookingAudit{has: map[vicinity.ID][]*booked{}, uses: map[vicinity.ID]map[participant.WorkerID]use{}, revived: map[vicinity.ID]bool{}, asks: map[askedBy]uint64{},
		answered: map[uint64]map[vicinity.ID]calendar.Booking{}, promised: map[jobs.ID]*record.Booking{}}
}

// SetClocks has the audit know how far clocks are ahead.
func (a *Audit) SetClocks(ahead func(vicinity.ID) time.Duration) { a.clock = ahead }

// forgetBooked notes that a node has ended bookings.
func (a *Audit) forgetBooked(node vicinity.ID, which func(*booked) bool) {
	a.has[node] = slices.DeleteFunc(a.has[node], which)
}

// bookArrives notes what is asked of a node about bookings.
func (a *Audit) bookArrives(from, node vicinity.ID, r *request) {
	a.asking = nil
	switch b := r.body.(type) {
	case *wire.Book:
		if b.Job.Origin() == from {
			a.asking = &asking{node: node, number: r.number, Book: b}
			if b.Lease > 0 {
				a.asks[askedBy{from, node, r.number}] = b.Key
			}
		}
	case *wire.Release:
		if len(b.Ranks) == 0 && !b.Spares && b.Job.Origin() == from {
			a.forgetBooked(node, func(o *booked) bool { return o.Job == b.Job })
		}
	}
}

// Sends sees what a node sends: when it says that it has booked something, that is durable.
func (a *Audit) Sends(now time.Time, from *Model, m Message) {
	self := from.cfg.Self.ID
	r, ok := m.body.(reply)
	key, asked := a.asks[askedBy{m.To, self, r.number}]
	if !ok || !asked {
		return
	}
	if q := a.asking; q != nil && q.node == self && q.number == r.number && q.Job.Origin() == m.To {
		q.no, a.asking = !r.booked.OK, nil
		a.asked(now, from, q)
	}
	if !r.booked.OK {
		return
	}
	for _, o := range a.has[self] {
		if o.Key != key || o.Job.Origin() != m.To {
			continue
		}
		if _, durable := from.disk.booked[core.BookingName(o.Job, o.Key)]; !durable {
			a.Fail(o.Job, "node %s says that it has booked %d slots for job %s, which is not durable", self.Short(), o.Room.Slots, o.Job)
		}
		if o.told = true; a.answered[key] == nil {
			a.answered[key] = map[vicinity.ID]calendar.Booking{}
		}
		b := o.Booking
		if a.clock != nil {
			b.From = b.From.Add(-a.clock(self))
		}
		a.answered[key][self] = b
	}
}

// bookings checks a node that has just done something.
func (a *Audit) bookings(now time.Time, m *Model) {
	self, c := m.cfg.Self.ID, m.core.Claims
	if revived := a.revived[self]; revived {
		delete(a.revived, self)
		a.granted(now, m, false)
		for _, o := range a.has[self] { // its clock may be another one
			if most := now.Add(wire.BookLease); o.Lease.After(most) {
				o.Lease = most
			}
		}
	}
	a.forgetBooked(self, func(o *booked) bool {
		owner := !c.Limits.Hours.IsZero() && !slices.ContainsFunc(c.Calendar.Bookings(), func(b calendar.Booking) bool { return b.Job == o.Job && b.Key == o.Key })
		return c.Closed == wire.ReasonDraining || owner || !now.Before(o.Lease) || !o.To.IsZero() && !now.Before(o.To)
	})
	if q := a.asking; q != nil && q.node == self {
		a.asking = nil
		a.asked(now, m, q)
	}
	a.granted(now, m, true)
	for _, b := range c.Calendar.Bookings() {
		i := slices.IndexFunc(a.has[self], func(o *booked) bool { return o.Job == b.Job && o.Key == b.Key })
		switch {
		case i < 0:
			a.Fail(b.Job, "node %s has %d slots booked for job %s in %v, for which nobody has asked, or not any more", self.Short(), b.Room.Slots, b.Job, b.From.Sub(now))
		case b.Lease.After(a.has[self][i].Lease):
			a.Fail(b.Job, "node %s keeps a booking of job %s for %v more", self.Short(), b.Job, b.Lease.Sub(now))
		}
	}
}

// asked takes what was asked of a node, if it did not refuse.
func (a *Audit) asked(now time.Time, m *Model, q *asking) {
	self := m.cfg.Self.ID
	if q.Lease == 0 {
		a.forgetBooked(self, func(o *booked) bool { return o.Job == q.Job && o.Key == q.Key })
		return
	}
	if q.New != nil {
		a.Promises.Asked++
	}
	if q.no {
		if q.New != nil {
			a.Promises.Refused++
		}
		return
	}
	lease := now.Add(time.Duration(q.Lease) * time.Millisecond)
	i := slices.IndexFunc(a.has[self], func(o *booked) bool { return o.Job == q.Job && o.Key == q.Key })
	if q.New == nil {
		if i >= 0 {
			a.has[self][i].Lease = lease
		} else {
			a.Fail(q.Job, "node %s keeps on for job %s what it has not booked", self.Short(), q.Job)
		}
		return
	}
	a.forgetBooked(self, func(o *booked) bool { return o.Job == q.Job && o.Key == q.Key })
	// There is one more at most than a job may have: the one that was not confirmed makes room.
	known := m.core.Claims.BookedBy(q.Job)
	a.forgetBooked(self, func(o *booked) bool {
		return o.Job == q.Job && !slices.ContainsFunc(known, func(b calendar.Booking) bool { return b.Key == o.Key })
	})
	o := &booked{Booking: calendar.Booking{Job: q.Job, Key: q.Key, Room: calendar.Supply(q.New.Room), Workers: q.New.Workers, Lease: lease}}
	o.From = now.Add(time.Duration(q.New.In) * time.Millisecond)
	if q.New.Length > 0 {
		o.To = o.From.Add(time.Duration(q.New.Length) * time.Millisecond)
	}
	a.crowded(now, m, q.Job, o.From, o.To, o.Room.Slots, "books")
	if n := slices.IndexFunc(known, func(b calendar.Booking) bool { return b.Key == q.Key }); n >= 0 && o.To.Before(known[n].To) {
		o.To = known[n].To // how much longer a node keeps the room is its own affair
	}
	a.has[self] = append(a.has[self], o)
}

// granted notes which workers a node has, and checks that there was room for those that are new.
func (a *Audit) granted(now time.Time, m *Model, check bool) {
	self := m.cfg.Self.ID
	before, after := a.uses[self], map[participant.WorkerID]use{}
	var fresh []participant.WorkerID
	for _, w := range m.core.Part.All() {
		for _, k := range w.Workers {
			if k.Freed {
				continue
			}
			id := participant.WorkerID{Job: w.Job, RankAttempt: k.RankAttempt}
			u, known := before[id]
			if latest := now.Add(time.Duration(w.Spec.Walltime)); !check && u.until.After(latest) { // its clock was ahead
				u.until = latest
			}
			if !known {
				u.slots = w.Spec.Needs(k.Rank).Slots
				if u.until = now; w.Spec.Walltime == 0 {
					u.until = time.Time{}
				} else if check { // else the audit knew it, or its room was free again
					u.until = now.Add(time.Duration(w.Spec.Walltime))
				}
				fresh = append(fresh, id)
			}
			after[id] = u
		}
		if s := m.core.Claims.Spares[w.Job]; s != nil {
			id := participant.WorkerID{Job: w.Job, RankAttempt: jobs.RankAttempt{Rank: -1}}
			after[id] = use{slots: s.Workers * w.Spec.Needs(0).Slots}
			if before[id].slots < after[id].slots {
				fresh = append(fresh, id)
			}
		}
	}
	a.uses[self] = after
	for _, id := range fresh {
		a.forgetBooked(self, func(o *booked) bool { return o.Job == id.Job })
		if check {
			a.crowded(now, m, id.Job, now, after[id].until, 0, "is granted workers")
		}
	}
}

// crowded fails if there is a moment in [from, to) at which a node has promised more slots than it has, with so many
// more for a job; to is zero for ever.
func (a *Audit) crowded(now time.Time, m *Model, job jobs.ID, from, to time.Time, slots int, what string) {
	node := m.cfg.Self.ID
	moments := []time.Time{from}
	for _, o := range a.has[node] {
		moments = append(moments, o.From)
	}
	for _, at := range moments {
		if at.Before(from) || !to.IsZero() && !at.Before(to) {
			continue
		}
		used, others := slots, map[jobs.ID]int{}
		for _, u := range a.uses[node] {
			if u.until.IsZero() || at.Before(u.until) {
				used += u.slots
			}
		}
		for _, o := range a.has[node] {
			if o.Job != job && !at.Before(o.From) && (o.To.IsZero() || at.Before(o.To)) {
				others[o.Job] = max(others[o.Job], o.Room.Slots)
			}
		}
		for _, n := range others {
			used += n
		}
		if used > m.cfg.Self.Slots {
			a.Fail(job, "node %s has %d slots; job %s %s there from in %v on, and in %v %d are claimed, or booked by %d other jobs", node.Short(),
				m.cfg.Self.Slots, job, what, from.Sub(now), at.Sub(now), used, len(others))
		}
	}
}

// killedBooked: what a node has said that it has booked is on its disk. What else is there is booked again.
func (a *Audit) killedBooked(node vicinity.ID, left *disk) {
	a.revived[node], a.asking = true, nil
	list := a.has[node]
	for _, o := range list {
		if _, ok := left.booked[core.BookingName(o.Job, o.Key)]; o.told && !ok {
			a.Fail(o.Job, "node %s has said that it has booked %d slots for job %s, and has lost that", node.Short(), o.Room.Slots, o.Job)
		}
	}
	a.has[node] = nil
	for _, name := range slices.Sorted(maps.Keys(left.booked)) {
		var b booked
		if codec.Unmarshal(left.booked[name], &b.Booking) == nil {
			b.told = slices.ContainsFunc(list, func(o *booked) bool { return o.Job == b.Job && o.Key == b.Key && o.told })
			a.has[node] = append(a.has[node], &b)
		}
	}
}

// readBooking: a start is promised that all its nodes have booked, and at that time.
func (a *Audit) readBooking(job jobs.ID, ev *record.Event) string {
	before, now := a.promised[job], ev.Booking
	switch ev.Kind {
	case record.Booked:
		if a.promised[job] = now; now == nil {
			a.Promises.Ended++
			return ""
		}
		switch {
		case before == nil:
			a.Promises.Made++
		case now.At.Before(before.At):
			a.Promises.Forward++
		default:
			a.Promises.Broken++
		}
	case record.Granted:
		if a.promised[job] = nil; before == nil {
			return ""
		}
		switch d := ev.At.Sub(before.At); {
		case d < 0:
			a.Promises.Sooner++
		case d > Lateness:
			a.Promises.Late++
		default:
			a.Promises.Kept++
		}
		return ""
	default:
		return ""
	}
	for _, p := range now.Parts {
		b, ok := a.answered[now.Key][p.Node]
		switch at := now.At; {
		case !ok || b.Job != job || b.Workers != p.Workers || b.Room != calendar.Supply(p.Room):
			return "node " + p.Node.Short() + " has not said that it has booked that"
		case a.clock != nil:
			if d := b.From.Sub(at.Add(-a.clock(job.Origin()))); d < -time.Millisecond || d > wire.GrantTimeout {
				return "node " + p.Node.Short() + " has booked it for " + d.String() + " later"
			}
		}
	}
	return ""
}

// Lateness is how long after its promised start a job may begin: nodes are asked anew.
const Lateness = 10 * time.Second
