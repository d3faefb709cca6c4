package core

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"zorilla/flood"
	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/primary"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/internal/wire/wiretest"
	"zorilla/vicinity"
)

// few is a network in which only these nodes are members.
type few map[vicinity.ID]vicinity.Member

func (f few) Member(id vicinity.ID) (vicinity.Member, bool)                { m, ok := f[id]; return m, ok }
func (f few) Measured(vicinity.ID, time.Duration) time.Duration            { return time.Millisecond }
func (f few) Nearer(time.Duration, int) []vicinity.Measured                { return nil }
func (f few) Speed(vicinity.ID) (none vicinity.Speed)                      { return none }
func (f few) Distance(a, b vicinity.ID) time.Duration                      { return 0 }
func (f few) Size() int                                                    { return 2 }
func (f few) Flood(time.Time, int, wire.Advertisement) (flood flood.Flood) { return flood }
func (f few) Bearings() []byte                                             { return nil }
func (f few) Placed(vicinity.ID, []byte)                                   {}

// A node that has just come, or is gone, is granted nothing before it is a member: it
// has no name, and nobody could be told where it is.
func TestOffersOfStrangersAreNotTaken(t *testing.T) {
	self, other := vicinity.Member{ID: jobtest.Node(1)}, jobtest.Node(2)
	for name, members := range map[string]few{"": {}, "other": {other: {ID: other, Name: "other"}}} {
		c := New(self, members, jobtest.Rand(), time.Hour)
		now := jobtest.Start
		id := jobs.NewID(jobtest.Rand(), self.ID)
		c.Submit(now, id, jobs.Spec{Args: []string{"prog"}, Min: 1, Max: 1, Slots: 1}, 0)
		granted, announced := "nobody", false
		for step := range 20 {
			list, _ := c.Advance(now)
			for _, a := range list {
				switch e := a.Effect.(type) {
				case DoRecord:
					for _, ev := range e.Events {
						if ev.Node == other {
							granted = ev.Name
						}
					}
					c.Recorded(now, e.Job, e.Step)
				case primary.DoGrant:
					if e.To != other {
						t.Errorf("granted to %s", e.To)
					}
					if !announced {
						t.Error("a grant that nobody has announced")
					}
				case DoPacket:
					announced = announced || e.To == other && e.Packet.Grant == id && e.Packet.Key == 1 && e.Packet.Workers == 1
				}
			}
			if step == 3 {
				c.Received(now, other, wire.Packet{Answer: &wire.Answer{Job: id, Round: 1, Key: 1, Workers: 1, Capacity: 1}})
			}
			now = now.Add(50 * time.Millisecond)
		}
		if want := map[string]string{"": "nobody", "other": "other"}[name]; granted != want {
			t.Errorf("granted to %q, want %q", granted, want)
		}
	}
}

// Only the origin of a job says that its offers are being granted.
func TestGrantsAreAnnouncedByTheirOriginAlone(t *testing.T) {
	self, origin := vicinity.Member{ID: jobtest.Node(1), Slots: 2}, jobtest.Node(2)
	c := New(self, few{origin: {ID: origin}}, jobtest.Rand(), time.Hour)
	ad := wiretest.Ad(origin, "aaaaa", 2, 1)
	c.Advertised(jobtest.Start, ad, flood.Message{})
	out, _ := c.Advance(jobtest.Start)
	key := out[0].Effect.(DoPacket).Packet.Answer.Key
	for _, from := range []vicinity.ID{jobtest.Node(3), origin} {
		c.Received(jobtest.Start, from, wire.Packet{Grant: ad.Job, Key: key, Workers: 1})
		if got, want := c.Claims.HeldSlots(), map[vicinity.ID]int{jobtest.Node(3): 2, origin: 1}[from]; got != want {
			t.Errorf("when %v has told, %d slots are held, want %d", from, got, want)
		}
		connects := 0
		for out, _ := c.Advance(jobtest.Start); len(out) > 0; out = out[1:] {
			if e, ok := out[0].Effect.(DoConnect); ok && e.To == origin {
				connects++
			}
		}
		if want := map[vicinity.ID]int{origin: 1}[from]; connects != want {
			t.Errorf("when %v has told, the node connects to the origin %d times, want %d", from, connects, want)
		}
	}
}

// at is a network of whose other nodes all are so far away, measured or by their bearings.
type at struct {
	few
	measured, predicted time.Duration
}

func (a at) Measured(vicinity.ID, time.Duration) time.Duration { return a.measured }
func (a at) Distance(vicinity.ID, vicinity.ID) time.Duration   { return a.predicted }

// connects are to whom a node connects.
func connects(c *Core) (list []vicinity.ID) {
	out, _ := c.Advance(jobtest.Start)
	for _, a := range out {
		if e, ok := a.Effect.(DoConnect); ok {
			list = append(list, e.To)
		}
	}
	return list
}

// A node that offers workers to an origin that is far away connects to it, and one that has
// none does not.
func TestWhoOffersConnects(t *testing.T) {
	origin := jobtest.Node(2)
	for _, x := range []struct {
		name                string
		measured, predicted time.Duration
		slots               int
		want                bool
	}{
		{"far", 10 * time.Millisecond, 0, 2, true},
		{"far, not measured", 0, 10 * time.Millisecond, 2, true},
		{"near", time.Millisecond, 10 * time.Millisecond, 2, false},
		{"not known", 0, 0, 2, false},
		{"far, no room", 10 * time.Millisecond, 0, 0, false},
	} {
		c := New(vicinity.Member{ID: jobtest.Node(1), Slots: x.slots}, at{few{origin: {ID: origin}}, x.measured, x.predicted}, jobtest.Rand(), time.Hour)
		c.Advertised(jobtest.Start, wiretest.Ad(origin, "aaaaa", 2, 1), flood.Message{})
		if got := len(connects(c)) > 0; got != x.want {
			t.Errorf("%s: connects %v, want %v", x.name, got, x.want)
		}
	}
}

// asking is a network all of which is measured, whose nearest are sent each flood at once.
type asking struct{ at }

func (a asking) Size() int { return 1 + len(a.few) }

func (a asking) Nearer(time.Duration, int) (list []vicinity.Measured) {
	for _, id := range slices.Sorted(maps.Keys(a.few)) {
		list = append(list, vicinity.Measured{ID: id, RTT: a.measured})
	}
	return list
}

func (a asking) Flood(now time.Time, radius int, _ wire.Advertisement) flood.Flood {
	if radius != 0 {
		panic(fmt.Sprintf("floods with radius %d, want that nobody gets it but who is asked", radius))
	}
	f, _, err := flood.NewCore(flood.Config{Self: jobtest.Node(1), Rand: jobtest.Rand()}).Start(now, radius, time.Minute, nil)
	if err != nil {
		panic(err)
	}
	return f
}

// An origin that knows how far all others are asks the nearest, and nobody by a flood, and
// connects to them if they are far away.
func TestWhoAsksConnects(t *testing.T) {
	one, two := jobtest.Node(2), jobtest.Node(3)
	for measured, want := range map[time.Duration][]vicinity.ID{10 * time.Millisecond: {one, two}, time.Millisecond: nil} {
		c := New(vicinity.Member{ID: jobtest.Node(1)}, asking{at{few{one: {ID: one}, two: {ID: two}}, measured, 0}}, jobtest.Rand(), time.Hour)
		c.Submit(jobtest.Start, jobs.NewID(jobtest.Rand(), c.Self.ID), jobs.Spec{Args: []string{"prog"}, Min: 1, Max: 1, Slots: 1}, 0)
		var got []vicinity.ID
		for more := true; more; {
			out, _ := c.Advance(jobtest.Start)
			for more = len(out) > 0; len(out) > 0; out = out[1:] {
				switch e := out[0].Effect.(type) {
				case DoRecord:
					c.Recorded(jobtest.Start, e.Job, e.Step)
				case DoConnect:
					got = append(got, e.To)
				}
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("at %v it connects to %v, want %v", measured, got, want)
		}
	}
}

// Whoever may get room for a job that waits, or gets it, connects to its origin, too.
func TestWhoOffersLaterConnects(t *testing.T) {
	first, second := jobtest.Node(2), jobtest.Node(3)
	c := New(vicinity.Member{ID: jobtest.Node(1), Slots: 1}, at{few{first: {ID: first}, second: {ID: second}}, 10 * time.Millisecond, 0}, jobtest.Rand(), time.Hour)
	ad := wiretest.Ad(first, "aaaaa", 1, 1)
	c.Advertised(jobtest.Start, ad, flood.Message{})
	c.Advertised(jobtest.Start, wiretest.Ad(second, "bbbbb", 1, 1), flood.Message{})
	if got := connects(c); len(got) != 2 || got[0] != first || got[1] != second {
		t.Fatalf("connects to %v, want %v, to which it offers, and %v, to which it may", got, first, second)
	}
	c.Received(jobtest.Start, first, wire.Packet{Yield: ad.Job, Forget: true, Signed: jobtest.Start.Add(time.Second).UnixMilli()})
	if got := connects(c); len(got) != 1 || got[0] != second {
		t.Errorf("when the first needs nothing any more, it connects to %v, want %v", got, second)
	}
}
