package claims

import (
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/internal/wire/wiretest"
	"zorilla/vicinity"
)

// A job that goes before asks for what a younger one holds, is told of it, and has it as
// soon as that one gives it back; the younger one has it again if it is not used.
func TestHoldsAreRecalled(t *testing.T) {
	c := New(vicinity.Member{ID: jobtest.Node(0), Slots: 2}, jobtest.Rand())
	younger, older := wiretest.Ad(jobtest.Node(1), "aaaaa", 2, 9), wiretest.Ad(jobtest.Node(2), "bbbbb", 1, 1)
	a := c.Advertised(jobtest.Start, younger)
	if b := c.Advertised(jobtest.Start, older); b.Workers != 0 || b.Held != 1 || b.Check() != nil {
		t.Fatalf("the older job is answered %+v", b)
	}
	if told := c.TakenBack(); len(told) != 0 {
		t.Fatalf("nobody wants what is held, and its origin is told %+v", told)
	}
	c.Recalled(jobtest.Start, younger.Job) // what is held for an older one is not
	c.Recalled(jobtest.Start, "ccccc@none")
	c.Recalled(jobtest.Start, older.Job)
	told := c.TakenBack()
	if len(told) != 1 || told[0].To != younger.Origin() || !told[0].Answer.Recall || told[0].Answer.Key != a.Key || told[0].Answer.Workers != 2 || told[0].Answer.Check() != nil {
		t.Fatalf("the younger job's origin is told %+v, want that its offer is recalled", told)
	}
	c.Recalled(jobtest.Start, older.Job)
	if told := c.TakenBack(); len(told) != 0 {
		t.Fatalf("recalled twice: %+v", told)
	}
	c.Released(younger.Job, a.Key, false)
	out := c.Offers(jobtest.Start)
	if len(out) != 2 || out[0].Answer.Job != older.Job || out[0].Answer.Workers != 1 || out[1].Answer.Job != younger.Job || out[1].Answer.Workers != 1 {
		t.Fatalf("got %+v, want an offer to each", out)
	}
	c.Released(older.Job, 0, true)
	if out := c.Offers(jobtest.Start); len(out) != 1 || out[0].Answer.Job != younger.Job || out[0].Answer.Workers != 2 {
		t.Fatalf("got %+v, want all for the younger job again", out)
	}
}

// Who waits for what others hold is told when it will not be had.
func TestHopesAreDashed(t *testing.T) {
	c := New(vicinity.Member{ID: jobtest.Node(0), Slots: 3}, jobtest.Rand())
	first, second, third := wiretest.Ad(jobtest.Node(1), "aaaaa", 2, 1), wiretest.Ad(jobtest.Node(2), "bbbbb", 3, 2), wiretest.Ad(jobtest.Node(3), "ccccc", 1, 3)
	a := c.Advertised(jobtest.Start, first)
	b := c.Advertised(jobtest.Start, second)
	if b.Workers != 1 || b.Held != 2 {
		t.Fatalf("the second job is answered %+v", b)
	}
	if d := c.Advertised(jobtest.Start, third); d.Workers != 0 || d.Held != 1 {
		t.Fatalf("the third job is answered %+v", d)
	}
	later := jobtest.Start.Add(time.Second)
	if err := c.Granted(later, first.Origin(), wiretest.Grant(first, a.Key, 2)); err != nil {
		t.Fatal(err)
	}
	out := c.Offers(later)
	if len(out) != 1 || out[0].To != second.Origin() || out[0].Answer.Workers != 1 || out[0].Answer.Held != 0 || out[0].Answer.Key != b.Key {
		t.Fatalf("got %+v, want that the second job has no hope of more", out)
	}
	if !c.Holds[second.Job].Expires.Equal(later.Add(wire.HoldLease)) {
		t.Errorf("its hold ends at %v", c.Holds[second.Job].Expires)
	}
	if err := c.Granted(later, second.Origin(), wiretest.Grant(second, b.Key, 1)); err != nil {
		t.Fatal(err)
	}
	if out := c.Offers(later); len(out) != 1 || out[0].To != third.Origin() || out[0].Answer.Workers != 0 || out[0].Answer.Held != 0 || out[0].Answer.Reason != wire.ReasonBusy {
		t.Fatalf("got %+v, want that the third job has no hope", out)
	}
	if out := c.Offers(later); len(out) != 0 {
		t.Fatalf("told twice: %+v", out)
	}
}

// A hold whose grant is announced lasts as long again, once: the origin may have to connect.
func TestAnnouncedHoldsLastLonger(t *testing.T) {
	c := New(vicinity.Member{ID: jobtest.Node(0), Slots: 1}, jobtest.Rand())
	ad := wiretest.Ad(jobtest.Node(1), "aaaaa", 1, 1)
	key := c.Advertised(jobtest.Start, ad).Key
	late := jobtest.Start.Add(wire.HoldLease - time.Second)
	for _, at := range []time.Time{late, late.Add(time.Second)} {
		if h := c.Announced(at, ad.Job, "", key, 1); h == nil || !h.Expires.Equal(late.Add(wire.HoldLease)) {
			t.Fatalf("announced at %v, the hold is %+v", at.Sub(jobtest.Start), h)
		}
	}
	if err := c.Granted(late.Add(wire.HoldLease-time.Millisecond), ad.Origin(), wiretest.Grant(ad, key, 1)); err != nil {
		t.Error(err)
	}
}

// What is being granted is nobody else's any more, and the rest of the hold is free.
func TestAnnouncedGrants(t *testing.T) {
	begin := func() (c *Claims, younger, older wire.Advertisement, key uint64) {
		c = New(vicinity.Member{ID: jobtest.Node(0), Slots: 3}, jobtest.Rand())
		younger, older = wiretest.Ad(jobtest.Node(1), "aaaaa", 3, 9), wiretest.Ad(jobtest.Node(2), "bbbbb", 3, 1)
		key = c.Advertised(jobtest.Start, younger).Key
		if b := c.Advertised(jobtest.Start, older); b.Workers != 0 || b.Held != 3 {
			t.Fatalf("the older job is answered %+v", b)
		}
		return c, younger, older, key
	}
	c, younger, older, key := begin()
	c.Recalled(jobtest.Start, older.Job)
	c.TakenBack()
	c.Announced(jobtest.Start, younger.Job, "", key, 2)
	out := c.Offers(jobtest.Start)
	if len(out) != 1 || out[0].Answer.Job != older.Job || out[0].Answer.Workers != 1 || out[0].Answer.Held != 0 {
		t.Fatalf("got %+v, want an offer of the rest, and no hope of more", out)
	}
	late := jobtest.Start.Add(2 * RecallTime)
	if out := append(c.Offers(late), c.TakenBack()...); len(out) != 0 {
		t.Fatalf("got %+v, though all is being granted or offered", out)
	}
	if err := c.Granted(late, younger.Origin(), wiretest.Grant(younger, key, 2)); err != nil {
		t.Fatalf("the grant that was announced: %v", err)
	}

	c, younger, older, key = begin()
	c.Announced(jobtest.Start, younger.Job, "", key, 3)
	c.Recalled(jobtest.Start, older.Job)
	if told := c.TakenBack(); len(told) != 0 {
		t.Errorf("recalls what is being granted: %+v", told)
	}
	if out := c.Offers(jobtest.Start); len(out) != 1 || out[0].Answer.Job != older.Job || out[0].Answer.Workers != 0 || out[0].Answer.Held != 0 {
		t.Errorf("got %+v, want that the older job has no hope", out)
	}
	if out := c.Offers(jobtest.Start.Add(wire.HoldLease)); len(out) == 0 || out[0].Answer.Job != older.Job || out[0].Answer.Workers != 3 {
		t.Errorf("got %+v when no grant has come for so long, want an offer of all", out)
	}

	for name, wrong := range map[string]func(c *Claims, job jobs.ID, key uint64){
		"another key":       func(c *Claims, job jobs.ID, key uint64) { c.Announced(jobtest.Start, job, "", key+1, 1) },
		"more than is held": func(c *Claims, job jobs.ID, key uint64) { c.Announced(jobtest.Start, job, "", key, 4) },
		"it asks again": func(c *Claims, job jobs.ID, key uint64) {
			c.Announced(jobtest.Start, job, "", key, 1)
			c.Advertised(jobtest.Start, wiretest.Ad(jobtest.Node(1), "aaaaa", 3, 9))
		},
	} {
		c, younger, older, key = begin()
		wrong(c, younger.Job, key)
		c.Recalled(jobtest.Start, older.Job)
		if told := c.TakenBack(); len(told) != 1 || told[0].Answer.Workers != 3 {
			t.Errorf("%s: recalled is %+v, want all three", name, told)
		}
	}
}

// What an origin says of an offer that was taken away does not end the next one.
func TestLateReturnsEndNothing(t *testing.T) {
	c := New(vicinity.Member{ID: jobtest.Node(0), Slots: 2}, jobtest.Rand())
	ad := wiretest.Ad(jobtest.Node(1), "aaaaa", 2, 1)
	first := c.Advertised(jobtest.Start, ad)
	c.Released(ad.Job, first.Key, false)
	second := c.Advertised(jobtest.Start, ad)
	if second.Key == first.Key {
		t.Fatal("two holds have one key")
	}
	if c.Released(ad.Job, first.Key, false); c.Holds[ad.Job] == nil {
		t.Fatal("a return of the first offer ends the second")
	}
	if c.Released(ad.Job, first.Key, true); c.Holds[ad.Job] == nil || c.position(ad.Job) >= 0 {
		t.Fatal("that no offer is wanted any more, said of the first, ends the second, or is not taken as said of the queue")
	}
	if c.Released(ad.Job, second.Key, false); c.Holds[ad.Job] != nil {
		t.Fatal("the second offer stands")
	}
	c.Advertised(jobtest.Start, ad)
	c.Holds[ad.Job].recalled = jobtest.Start
	if c.Released(ad.Job, 0, true); c.Holds[ad.Job] != nil || c.position(ad.Job) >= 0 {
		t.Fatal("a job that wants nothing more waits for room that it gave back for another")
	}
}

// Recalled is as much as is wanted, and nothing that is being granted; that stays where it is
// also when the job asks again, long after it was recalled.
func TestNoMoreIsRecalledThanIsWanted(t *testing.T) {
	c := New(vicinity.Member{ID: jobtest.Node(0), Slots: 4}, jobtest.Rand())
	second, third, older := wiretest.Ad(jobtest.Node(2), "bbbbb", 1, 8), wiretest.Ad(jobtest.Node(3), "ccccc", 2, 9), wiretest.Ad(jobtest.Node(4), "ddddd", 3, 1)
	b, d := c.Advertised(jobtest.Start, second), c.Advertised(jobtest.Start, third)
	if a := c.Advertised(jobtest.Start, older); a.Workers != 1 || a.Held != 2 {
		t.Fatalf("the older job is answered %+v", a)
	}
	c.Recalled(jobtest.Start, older.Job)
	if told := c.TakenBack(); len(told) != 1 || told[0].Answer.Key != d.Key {
		t.Fatalf("recalled is %+v, want the last job's two alone: one more is offered already", told)
	}
	c.Announced(jobtest.Start, third.Job, "", d.Key, 2)
	c.Recalled(jobtest.Start, older.Job)
	if told := c.TakenBack(); len(told) != 1 || told[0].Answer.Key != b.Key {
		t.Fatalf("recalled is %+v, want the second job's one: the rest is being granted", told)
	}
	late := jobtest.Start.Add(2 * RecallTime)
	if a := c.Advertised(late, older); a.Workers != 2 {
		t.Fatalf("the older job is answered %+v, want the second job's slot and the free one", a)
	}
	if err := c.Granted(late, third.Origin(), wiretest.Grant(third, d.Key, 2)); err != nil {
		t.Errorf("the grant that was announced: %v", err)
	}
}
