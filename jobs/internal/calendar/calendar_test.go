package calendar

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"zorilla/internal/seeds"
	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
)

// horizon is after all ends that the table below knows, in ticks.
const horizon = 60

// tick is the time of a tick of the table.
func tick(n int) time.Time { return jobtest.Start.Add(time.Duration(n) * time.Second) }

// table is a calendar worked out tick by tick.
type table struct {
	t      *testing.T
	seed   uint64
	rnd    *rand.Rand
	c      Calendar
	now    int
	claims []claim
	booked []Booking
}

// taken is what claims, and bookings of others, take of a tick.
func (x *table) taken(at int, as jobs.ID) (s Supply) {
	for _, u := range x.claims {
		until := u.until
		if !until.IsZero() && !until.After(tick(x.now)) {
			until = tick(x.now).Add(Overdue)
		}
		if until.IsZero() || tick(at).Before(until) {
			s = s.Minus(u.needs, -1)
		}
	}
	most := map[jobs.ID]Supply{}
	for _, b := range x.booked {
		if b.Job != as && b.active(tick(at)) {
			most[b.Job] = most[b.Job].atLeast(b.Room)
		}
	}
	for _, room := range most {
		s = s.plus(room)
	}
	return s
}

// least is what is free for a job in all ticks of [from, to).
func (x *table) least(from, to int, as jobs.ID) Supply {
	s := x.c.Has.Beside(x.taken(from, as))
	for at := from + 1; at < to; at++ {
		s = s.Limited(x.c.Has.Beside(x.taken(at, as)))
	}
	return s
}

func (x *table) overdue() bool {
	return slices.ContainsFunc(x.claims, func(u claim) bool { return !u.until.IsZero() && !u.until.After(tick(x.now)) })
}

func (x *table) job() jobs.ID { return jobs.ID(fmt.Sprint("job", x.rnd.IntN(8))) }

func (x *table) needs() jobs.Needs {
	return jobs.Needs{Slots: 1 + x.rnd.IntN(3), Memory: int64(x.rnd.IntN(4)), GPUs: x.rnd.IntN(2)}
}

// span is some time from now on; to is 0 for ever.
func (x *table) span() (from, to int) {
	if from = x.now + x.rnd.IntN(12); x.rnd.IntN(2) == 0 {
		from = x.now
	}
	if to = from + 1 + x.rnd.IntN(15); x.rnd.IntN(6) == 0 {
		to = 0
	}
	return from, to
}

func at(to int) (t time.Time) {
	if to > 0 {
		t = tick(to)
	}
	return t
}

// step lets something happen.
func (x *table) step() {
	switch x.rnd.IntN(8) {
	case 0, 1: // a claim, by the rule for offers: it has the place of what the job booked
		job, needs := x.job(), x.needs()
		_, to := x.span()
		if x.c.Least(tick(x.now), tick(x.now), at(to), job).Fits(needs) == 0 || to > 0 && to <= x.now {
			return
		}
		x.c.Unbook(job, func(*Booking) bool { return true })
		x.booked = slices.DeleteFunc(x.booked, func(o Booking) bool { return o.Job == job })
		x.c.Claim(job, needs, at(to))
		x.claims = append(x.claims, claim{job, needs, at(to)})
	case 2, 3: // one ends, of those that are alike the first
		if len(x.claims) == 0 {
			return
		}
		u := x.claims[x.rnd.IntN(len(x.claims))]
		i := -1
		for k, o := range x.claims {
			if o.job == u.job && o.needs == u.needs && (i < 0 || !o.until.IsZero() && (x.claims[i].until.IsZero() || o.until.Before(x.claims[i].until))) {
				i = k
			}
		}
		x.c.Free(u.job, u.needs)
		x.claims = slices.Delete(x.claims, i, i+1)
	case 4, 5:
		x.book()
	case 6: // used, or given up
		if len(x.booked) > 0 {
			b := x.booked[x.rnd.IntN(len(x.booked))]
			which := func(o *Booking) bool { return o.Key == b.Key || x.rnd.IntN(2) == 0 }
			for _, ended := range x.c.Unbook(b.Job, which) {
				x.booked = slices.DeleteFunc(x.booked, func(o Booking) bool { return o == ended })
			}
		}
	case 7:
		x.now += x.rnd.IntN(3)
		ended, _ := x.c.Expire(tick(x.now))
		for _, e := range ended {
			if !e.Over(tick(x.now)) {
				x.fail("%+v was ended", e)
			}
		}
		x.booked = slices.DeleteFunc(x.booked, func(o Booking) bool { return o.Over(tick(x.now)) })
	}
}

// book makes a booking, or another of the same job, or keeps one on.
func (x *table) book() {
	from, to := x.span()
	b := Booking{Job: x.job(), Key: uint64(1 + x.rnd.IntN(2)), From: tick(from), To: at(to), Workers: 1, Lease: tick(x.now + 1 + x.rnd.IntN(20))}
	b.Room = Supply{}.Minus(x.needs(), -1-x.rnd.IntN(2))
	fits := x.c.Fits(tick(x.now), &b, nil)
	if to == 0 {
		to = x.now + horizon
	}
	if want := x.least(from, to, b.Job).Holds(b.Room); fits != want {
		x.fail("%+v fits: %v, want %v", b, fits, want)
	}
	if fits {
		x.c.Book(b)
		x.booked = append(slices.DeleteFunc(x.booked, func(o Booking) bool { return o.Job == b.Job && o.Key == b.Key }), b)
	}
}

func (x *table) fail(format string, args ...any) {
	x.t.Helper()
	x.t.Fatalf("seed %d, tick %d, claims %+v, bookings %+v: "+format, append([]any{x.seed, x.now, x.claims, x.booked}, args...)...)
}

// look compares what the calendar says with the table.
func (x *table) look() {
	as := x.job()
	from, to := x.span()
	end := to
	if to == 0 {
		end = x.now + horizon
	}
	if got, want := x.c.Least(tick(x.now), tick(from), at(to), as), x.least(from, end, as); got != want {
		x.fail("during %d to %d %+v is free for %s, want %+v", from, to, got, as, want)
	}
	if !x.overdue() { // promised is no more than there is
		for n := x.now; n < x.now+30; n++ {
			if left := x.least(n, n+1, ""); left.Slots < 0 || left.Memory < 0 || left.GPUs < 0 {
				x.fail("at %d %+v is left", n, left)
			}
		}
	}
	if c, n := x.c.Booked(), len(x.booked); c != n || len(x.c.Bookings()) != n {
		x.fail("it counts %d bookings", c)
	}
}

// plan checks steps at all moments about which they say something.
func (x *table) plan() {
	needs, length, as := x.needs(), x.rnd.IntN(12), x.job()
	n := func(s Supply) (int, Supply) { return s.Fits(needs), Supply{} }
	// Room that is held until some time is in the way as a claim is.
	held := []Use{{Supply{Slots: 1}, tick(x.now + x.rnd.IntN(9))}}
	p := &Plan{As: as, Length: time.Duration(length) * time.Second, Held: held[:x.rnd.IntN(2)], Ahead: time.Hour, Steps: 1 + x.rnd.IntN(6), Workers: n}
	steps := x.c.Steps(tick(x.now), p)
	p.Steps = 99
	exact := x.c.Steps(tick(x.now), p)
	if len(p.Held) > 0 {
		x.claims = append(x.claims, claim{"held", jobs.Needs{Slots: 1}, held[0].Until})
		defer func() { x.claims = x.claims[:len(x.claims)-1] }()
		if !held[0].Until.After(tick(x.now)) { // then it holds nothing
			x.claims[len(x.claims)-1].needs = jobs.Needs{}
		}
	}
	for i := range 35 {
		for _, ms := range []int{0, 1, 999} { // between these nothing happens
			at := i*1000 + ms
			end := (at+length*1000+999)/1000 + x.now
			if length == 0 {
				end = x.now + horizon
			}
			want, _ := n(x.least(x.now+i, end, as))
			if got := during(steps, at); got > want || len(steps) == len(exact) && got != want || during(exact, at) != want {
				x.fail("%+v: %d ms from now %d workers of %+v may begin, steps are %+v, exactly %+v", p, at, want, needs, steps, exact)
			}
		}
	}
	for i, s := range exact {
		if i > 0 && (s.In <= exact[i-1].In || s.Workers == exact[i-1].Workers) || exact[0].In != 0 {
			x.fail("steps are %+v", exact)
		}
	}
	if len(steps) > p.Steps {
		x.fail("there are %d steps", len(steps))
	}
}

// during is what the steps say of a moment.
func during(steps []Step, ms int) (workers int) {
	for _, s := range steps {
		if s.In <= int64(ms) {
			workers = s.Workers
		}
	}
	return workers
}

// A calendar says what a table of all ticks says, whatever comes, ends early, late or never, is booked, kept on, used
// or given up.
func TestCalendarAgainstATable(t *testing.T) {
	const stories, steps = 250, 400
	seeds.Random(t, func(t *testing.T, seed uint64) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		for range seeds.Fewer(stories, stories/10) {
			x := &table{t: t, seed: seed, rnd: rnd, c: Calendar{Has: Supply{Slots: 9, Memory: 10, GPUs: 4}}}
			for n := range steps {
				x.step()
				if x.look(); n%8 == 0 {
					x.plan()
				}
			}
		}
	})
}

// Of steps that are too many those go that tell the least: here a second, and an hour of one worker.
func TestStepsThatTellMostAreKept(t *testing.T) {
	c := Calendar{Has: Supply{Slots: 8}}
	for _, at := range []int{1, 2, 3600, 7200, 36000} {
		c.Claim("a", jobs.Needs{Slots: 1}, tick(at))
	}
	one := func(s Supply) (int, Supply) { return s.Slots, Supply{} }
	got := ""
	for _, s := range c.Steps(tick(0), &Plan{Length: time.Minute, Ahead: 24 * time.Hour, Steps: 4, Workers: one}) {
		got += fmt.Sprintf("%d:%d ", s.In/1000, s.Workers)
	}
	if want := "0:3 2:5 7200:7 36000:8 "; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
