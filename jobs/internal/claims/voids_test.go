package claims

import (
	"errors"
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/internal/wire/wiretest"
	"zorilla/vicinity"
)

// Why a grant is refused is told as it was: a job that waits must not blame its node.
func TestWhyGrantsAreRefused(t *testing.T) {
	younger, older := wiretest.Ad(jobtest.Node(1), "aaaaa", 2, 9), wiretest.Ad(jobtest.Node(2), "bbbbb", 2, 1)
	for name, c := range map[string]struct {
		happens func(c *Claims) time.Time
		want    string
	}{
		"the lease ends": {func(*Claims) time.Time { return jobtest.Start.Add(wire.HoldLease) }, wire.ReasonLate},
		"it is offered anew after that": {func(c *Claims) time.Time {
			at := jobtest.Start.Add(wire.HoldLease)
			c.Advertised(at, younger)
			return at
		}, wire.ReasonLate},
		"an older job takes all": {func(c *Claims) time.Time {
			c.Advertised(jobtest.Start, older)
			c.Recalled(jobtest.Start, older.Job)
			at := jobtest.Start.Add(2 * RecallTime)
			c.Advertised(at, older)
			return at
		}, wire.ReasonYielded},
		"the owner pauses it": {func(c *Claims) time.Time { c.Limit(jobs.Limits{Paused: true}); return jobtest.Start }, wire.ReasonPaused},
		"the owner wants no such jobs": {func(c *Claims) time.Time {
			c.Limit(jobs.Limits{Deny: []string{string(younger.Origin())}})
			return jobtest.Start
		}, wire.ReasonDenied},
		"the owner wants fewer workers": {func(c *Claims) time.Time { c.Limit(jobs.Limits{MaxWorkersPerJob: 1}); return jobtest.Start }, "owner allows 1 worker per job"},
		"it is drained":                 {func(c *Claims) time.Time { c.Drain(); return jobtest.Start }, wire.ReasonDraining},
		"its disk fills": {func(c *Claims) time.Time {
			c.Disk.Keep = 100
			c.Measured(10)
			return jobtest.Start
		}, wire.ReasonFull},
		"the node knows nothing": {func(c *Claims) time.Time { clear(c.Holds); return jobtest.Start }, wire.ReasonUnknown},
	} {
		node := New(vicinity.Member{ID: jobtest.Node(0), Slots: 2}, jobtest.Rand())
		a := node.Advertised(jobtest.Start, younger)
		err := node.Granted(c.happens(node), younger.Origin(), wiretest.Grant(younger, a.Key, 2))
		if got := wire.WhyRefused(err); got != c.want || !errors.Is(err, jobs.ErrRefused) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		switch c.want {
		case wire.ReasonYielded:
			wantRow(t, "another job took its slots", wire.WhyRefused(err))
		case wire.ReasonUnknown:
			wantRow(t, "does not know its offer any more", wire.WhyRefused(err))
		}
	}
	node := New(vicinity.Member{ID: jobtest.Node(0), Slots: 2}, jobtest.Rand())
	a := node.Advertised(jobtest.Start, younger)
	wantRow(t, "has fewer slots left than it offered", wire.WhyRefused(node.Granted(jobtest.Start, younger.Origin(), wiretest.Grant(younger, a.Key, 3))))
	node.Drain()
	if err := node.Granted(jobtest.Start, younger.Origin(), wiretest.Grant(younger, a.Key+1, 2)); wire.WhyRefused(err) != wire.ReasonUnknown {
		t.Errorf("a grant of another hold: %v", err)
	}
	node.expire(jobtest.Start.Add(wire.HoldLease + wire.PartLease))
	if len(node.voids) != 0 {
		t.Errorf("remembers %d holds of which no grant can come any more", len(node.voids))
	}
}
