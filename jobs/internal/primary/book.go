package primary

import (
	"fmt"
	"math/rand/v2"
	"time"

	"zorilla/internal/codec"
	"zorilla/internal/units"
	"zorilla/jobs"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/internal/search"
	"zorilla/jobs/internal/timers"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// A job that is passed over has its start promised: nodes say from when on they have room for how many workers, the
// earliest time is taken that does, and each node is booked for its part. When the time comes the nodes offer as they
// always do; what was booked is given to nobody else.

const (
	// bookWithin bounds one booking, bookAhead is how far ahead of now a start is promised at the least.
	bookWithin = wire.GrantTimeout
	bookAhead  = 2 * time.Second
	// A plan that came to nothing is tried again after a pause, which doubles.
	planPause, maxPlanPause = 5 * time.Second, 5 * time.Minute
	// A job with a promised start looks for an earlier one after a tenth of the time until then.
	leastReplan, mostReplan = 30 * time.Second, wire.RenewBook
	// turnPause is how often a job looks whether it is its turn, leaveTurn after how many plans in vain it is another's.
	turnPause = 10 * time.Second
	leaveTurn = 3
	// callAgain is when a job whose start has come asks again for what was promised, twice as long after each time;
	// after lateCalls in vain it has another start promised.
	callAgain = 5 * time.Second
	lateCalls = 2
)

// DoBook has a node make, keep on or end a booking: Booked, if it makes or keeps it on.
type DoBook struct {
	To     vicinity.ID
	Book   wire.Book
	Within time.Duration // it is to be answered
}

func (DoBook) ofPrimary() {}

// Turns are whose start is promised of the jobs of an origin that did not ask for that: of one at a time, as in
// EASY backfilling (Lifka, The ANL/IBM SP scheduling system, 1995), since a promise to each of thousands that wait
// would leave no room to fill.
type Turns struct{ of jobs.ID }

// take reports whether it is a job's turn.
func (t *Turns) take(id jobs.ID) bool {
	if t.of == "" {
		t.of = id
	}
	return t.of == id
}

func (t *Turns) leave(id jobs.ID) {
	if t.of == id {
		t.of = ""
	}
}

// bookings are how a job comes to a promised start.
type bookings struct {
	Turns  *Turns // shared by the jobs of this node
	ledger *ledger
	search *search.Search
	rnd    *rand.Rand

	asking bool      // nodes are asked for a plan
	next   time.Time // of the next plan; zero = when the job has waited for long enough
	vain   int       // plans in a row that came to nothing, or promises that were not kept
	lost   bool      // nodes of the promised start are gone, or have not kept the promise
	making *making   // nodes are being booked
	renew  time.Time // when the nodes hear again that the promise is wanted
	call   time.Time // when what was promised is asked for
	calls  int       // how often it was
	why    string    // why no start could be promised; "" = one was, or nobody has tried
}

// making is a booking that is not promised yet.
type making struct {
	record.Booking
	open  map[vicinity.ID]bool // have not answered
	until time.Time
}

// wanted reports whether the job is to have its start promised, from when on, and whether it has asked for that.
func (b *bookings) wanted() (from time.Time, asked, ok bool) {
	r := &b.ledger.Rec
	wait, asked, ever := r.Spec.Search.Books(r.Spec.Least() > 1 || r.Spec.Slots > 1)
	if !ever || r.Spec.Array != nil || r.State != jobs.Pending || r.Blocked() || r.Closing() {
		return time.Time{}, false, false
	}
	return timers.Later(r.Eligible, r.Lacking).Add(wait), asked, true
}

// look does what is due.
func (b *bookings) look(now time.Time, d search.Demand) {
	from, asked, ok := b.wanted()
	switch {
	case !ok || d.Wanted == 0:
		b.drop(false)
		return
	case now.Before(from):
		return
	case !asked && !b.Turns.take(b.ledger.Rec.ID) && b.ledger.Rec.Booking == nil && b.making == nil:
		b.next = now.Add(turnPause)
		return
	}
	b.keep(now)
	switch {
	case b.making != nil:
		if !now.Before(b.making.until) {
			b.fail(now, "not all nodes have answered")
		}
	case b.asking:
		if done, _ := (search.Forecast{Search: b.search, Now: now}).Ready(); done {
			b.asking = false
			b.plan(now, d)
		}
	case !now.Before(b.next):
		b.asking = true
		b.search.Plan.Ask()
	}
}

// wake is when look is due; zero = only after an input.
func (b *bookings) wake() (at time.Time) {
	from, _, ok := b.wanted()
	switch {
	case !ok:
		return time.Time{}
	case b.making != nil:
		at = b.making.until
	case b.asking:
		_, at = search.Forecast{Search: b.search, Now: from}.Ready()
	default:
		at = timers.Later(from, b.next)
	}
	if b.ledger.Rec.Booking != nil {
		at = timers.Earlier(at, timers.Earlier(b.renew, b.call))
	}
	return at
}

// keep has nodes keep their promise, and asks for what was promised once the time has come.
func (b *bookings) keep(now time.Time) {
	promised := b.ledger.Rec.Booking
	if promised == nil {
		return
	}
	if !now.Before(b.renew) {
		b.renew = now.Add(wire.RenewBook)
		b.tell(promised, wire.BookLease)
	}
	if b.call.IsZero() {
		b.call = promised.At
	}
	if !now.Before(b.call) {
		if b.calls == lateCalls {
			b.broken(now, "it could not begin when that was promised")
		}
		b.call = now.Add(min(callAgain<<min(b.calls, 10), maxPlanPause))
		b.calls++
		b.search.Again(now)
	}
}

// tell has the nodes of a booking keep it on for a time, 0 = not at all.
func (b *bookings) tell(what *record.Booking, lease time.Duration) {
	for _, p := range what.Parts {
		b.ledger.Do(DoBook{To: p.Node, Within: bookWithin, Book: wire.Book{Job: b.ledger.Rec.ID, Key: what.Key, Lease: lease.Milliseconds()}})
	}
}

// plan has nodes booked for the earliest start that they have said is possible, unless another one is promised that is
// hardly later.
func (b *bookings) plan(now time.Time, d search.Demand) {
	r := &b.ledger.Rec
	length := time.Duration(r.Spec.Walltime)
	var until time.Time
	if !r.Spec.Search.Deadline.IsZero() {
		until = r.Spec.Search.Deadline.Add(-length)
	}
	at, parts := search.Forecast{Search: b.search, Now: now, Demand: d}.Earliest(now.Add(bookAhead), until)
	if at.IsZero() {
		b.pause(now, "no start can be promised: nodes do not know when they will have room")
		return
	}
	if p := r.Booking; p != nil && !b.lost && !at.Before(p.At.Add(-max(callAgain, p.At.Sub(now)/20))) {
		b.vain, b.next = 0, b.replan(now)
		return
	}
	m := &making{open: map[vicinity.ID]bool{}, until: now.Add(bookWithin)}
	in := (at.Sub(now) + time.Millisecond - 1).Milliseconds() // a moment before it there is no room
	m.Booking = record.Booking{Key: b.rnd.Uint64() | 1, At: at, Length: codec.Duration(length)}
	for _, p := range parts {
		m.open[p.Node] = true
		m.Parts = append(m.Parts, record.BookingPart{Node: p.Node, Name: p.Name, Workers: p.Workers, Room: p.Room})
		b.ledger.Do(DoBook{To: p.Node, Within: bookWithin, Book: wire.Book{
			Job: r.ID, Key: m.Key, Lease: wire.TentativeLease.Milliseconds(),
			New: &wire.Booking{In: in, Length: wire.Milliseconds(length), Workers: p.Workers, Room: p.Room},
		}})
	}
	b.making = m
}

// Answered takes what a node says to a booking: why it does not make it or keep it on, "" = it does. What is due then
// Tick does.
func (b *bookings) Answered(now time.Time, from vicinity.ID, key uint64, refused string) {
	switch m, promised := b.making, b.ledger.Rec.Booking; {
	case m != nil && m.Key == key && m.open[from]:
		if delete(m.open, from); refused != "" {
			b.fail(now, refused)
		} else if len(m.open) == 0 {
			b.made(now)
		}
	case promised != nil && promised.Key == key && promised.Has(from) && refused != "":
		b.broken(now, refused)
	}
}

// made promises the start to the user, now that all nodes have promised it.
func (b *bookings) made(now time.Time) {
	before, m := b.ledger.Rec.Booking, b.making.Booking
	b.making, b.lost, b.why = nil, false, ""
	b.ledger.emit(record.Event{Kind: record.Booked, At: now, Placed: record.Placed{Booking: &m}})
	b.tell(&m, wire.BookLease)
	if before != nil {
		b.tell(before, 0)
	}
	b.renew, b.call, b.calls, b.next = now.Add(wire.RenewBook), time.Time{}, 0, b.replan(now)
}

// replan is when an earlier start is looked for than the promised one.
func (b *bookings) replan(now time.Time) time.Time {
	return now.Add(min(max(b.ledger.Rec.Booking.At.Sub(now)/10, leastReplan), mostReplan))
}

// fail gives up a booking of which a node does not make its part.
func (b *bookings) fail(now time.Time, why string) {
	b.tell(&b.making.Booking, 0)
	b.making = nil
	b.pause(now, "no start could be promised: "+why)
}

// pause tries again later.
func (b *bookings) pause(now time.Time, why string) {
	pause := min(planPause<<min(b.vain, 10), maxPlanPause)
	b.next = now.Add(pause + time.Duration(b.rnd.Int64N(int64(pause)/2)))
	promised := b.ledger.Rec.Booking != nil
	if b.vain++; b.vain%leaveTurn == 0 && !promised {
		b.Turns.leave(b.ledger.Rec.ID)
	}
	if !promised || b.lost {
		b.why = why
		b.ledger.Version++
	}
}

// broken has another start promised, since this one is not kept: at once, and if that happens again and again, later.
func (b *bookings) broken(now time.Time, why string) {
	if b.lost {
		return
	}
	b.lost, b.next = true, now
	if b.vain > 0 {
		b.next = now.Add(min(planPause<<min(b.vain-1, 10), maxPlanPause))
	}
	b.why = why
	b.vain++
	b.ledger.Version++
}

// gone does so if a node was promised that is no member any more.
func (b *bookings) gone(now time.Time, id vicinity.ID) {
	if b.ledger.Rec.Booking.Has(id) {
		b.broken(now, "a node of it is gone")
	}
}

// drop ends what was booked: the job wants no start any more, or is granted one. A grant ends what its node has booked by
// itself, but may be refused, and then nobody else would.
func (b *bookings) drop(granted bool) {
	promised := b.ledger.Rec.Booking
	if promised == nil && b.making == nil && !b.asking && b.next.IsZero() {
		return
	}
	for _, what := range []*record.Booking{promised, b.current()} {
		if what != nil {
			b.tell(what, 0)
		}
	}
	if promised != nil && !granted { // else the grant ends it
		b.ledger.emit(record.Event{Kind: record.Booked})
	}
	b.Turns.leave(b.ledger.Rec.ID)
	*b = bookings{Turns: b.Turns, ledger: b.ledger, search: b.search, rnd: b.rnd}
}

func (b *bookings) current() *record.Booking {
	if b.making == nil {
		return nil
	}
	return &b.making.Booking
}

// text says when the start is promised for, or why it is not; "" = nothing.
func (b *bookings) text() string {
	p := b.ledger.Rec.Booking
	if p == nil || b.lost {
		return b.why
	}
	return fmt.Sprintf("its start is promised for %s, at %s", p.At.Local().Format("Mon 15:04:05 MST"), units.Count(len(p.Parts), "node", "nodes"))
}
