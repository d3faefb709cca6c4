package model

import (
	"slices"
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/claims"
	"zorilla/jobs/internal/core"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/primary"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/internal/wire/wiretest"
	"zorilla/vicinity"
)

// alone returns the core of a node with two slots.
func alone() (*core.Core, time.Time) {
	return New(Config{
		Self: vicinity.Member{ID: jobtest.Node(0), Slots: 2}, Rand: jobtest.Rand(),
		Member: func(id vicinity.ID) (vicinity.Member, time.Duration, bool) { return vicinity.Member{ID: id}, 0, true },
	}).core, jobtest.Start
}

// A node that leaves does not ask to be woken for a trial that it will not make.
func TestNoTrialsWhileLeaving(t *testing.T) {
	c, now := alone()
	for range claims.MaxMisses {
		c.Claims.Missed(now, "no more processes")
	}
	if c.Wake().IsZero() {
		t.Fatal("nothing is tried")
	}
	c.Leave(now, time.Minute)
	if c.Advance(now); !c.Wake().IsZero() {
		t.Errorf("wants to be woken at %v", c.Wake())
	}
}

// A release of everything ends what is held, too, and what waits; of a job of another
// origin it ends nothing.
func TestReleaseEndsTheHold(t *testing.T) {
	c, now := alone()
	origin := jobtest.Node(1)
	ad := wiretest.Ad(origin, "aaaaa", 3, 1)
	if a := c.Claims.Advertised(now, ad); a.Workers != 2 || len(c.Claims.Queue) != 1 {
		t.Fatalf("%+v", a)
	}
	c.Released(now, jobtest.Node(7), &wire.Release{Job: ad.Job})
	if len(c.Claims.Holds) != 1 || len(c.Claims.Queue) != 1 {
		t.Error("a stranger has released it")
	}
	c.Released(now, origin, &wire.Release{Job: ad.Job})
	if len(c.Claims.Holds) != 0 || len(c.Claims.Queue) != 0 {
		t.Error("it is held, or waits")
	}
}

// What a primary wants done waits for the events before it, and for what it left before.
func TestEffectsWaitForTheirEvents(t *testing.T) {
	c, now := alone()
	j := c.NewJob(jobs.ID("aaaaa").At(c.Self.ID))
	c.Add(j)
	ev := record.Event{Kind: record.Submitted, At: now, Spec: &jobs.Spec{Args: []string{"prog"}, Min: 1, Max: 1, Slots: 1}}
	leave := func(number uint64, events ...record.Event) {
		j.Primary.Out.Events = append(j.Primary.Out.Events, events...)
		j.Primary.Do(primary.DoAnswer{Number: number})
		c.Flush(now, j)
	}
	done := func() (numbers []uint64) {
		list, _ := c.Advance(now)
		for _, a := range list {
			if e, ok := a.Effect.(primary.DoAnswer); ok {
				numbers = append(numbers, e.Number)
			}
		}
		return numbers
	}
	leave(1, ev)
	leave(2)
	leave(3, ev)
	if n := done(); len(n) != 0 {
		t.Errorf("done before anything is durable: %v", n)
	}
	c.Recorded(now, j.Primary.Rec.ID, 3)
	if n := done(); len(n) != 0 {
		t.Errorf("done before the first is durable: %v", n)
	}
	c.Recorded(now, j.Primary.Rec.ID, 1)
	if n := done(); !slices.Equal(n, []uint64{1, 2, 3}) {
		t.Errorf("done: %v", n)
	}
}
