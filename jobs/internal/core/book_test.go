package core

import (
	"errors"
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/primary"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/internal/wire/wiretest"
	"zorilla/vicinity"
)

// booker is a node, and what it wants done about bookings.
type booker struct {
	*Core
	t        *testing.T
	keep     []DoKeepBooking
	forget   []string
	answered []wire.Booked
}

func newBooker(t *testing.T) *booker {
	return &booker{Core: New(vicinity.Member{ID: jobtest.Node(1), Slots: 4}, few{}, jobtest.Rand(), time.Hour), t: t}
}

func (b *booker) advance(now time.Time) {
	list, _ := b.Advance(now)
	for _, a := range list {
		switch e := a.Effect.(type) {
		case DoKeepBooking:
			b.keep = append(b.keep, e)
		case DoForgetBooking:
			b.forget = append(b.forget, e.Name)
		case DoBooked:
			b.answered = append(b.answered, e.Answer)
		}
	}
}

// ask books two slots from in a minute on, keeps that on, or ends it.
func (b *booker) ask(now time.Time, lease time.Duration, anew bool) {
	b.t.Helper()
	m := &wire.Book{Job: wiretest.Job, Key: 7, Lease: lease.Milliseconds()}
	if anew {
		m.New = &wire.Booking{In: 60_000, Workers: 2, Room: wire.Room{Slots: 2}}
	}
	if err := b.Bookings.Book(now, m.Job.Origin(), 1, m); err != nil {
		b.t.Fatal(err)
	}
	b.advance(now)
}

// done tells that the last booking was written down, or why not, and wants as many answers, the last of which is so.
func (b *booker) done(err error, answers int, ok bool) {
	b.t.Helper()
	b.Bookings.Kept(&b.keep[len(b.keep)-1], err)
	b.advance(jobtest.Start)
	if n := len(b.answered); n != answers || b.answered[n-1].OK != ok {
		b.t.Errorf("it answers %+v", b.answered)
	}
}

// A booking is answered when it is durable, and not made if it cannot be, or has ended meanwhile.
func TestBookingsAreDurableBeforeTheyAreAnswered(t *testing.T) {
	b := newBooker(t)
	b.ask(jobtest.Start, wire.TentativeLease, true)
	if len(b.keep) != 1 || len(b.answered) != 0 {
		t.Fatalf("it writes %+v, and answers %+v", b.keep, b.answered)
	}
	b.done(nil, 1, true)
	b.ask(jobtest.Start, wire.BookLease, false)
	if len(b.keep) != 2 || len(b.answered) != 1 {
		t.Fatalf("when it is confirmed it writes %+v, and answers %+v", b.keep, b.answered)
	}
	name, data := b.keep[1].Written()
	for which, next := range map[string]*booker{"its next life": newBooker(t), "itself": b} {
		if !next.Bookings.Rebook(jobtest.Start.Add(time.Minute), name, data) || next.Claims.Booked() != 1 {
			t.Errorf("%s does not know the booking", which)
		}
	}
	wrong := newBooker(t) // its clock was before
	if wrong.Bookings.Rebook(jobtest.Start.Add(-5*time.Hour), name, data); !wrong.Claims.Calendar.Bookings()[0].Lease.Equal(jobtest.Start.Add(wire.BookLease - 5*time.Hour)) {
		t.Errorf("it keeps on %+v", wrong.Claims.Calendar.Bookings())
	}
	for what, ok := range map[string]bool{
		"too late":     b.Bookings.Rebook(jobtest.Start.Add(wire.BookLease), name, data),
		"another name": b.Bookings.Rebook(jobtest.Start, BookingName(wiretest.Job, 8), data),
		"damaged":      b.Bookings.Rebook(jobtest.Start, name, data[:9]),
	} {
		if ok {
			t.Errorf("it takes what is %s", what)
		}
	}
	b.Drain(jobtest.Start)
	b.done(nil, 2, false)
	if len(b.forget) != 1 || b.forget[0] != name {
		t.Errorf("when it drains it forgets %q", b.forget)
	}
	b = newBooker(t)
	b.ask(jobtest.Start, wire.BookLease, true)
	b.done(errors.New("no disk"), 1, false)
	if b.Claims.Booked() != 0 {
		t.Error("what could not be written is booked")
	}
	b.ask(jobtest.Start, wire.BookLease, false) // what is refused needs no disk
	if n := len(b.answered); n != 2 || b.answered[1].OK {
		t.Errorf("it answers %+v", b.answered)
	}
}

// What has ended is removed before it is written anew.
func TestBookingsOfOneName(t *testing.T) {
	b := newBooker(t)
	b.ask(jobtest.Start, wire.TentativeLease, true)
	later := jobtest.Start.Add(wire.TentativeLease)
	m := &wire.Book{Job: wiretest.Job, Key: 7, Lease: 1000, New: &wire.Booking{Workers: 1, Room: wire.Room{Slots: 1}}}
	if err := b.Bookings.Book(later, m.Job.Origin(), 2, m); err != nil {
		t.Fatal(err)
	}
	order := ""
	list, _ := b.Advance(later)
	for _, a := range list {
		switch a.Effect.(type) {
		case DoForgetBooking:
			order += "forget "
		case DoKeepBooking:
			order += "keep "
		}
	}
	if order != "forget keep " {
		t.Errorf("it does: %s", order)
	}
}

// Only the origin of a job may book for it, or end what it has booked.
func TestWhoMayBook(t *testing.T) {
	b, other := newBooker(t), jobtest.Node(9)
	b.ask(jobtest.Start, wire.BookLease, true)
	if err := b.Bookings.Book(jobtest.Start, other, 1, &wire.Book{Job: wiretest.Job, Key: 7}); !errors.Is(err, jobs.ErrRefused) {
		t.Errorf("another node gets %v", err)
	}
	b.Released(jobtest.Start, other, &wire.Release{Job: wiretest.Job})
	b.Released(jobtest.Start, wiretest.Job.Origin(), &wire.Release{Job: wiretest.Job, Ranks: []jobs.RankAttempt{{Attempt: 1}}})
	b.Yielded(jobtest.Start, wiretest.Job.Origin(), primary.DoYield{Job: wiretest.Job, Forget: true})
	if b.Claims.Booked() != 1 {
		t.Error("the booking has ended")
	}
	b.Released(jobtest.Start, wiretest.Job.Origin(), &wire.Release{Job: wiretest.Job})
	if b.Claims.Booked() != 0 {
		t.Error("a booking outlives its job")
	}
	b.ask(jobtest.Start, wire.BookLease, true)
	if b.Leave(jobtest.Start, time.Minute); b.Claims.Booked() != 1 {
		t.Error("a node that will be back keeps no promise")
	}
	if b.Leave(jobtest.Start, 0); b.Claims.Booked() != 0 {
		t.Error("a node that leaves is booked")
	}
}
