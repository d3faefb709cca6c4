package model

import (
	"math/rand/v2"
	"testing"
	"time"

	"zorilla/internal/seeds"
	"zorilla/jobs"
	"zorilla/jobs/internal/core"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/timers"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// promises is a node that is killed again and again, and what it has answered that it keeps.
type promises struct {
	t      *testing.T
	seed   uint64
	rnd    *rand.Rand
	now    time.Time
	m      *Model
	number uint64
	asked  map[uint64]wanted    // that may be answered
	kept   map[string]time.Time // until when, by name
}

// wanted is a request that was not answered yet, and until when the booking is kept then.
type wanted struct {
	*wire.Book
	until time.Time
}

func (p *promises) config() Config {
	return Config{
		Self: vicinity.Member{ID: jobtest.Node(0), Slots: 6}, Rand: p.rnd, Members: func() int { return 2 },
		Member: func(id vicinity.ID) (vicinity.Member, time.Duration, bool) {
			return vicinity.Member{ID: id}, time.Millisecond, true
		},
		Disk: func() time.Duration { return time.Duration(p.rnd.IntN(2000)) * time.Millisecond },
	}
}

// hear takes the answers.
func (p *promises) hear(out Actions) {
	for _, msg := range out.Messages {
		r, ok := msg.body.(reply)
		if !ok {
			continue
		}
		q, ok := p.asked[r.number]
		if !ok {
			continue
		}
		for _, o := range p.m.core.Claims.BookedBy(q.Job) {
			if o.Key == q.Key && r.booked.OK { // which may have been asked for something else since
				p.kept[core.BookingName(o.Job, o.Key)] = timers.Earlier(q.until, o.Lease)
			}
		}
		delete(p.asked, r.number)
	}
}

// ask asks for something; until it is answered nothing is promised.
func (p *promises) ask() {
	b := &wire.Book{Job: jobs.ID([]string{"aaaaa", "bbbbb", "ccccc"}[p.rnd.IntN(3)]).At(jobtest.Node(1)), Key: uint64(1 + p.rnd.IntN(2))}
	if p.rnd.IntN(4) > 0 {
		b.Lease = 1 + p.rnd.Int64N(20_000)
	}
	if b.Lease > 0 && p.rnd.IntN(2) == 0 {
		n := 1 + p.rnd.IntN(3)
		b.New = &wire.Booking{In: p.rnd.Int64N(5000), Length: 3_600_000, Workers: n, Room: wire.Room{Slots: n}}
	}
	delete(p.kept, core.BookingName(b.Job, b.Key))
	until := p.now.Add(time.Duration(b.Lease) * time.Millisecond)
	for n, q := range p.asked { // which may get to the disk, and this after it
		if q.Job == b.Job && q.Key == b.Key {
			p.asked[n] = wanted{q.Book, timers.Earlier(q.until, until)}
		}
	}
	p.number++
	p.asked[p.number] = wanted{b, until}
	p.hear(p.m.Receive(p.now, jobtest.Node(1), Message{Kind: Request, Job: b.Job, body: request{number: p.number, body: b}}))
}

// check fails if something that was promised is not kept.
func (p *promises) check(when string) {
	p.t.Helper()
	have := map[string]bool{}
	for _, b := range p.m.core.Claims.Calendar.Bookings() {
		have[core.BookingName(b.Job, b.Key)] = true
	}
	for name, until := range p.kept {
		if p.now.Before(until) && !have[name] {
			p.t.Fatalf("seed %d, %v, %s: %s is not kept, of what was promised: %v", p.seed, p.now.Sub(jobtest.Start), when, name, p.kept)
		}
	}
}

// A node that is killed at any time has, in its next life, all bookings that it has answered.
func TestKilledNodesKeepBookings(t *testing.T) {
	kept, killed := 0, 0
	seeds.Random(t, func(t *testing.T, seed uint64) {
		p := &promises{t: t, seed: seed, rnd: rand.New(rand.NewPCG(seed, 1)), now: jobtest.Start, asked: map[uint64]wanted{}, kept: map[string]time.Time{}}
		p.m = New(p.config())
		for range 3000 {
			if at := p.m.Next(); !at.IsZero() && p.rnd.IntN(2) == 0 && at.After(p.now) {
				p.now = at
			} else {
				p.now = p.now.Add(time.Duration(p.rnd.IntN(500)) * time.Millisecond)
			}
			p.hear(p.m.Tick(p.now))
			p.check("alive")
			if p.ask(); p.rnd.IntN(20) == 0 {
				left := p.m.Kill(p.now, p.rnd.IntN(2) == 0)
				clear(p.asked)
				m, out := Revive(p.now, p.config(), left)
				p.m = m
				p.hear(out)
				p.check("killed")
				kept, killed = kept+len(p.kept), killed+1
			}
		}
	})
	if kept < killed/2 {
		t.Errorf("of %d times %d bookings were promised when it was killed", killed, kept)
	}
}
