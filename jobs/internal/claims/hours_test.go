package claims

import (
	"errors"
	"testing"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/hours"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/internal/wire/wiretest"
)

// evening is when the hours of nightly begin and end.
var evening, morning = time.Date(2026, 11, 23, 19, 0, 0, 0, time.UTC), time.Date(2026, 11, 24, 7, 0, 0, 0, time.UTC)

func nightly(after string, most time.Duration) jobs.Limits {
	week, err := hours.Parse("daily 19:00-7:00")
	if err != nil {
		panic(err)
	}
	return jobs.Limits{TimeLimits: jobs.TimeLimits{Hours: week, AfterHours: after, MaxWalltime: codec.Duration(most)}}
}

func TestHoursBeginAndEnd(t *testing.T) {
	c := bigNode()
	c.Limit(nightly("", 0))
	if at := c.Wake(); at != time.Unix(0, 0) {
		t.Fatalf("wakes at %v, want at once", at)
	}
	now := evening.Add(-time.Second)
	first, second := wiretest.Ad(jobtest.Node(1), "aaaaa", 4, 1), wiretest.Ad(jobtest.Node(2), "bbbbb", 4, 2)
	first.Life, second.Life = wire.MaxLife.Milliseconds(), wire.MaxLife.Milliseconds()
	if a := c.Advertised(now, first); a.Reason != wire.ReasonHours || a.Capacity != 8 {
		t.Fatalf("got %+v", a)
	}
	if w := c.Waiting(now); len(w) != 1 || w[0].Reason != wire.ReasonHours {
		t.Fatalf("waits as %+v", w)
	}
	if at := c.Wake(); !at.Equal(evening) {
		t.Fatalf("wakes at %v", at)
	}
	out := c.Offers(evening)
	if len(out) != 1 || out[0].Answer.Workers != 4 {
		t.Fatalf("got %+v, want an offer when the hours begin", out)
	}
	if err := c.Granted(evening, first.Origin(), wiretest.Grant(first, out[0].Answer.Key, 4)); err != nil {
		t.Fatal(err)
	}
	held := c.Advertised(morning.Add(-time.Second), second)
	if at := c.Wake(); held.Workers != 4 || !at.Equal(morning) {
		t.Fatalf("got %+v, wakes at %v", held, at)
	}
	if err := c.Granted(morning, second.Origin(), wiretest.Grant(second, held.Key, 4)); !errors.Is(err, jobs.ErrRefused) || len(c.Holds) > 0 {
		t.Fatalf("a grant after the hours: %v", err)
	}
	if c.Busy() != 4 {
		t.Fatalf("%d slots are busy, want the 4 of the workers that go on", c.Busy())
	}
	c.Advertised(morning, second)
	c.Limit(jobs.Limits{})
	if out := c.Offers(morning); len(out) != 1 || out[0].Answer.Workers != 4 {
		t.Fatalf("got %+v, want an offer when the owner has no hours any more", out)
	}
}

// If the clock is set, that counts within a minute.
func TestSetClock(t *testing.T) {
	c := bigNode()
	c.Limit(nightly("", 0))
	c.Offers(evening)
	if at := c.Wake(); at.Sub(evening) != lookAgain {
		t.Fatalf("looks at the clock at %v", at)
	}
}

// Where workers are ended with the hours, those are not let in that would be.
func TestHoursEndTooSoon(t *testing.T) {
	for name, c := range map[string]struct {
		after  string
		before time.Duration // the end of the hours
		length time.Duration
		want   string
	}{
		"fits":                  {jobs.HoursEnd, time.Hour, time.Hour, ""},
		"does not fit":          {jobs.HoursEnd, time.Hour, time.Hour + time.Millisecond, wire.ReasonHoursSoon},
		"may take its time":     {"", time.Hour, 2 * time.Hour, ""},
		"does not say":          {jobs.HoursEnd, lastOffers, 0, ""},
		"does not say, at last": {jobs.HoursEnd, lastOffers - time.Second, 0, wire.ReasonHoursSoon},
		"short":                 {jobs.HoursEnd, time.Minute, 30 * time.Second, ""},
	} {
		n, now := bigNode(), morning.Add(-c.before)
		n.Limit(nightly(c.after, 0))
		ad := wiretest.Ad(jobtest.Node(1), "aaaaa", 4, 1)
		ad.Length, ad.Life = c.length.Milliseconds(), wire.MaxLife.Milliseconds()
		if a := n.Advertised(now, ad); a.Reason != c.want || (a.Workers > 0) != (c.want == "") {
			t.Errorf("%s: got %+v", name, a)
		}
		if w := n.Waiting(now); c.want != "" && (len(w) != 1 || w[0].Reason != c.want) {
			t.Errorf("%s: waits as %+v", name, w)
		}
	}
}

func TestMaxWalltime(t *testing.T) {
	const hour = int64(time.Hour / time.Millisecond)
	for name, c := range map[string]struct {
		length, each int64
		want         string
	}{
		"as long":   {hour, 0, ""},
		"longer":    {hour + 1, 0, wire.ReasonWalltime + " 1h0m0s"},
		"its tasks": {0, hour + 1, wire.ReasonWalltime + " 1h0m0s"},
		"unknown":   {0, 0, ""},
	} {
		n := bigNode()
		ad := wiretest.Ad(jobtest.Node(1), "aaaaa", 4, 1)
		ad.Length, ad.Each = c.length, c.each
		held := n.Advertised(jobtest.Start, ad)
		n.Limit(jobs.Limits{TimeLimits: jobs.TimeLimits{MaxWalltime: codec.Duration(time.Hour)}})
		if (len(n.Holds) == 0) != (c.want != "") {
			t.Errorf("%s: holds %v after the owner has set it", name, n.Holds)
		}
		g := wiretest.Grant(ad, held.Key, 4)
		g.Spec.Walltime = codec.Duration(time.Duration(c.length) * time.Millisecond)
		if err := n.Granted(jobtest.Start, ad.Origin(), g); (err != nil) != (c.want != "") {
			t.Errorf("%s: %v", name, err)
		}
		if a := n.Advertised(jobtest.Start, ad); c.want != "" && (a.Reason != c.want || a.Capacity != 0 || !wire.Lasts(a.Reason)) {
			t.Errorf("%s: got %+v", name, a)
		}
		if a := n.Advertised(jobtest.Start, wiretest.Ad(jobtest.Node(2), "bbbbb", 8, 2)); c.want == "" && a.Free != hour {
			t.Errorf("%s: there will be room in %d ms", name, a.Free)
		}
	}
}

// Nothing is planned or booked for times outside of the owner's hours, nor beyond their end where workers are ended then.
func TestBookingsKeepToTheHours(t *testing.T) {
	in := func(d time.Duration) int64 { return d.Milliseconds() }
	now := evening.Add(-time.Hour)
	book := func(c *Claims, at time.Duration) string {
		_, a := c.Book(now, &wire.Book{Job: wiretest.Ad(jobtest.Node(1), "aaaaa", 1, 1).Job, Key: 1, Lease: in(wire.BookLease),
			New: &wire.Booking{In: in(at), Length: in(2 * time.Hour), Workers: 8, Room: wire.Room{Slots: 8}}})
		return a.Reason
	}
	for after, tt := range map[string]struct {
		last time.Duration // after now, when workers may begin
		late string
	}{jobs.HoursFinish: {13*time.Hour - 1, ""}, jobs.HoursEnd: {11*time.Hour - time.Minute, wire.ReasonHours}} {
		c := bigNode()
		c.Limit(nightly(after, 0))
		ad := timed("ahead", 8, 2*time.Hour)
		ad.Plan = true
		a := c.Advertised(now, ad)
		if len(a.Steps) != wire.MaxSteps || a.Steps[0] != (wire.Step{}) || a.Steps[1] != (wire.Step{In: in(time.Hour), Workers: 8}) || a.Steps[2].Workers != 0 {
			t.Fatalf("%s: steps %+v", after, a.Steps)
		}
		if most := a.Steps[2].In; most < in(tt.last) || most > in(tt.last+2*time.Minute) {
			t.Errorf("%s: workers may begin up to %v from now", after, time.Duration(most)*time.Millisecond)
		}
		for at, want := range map[time.Duration]string{30 * time.Minute: wire.ReasonHours, 12*time.Hour + 30*time.Minute: tt.late, 3 * time.Hour: ""} {
			if got := book(c, at); got != want {
				t.Errorf("%s: a booking in %v: %q, want %q", after, at, got, want)
			}
		}
		c.Book(now, &wire.Book{Job: ad.Job, Key: 1})
		if book(c, 3*time.Hour); c.Booked() == 0 {
			t.Fatal("nothing is booked")
		}
		week, _ := hours.Parse("sat-sun")
		if c.Limit(jobs.Limits{TimeLimits: jobs.TimeLimits{Hours: week}}); c.Booked() != 0 {
			t.Errorf("%s: a booking stands that the owner does not keep", after)
		}
	}
}
