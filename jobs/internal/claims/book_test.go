package claims

import (
	"errors"
	"slices"
	"testing"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/internal/calendar"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/internal/wire/wiretest"
	"zorilla/vicinity"
)

// booked is a node of four slots, of which a gang has booked three from in an hour on, for an hour.
type booked struct {
	*Claims
	t    *testing.T
	gang wire.Advertisement
}

func newBooked(t *testing.T) *booked {
	t.Helper()
	b := &booked{New(vicinity.Member{ID: jobtest.Node(0), Slots: 4}, jobtest.Rand()), t, timed("gangs", 3, time.Hour)}
	b.gang.Stamp = 9 // after all others
	b.yes(0, b.ask(1, wire.BookLease, time.Hour, 3))
	return b
}

// A walltime need not be whole milliseconds, as lengths are that travel.
func TestPartsOfMilliseconds(t *testing.T) {
	for _, walltime := range []time.Duration{1, time.Hour, time.Hour + 1, time.Hour + time.Millisecond - 1} {
		spec := jobs.Spec{Slots: 1, Min: 1, Max: 1, Walltime: codec.Duration(walltime)}
		ad := wiretest.Ad(jobtest.Node(1), "short", 1, 1)
		ad.AskFor(&spec)
		c := New(vicinity.Member{ID: jobtest.Node(0), Slots: 4}, jobtest.Rand())
		g := wiretest.Grant(ad, c.Advertised(after(0), ad).Key, 1)
		if g.Spec.Walltime = spec.Walltime; ad.Length == 0 || length(&ad)-walltime >= time.Millisecond {
			t.Errorf("a walltime of %v takes %v", walltime, length(&ad))
		}
		if err := c.Granted(after(0), ad.Origin(), g); err != nil {
			t.Errorf("a walltime of %v: %v", walltime, err)
		}
	}
}

// timed is the advertisement of a job with a walltime.
func timed(job string, wanted int, walltime time.Duration) wire.Advertisement {
	ad := wiretest.Ad(jobtest.Node(1), job, wanted, 1)
	ad.Length = walltime.Milliseconds()
	return ad
}

// ask books workers of the gang for an hour; none = the booking is kept on.
func (b *booked) ask(key uint64, lease, in time.Duration, workers int) *wire.Book {
	m := &wire.Book{Job: b.gang.Job, Key: key, Lease: lease.Milliseconds()}
	if workers > 0 {
		m.New = &wire.Booking{In: in.Milliseconds(), Length: time.Hour.Milliseconds(), Workers: workers, Room: wire.Room{Slots: workers}}
	}
	return m
}

func after(d time.Duration) time.Time { return jobtest.Start.Add(d) }

func (b *booked) yes(at time.Duration, m *wire.Book) {
	b.t.Helper()
	if kept, a := b.Book(after(at), m); !a.OK || (kept != nil) != (m.Lease > 0) {
		b.t.Errorf("after %v %+v gives %+v, to be written down: %+v", at, m, a, kept)
	}
}

func (b *booked) no(at time.Duration, m *wire.Book, why string) {
	b.t.Helper()
	if kept, a := b.Book(after(at), m); a.OK || a.Reason != why || kept != nil {
		b.t.Errorf("after %v %+v gives %+v, want no: %s", at, m, a, why)
	}
}

// offers fails unless a job is offered so many workers, which are given back.
func (b *booked) offers(at time.Duration, ad wire.Advertisement, want int) {
	b.t.Helper()
	a := b.Advertised(after(at), ad)
	if a.Workers != want || a.Check() != nil {
		b.t.Errorf("after %v %s is offered %d workers of %v, want %d", at, ad.Job, a.Workers, length(&ad), want)
	}
	b.Released(ad.Job, a.Key, true)
}

// What a gang has booked is for short jobs until then, not for those that may run for too long, or for ever, also if
// they go before it; when its time has come it is the gang's.
func TestBookingsKeepLongJobsOut(t *testing.T) {
	b := newBooked(t)
	b.offers(0, timed("brief", 4, 59*time.Minute), 4)
	b.offers(0, timed("heavy", 4, time.Hour), 1)
	b.offers(0, timed("never", 4, 0), 1)
	b.offers(time.Minute, timed("brief", 4, 59*time.Minute), 1)
	b.offers(time.Minute, b.gang, 3)
	urgent := timed("again", 4, time.Hour)
	urgent.Priority = 100
	b.offers(time.Minute, urgent, 1)
	b.yes(50*time.Minute, b.ask(1, wire.BookLease, 0, 0))
	b.offers(90*time.Minute, timed("brief", 4, time.Second), 1)
	b.yes(90*time.Minute, b.ask(1, wire.BookLease, 0, 0))
	b.Offers(after(90 * time.Minute))
	if at := b.Due(); !at.Equal(after(2*time.Hour + margin)) {
		t.Errorf("it wakes at %v, not when the booking ends", at)
	}
	b.offers(2*time.Hour+margin, timed("never", 4, 0), 4)
	if list := b.Ended(); len(list) != 1 || b.Booked() != 0 {
		t.Errorf("the disk is to forget %+v", list)
	}
}

// When a booking begins the job is offered it, although another one goes before; a grant ends the booking.
func TestBookedRoomIsOffered(t *testing.T) {
	b := newBooked(t)
	older := timed("first", 4, time.Hour)
	older.Priority, older.Life = 100, wire.MaxLife.Milliseconds()*12
	blocking := timed("begun", 4, 59*time.Minute)
	a := b.Advertised(after(0), blocking)
	g := wiretest.Grant(blocking, a.Key, 4)
	g.Spec.Walltime = codec.Duration(59 * time.Minute)
	if err := b.Granted(after(0), blocking.Origin(), g); err != nil {
		t.Fatal(err)
	}
	b.gang.Life = older.Life
	for _, ad := range []wire.Advertisement{older, b.gang} {
		if a := b.Advertised(after(0), ad); a.Workers != 0 || len(b.Queue) == 0 {
			t.Fatalf("it is offered %+v", a)
		}
	}
	b.yes(30*time.Minute, b.ask(1, wire.BookLease, 0, 0))
	b.Freed(blocking.Job, 4, blocking.Needs)
	out := b.Offers(after(time.Hour))
	if len(out) != 2 || out[0].Answer.Job != older.Job || out[0].Answer.Workers != 1 || out[1].Answer.Job != b.gang.Job || out[1].Answer.Workers != 3 {
		t.Fatalf("when it begins it offers %+v", out)
	}
	g = wiretest.Grant(b.gang, out[1].Answer.Key, 2)
	g.Spec.Walltime = codec.Duration(time.Hour)
	if err := b.Granted(after(time.Hour), b.gang.Origin(), g); err != nil || b.Booked() != 0 {
		t.Fatalf("its grant: %v; %d bookings are left", err, b.Booked())
	}
	if out := b.Offers(after(time.Hour)); len(out) != 1 || out[0].Answer.Job != older.Job || out[0].Answer.Workers != 2 {
		t.Errorf("what it did not take is offered: %+v", out)
	}
}

// A job may begin a little late in the time that it has booked: the next booking leaves room for that.
func TestBookedRoomIsThereForLateJobs(t *testing.T) {
	b := newBooked(t)
	next := b.ask(2, wire.BookLease, 2*time.Hour, 2)
	next.Job = timed("after", 2, time.Hour).Job
	b.no(0, next, wire.ReasonBusy)
	next.New.In = (2*time.Hour + margin).Milliseconds()
	b.yes(0, next)
	before := b.ask(3, wire.BookLease, 0, 2)
	before.Job = timed("early", 2, time.Hour).Job
	b.no(0, before, wire.ReasonBusy)
	b.yes(50*time.Minute, b.ask(1, wire.BookLease, 0, 0))
	next.New = nil
	b.yes(50*time.Minute, next)
	b.offers(time.Hour, b.gang, 3)
	b.offers(time.Hour+margin, b.gang, 3)
	b.offers(time.Hour+margin+1, b.gang, 2)
}

// Alternatives of one job are in each other's way not, but take what is the most of others. A third takes the place of
// one that was not confirmed.
func TestAlternativesOfABooking(t *testing.T) {
	b := newBooked(t)
	b.yes(0, b.ask(2, wire.TentativeLease, 30*time.Minute, 4))
	b.offers(0, timed("brief", 4, 45*time.Minute), 0)
	b.offers(0, timed("brief", 4, 29*time.Minute), 4)
	b.yes(0, b.ask(3, wire.TentativeLease, 90*time.Minute, 2))
	b.offers(0, timed("brief", 4, 45*time.Minute), 4)
	b.yes(0, b.ask(3, wire.BookLease, 0, 0))
	b.no(0, b.ask(4, wire.TentativeLease, time.Minute, 1), manyBookings)
	b.yes(0, b.ask(1, 0, 0, 0))
	b.yes(0, b.ask(1, 0, 0, 0))
	b.offers(0, timed("brief", 4, 89*time.Minute), 4)
	b.no(0, b.ask(1, wire.BookLease, 0, 0), notBooked)
	list := b.Waiting(after(0))
	if i := slices.IndexFunc(list, func(w jobs.Waiting) bool { return w.Booked != nil }); i < 0 || !list[i].Since.IsZero() || list[i].Slots != 1 ||
		list[i].Booked.Workers != 2 || !list[i].Booked.Confirmed || !list[i].Booked.From.Equal(after(90*time.Minute)) {
		t.Errorf("it lists %+v", list)
	}
}

// What nobody confirms goes, and what is not confirmed again.
func TestLeasesOfBookingsEnd(t *testing.T) {
	b := newBooked(t)
	b.yes(0, b.ask(2, wire.TentativeLease, 3*time.Hour, 4))
	b.Offers(after(0))
	if at := b.Wake(); !at.Equal(after(wire.TentativeLease)) {
		t.Errorf("it wakes at %v", at)
	}
	b.no(wire.TentativeLease, b.ask(2, wire.BookLease, 0, 0), notBooked)
	b.yes(30*time.Minute, b.ask(1, wire.BookLease, 0, 0))
	b.offers(80*time.Minute, timed("never", 4, 0), 1)
	b.offers(90*time.Minute, timed("never", 4, 0), 4)
}

// Why a booking cannot be made.
func TestWhatCannotBeBooked(t *testing.T) {
	for why, prepare := range map[string]func(b *booked) *wire.Book{
		wire.ReasonSlots: func(b *booked) *wire.Book { return b.ask(2, wire.BookLease, 0, 5) },
		wire.ReasonBusy: func(b *booked) *wire.Book { // what is held may be used until after that
			b.Advertised(after(0), timed("keeps", 1, time.Minute))
			return b.ask(2, wire.BookLease, time.Minute, 4)
		},
		wire.ReasonPaused: func(b *booked) *wire.Book {
			b.Limit(jobs.Limits{Paused: true})
			return b.ask(2, wire.BookLease, 0, 1)
		},
		wire.ReasonDenied: func(b *booked) *wire.Book {
			var l jobs.Limits
			if err := l.Change("deny=" + string(jobtest.Node(1))); err != nil {
				b.t.Fatal(err)
			}
			b.Limit(l)
			return b.ask(2, wire.BookLease, 0, 1)
		},
		"owner allows 1 worker per job": func(b *booked) *wire.Book {
			b.Limit(jobs.Limits{MaxWorkersPerJob: 1})
			return b.ask(2, wire.BookLease, 0, 2)
		},
		wire.ReasonDraining: func(b *booked) *wire.Book {
			if b.Drain(); b.Booked() != 0 {
				b.t.Error("a node that drains has bookings")
			}
			return b.ask(1, wire.BookLease, 0, 2)
		},
	} {
		b := newBooked(t)
		b.no(0, prepare(b), why)
		if b.Limits.Paused && b.Booked() != 1 {
			t.Error("a pause ends bookings")
		}
	}
	b := newBooked(t)
	other := b.ask(2, wire.BookLease, 30*time.Minute, 2)
	other.Job = timed("third", 1, 0).Job
	b.no(0, other, wire.ReasonBusy)
	b.Advertised(after(0), timed("keeps", 4, time.Minute))
	b.yes(0, b.ask(2, wire.BookLease, 2*time.Minute, 4))
}

// A grant has no longer walltime than the offer was asked for, nor is it in the way of what was booked since.
func TestGrantsKeepTheirTime(t *testing.T) {
	for _, c := range []struct {
		asked, granted, booked time.Duration
		refused                bool
	}{
		{asked: time.Minute, granted: time.Minute},
		{asked: time.Minute, granted: time.Second},
		{asked: time.Minute, granted: time.Minute + 1, refused: true},
		{asked: time.Minute, refused: true},
		{granted: time.Minute},
		{},
		{asked: time.Hour, granted: time.Hour, booked: time.Minute, refused: true},
		{asked: time.Hour, granted: time.Second, booked: time.Minute},
	} {
		b := newBooked(t)
		b.yes(0, b.ask(1, 0, 0, 0))
		ad := timed("pairs", 2, c.asked)
		key := b.Advertised(after(0), ad).Key
		if c.booked > 0 { // since a hold may stand for longer than it was counted for
			m := b.ask(1, wire.BookLease, c.booked, 4)
			b.Holds[ad.Job].Ad.Length = 1
			b.yes(0, m)
			b.Holds[ad.Job].Ad.Length = ad.Length
		}
		g := wiretest.Grant(ad, key, 2)
		g.Spec.Walltime = codec.Duration(c.granted)
		if err := b.Granted(after(0), ad.Origin(), g); errors.Is(err, jobs.ErrRefused) != c.refused {
			t.Errorf("%+v gives %v", c, err)
		}
	}
}

// Of two jobs that have booked a node one behind the other the first is offered it, although somewhat late.
func TestOneBookingBehindTheOther(t *testing.T) {
	b := newBooked(t)
	next := timed("nexts", 4, time.Hour)
	next.Plan = true
	steps := b.Advertised(after(0), next).Steps
	m := *b.ask(1, wire.BookLease, 0, 4)
	m.Job, m.New.In = next.Job, steps[len(steps)-1].In
	b.yes(0, &m)
	keep := m
	keep.New = nil
	b.yes(50*time.Minute, &keep)
	b.yes(50*time.Minute, b.ask(1, wire.BookLease, 0, 0))
	for _, late := range []time.Duration{0, calendar.Overdue + wire.HoldLease} {
		b.offers(time.Hour+late, b.gang, 3)
	}
}

// Who plans hears when how many workers could begin, of what the job's owner lets it have; for kinds in which room.
func TestStepsOfAnAnswer(t *testing.T) {
	b := newBooked(t)
	a := b.Advertised(after(0), timed("pairs", 4, 10*time.Minute))
	if a.Steps != nil {
		t.Errorf("who does not ask gets %+v", a.Steps)
	}
	b.Released(a.Job, 0, true)
	plan := timed("steps", 4, 10*time.Minute)
	plan.Plan = true
	want := []wire.Step{{Workers: 4}, {In: (50*time.Minute - margin).Milliseconds() + 1, Workers: 1}, {In: (2*time.Hour + margin).Milliseconds(), Workers: 4}}
	b.steps(plan, want)
	want[0].Workers, want[2].Workers = 2, 2
	b.Limit(jobs.Limits{MaxWorkersPerJob: 2})
	b.steps(plan, want)
	b.Limit(jobs.Limits{})
	own := b.gang // what is booked and held for it is not in its way
	own.Plan = true
	b.steps(own, []wire.Step{{Workers: 4}})
	b.Limit(jobs.Limits{Paused: true})
	b.steps(own, nil)

	spec, n := mixed(), New(member(), jobtest.Rand())
	kinds := adOf(&spec, "kinds", 24, 1)
	kinds.Plan = true
	m := &wire.Book{Job: b.gang.Job, Key: 1, Lease: 1000, New: &wire.Booking{Workers: 1, Room: wire.Room{Slots: 5, Memory: 7 << 30, GPUs: 1}}}
	if _, booked := n.Book(after(0), m); !booked.OK {
		t.Fatal(booked)
	}
	got := n.Advertised(after(0), kinds)
	if len(got.Steps) != 1 || got.Steps[0].Workers != 3 || *got.Steps[0].Room != (wire.Room{Slots: 3, Memory: 1 << 30, GPUs: 1}) || got.Check() != nil {
		t.Errorf("with kinds it answers %+v", got)
	}
}

func (b *booked) steps(ad wire.Advertisement, want []wire.Step) {
	b.t.Helper()
	a := b.Advertised(after(0), ad)
	b.Released(ad.Job, 0, true)
	if len(a.Steps) != len(want) || a.Check() != nil {
		b.t.Fatalf("it answers %+v, want %+v", a, want)
	}
	for i := range want {
		if a.Steps[i] != want[i] {
			b.t.Errorf("it answers %+v, want %+v", a.Steps, want)
		}
	}
}

// Who waits is passed over by shorter jobs, and hears when a booking has ended: also one whose origin gave back what it
// was offered beside that.
func TestQueueBesideBookings(t *testing.T) {
	b := newBooked(t)
	b.yes(0, b.ask(1, wire.BookLease, 50*time.Minute, 4))
	waits, brief := timed("first", 2, time.Hour), timed("brief", 4, time.Minute)
	waits.Life = 2 * time.Hour.Milliseconds()
	brief.Stamp = 2
	begun := timed("begun", 4, time.Second)
	g := wiretest.Grant(begun, b.Advertised(after(0), begun).Key, 4)
	g.Spec.Walltime = codec.Duration(time.Second)
	if err := b.Granted(after(0), begun.Origin(), g); err != nil {
		t.Fatal(err)
	}
	for _, ad := range []wire.Advertisement{waits, brief} {
		b.Advertised(after(0), ad)
	}
	b.Freed(begun.Job, 4, begun.Needs)
	if out := b.Offers(after(0)); len(out) != 1 || out[0].Answer.Job != brief.Job || out[0].Answer.Workers != 4 {
		t.Fatalf("it offers %+v", out)
	}
	b.Released(brief.Job, 0, true)
	b.yes(0, b.ask(1, wire.TentativeLease, 50*time.Minute, 3))
	if out := b.Offers(after(0)); len(out) != 1 || out[0].Answer.Job != waits.Job || out[0].Answer.Workers != 1 {
		t.Fatalf("when less is booked it offers %+v", out)
	}
	b.Released(waits.Job, 0, false)
	if out := b.Offers(after(time.Second)); len(out) != 0 {
		t.Errorf("of what it gave back it is offered %+v", out)
	}
	if out := b.Offers(b.Wake()); len(out) != 1 || out[0].Answer.Workers != 2 || !b.at.Equal(after(wire.TentativeLease)) {
		t.Errorf("when nothing is booked any more, after %v, it is offered %+v", b.at.Sub(jobtest.Start), out)
	}
}

// Where the owner allows so many jobs, one that has booked counts for as long as it would run.
func TestBookingsCountForTheOwnersLimit(t *testing.T) {
	b := newBooked(t)
	b.Limit(jobs.Limits{MaxJobs: 1})
	b.offers(0, timed("heavy", 1, time.Hour), 0)
	b.offers(0, timed("brief", 1, time.Minute), 1)
	b.offers(0, b.gang, 3)
}
