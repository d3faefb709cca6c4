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

// keeping is a node of four slots, of which three are spares of a job.
func keeping(t *testing.T, limits jobs.Limits) (c *Claims, g *wire.Grant) {
	t.Helper()
	c = New(vicinity.Member{ID: jobtest.Node(0), Slots: 4}, jobtest.Rand())
	c.Limit(limits)
	ad := wiretest.Ad(jobtest.Node(1), "aaaaa", 3, 1)
	g = wiretest.Grant(ad, c.Advertised(jobtest.Start, ad).Key, 0)
	g.Spares = 3
	if err := c.Granted(jobtest.Start, ad.Origin(), g); err != nil {
		t.Fatal(err)
	}
	return c, g
}

// ranks grants ranks of what is kept.
func ranks(c *Claims, g *wire.Grant, key uint64, n int) error {
	m := *g
	m.Spares, m.Key, m.Ranks = 0, key, nil
	for i := range n {
		m.Ranks = append(m.Ranks, wiretest.RA(i, 2))
	}
	return c.Granted(jobtest.Start.Add(time.Hour), g.Job.Origin(), &m)
}

// Spares count as claims, last, and become those of ranks under their key, one after the other.
func TestSparesAreClaimsWithoutWorkers(t *testing.T) {
	c, g := keeping(t, jobs.Limits{})
	if c.Used.Slots != 3 || c.Jobs[g.Job] != 3 || len(c.Holds) != 0 {
		t.Fatalf("%d slots are used, %d workers counted, %d holds", c.Used.Slots, c.Jobs[g.Job], len(c.Holds))
	}
	if a := c.Advertised(jobtest.Start.Add(time.Hour), wiretest.Ad(jobtest.Node(2), "bbbbb", 4, 2)); a.Workers != 1 {
		t.Errorf("an hour later another job is offered %d workers", a.Workers)
	}
	for name, err := range map[string]error{"another key": ranks(c, g, g.Key+1, 1), "more than there are": ranks(c, g, g.Key, 4)} {
		if !errors.Is(err, jobs.ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := ranks(c, g, g.Key, 2); err != nil {
		t.Fatal(err)
	}
	if s := c.Spares[g.Job]; s == nil || s.Workers != 1 || c.Used.Slots != 3 || c.Jobs[g.Job] != 3 {
		t.Errorf("%+v are left, %d slots used, %d workers counted", s, c.Used.Slots, c.Jobs[g.Job])
	}
	c.FreeSpares(g.Job, 9)
	if c.Spares[g.Job] != nil || c.Used.Slots != 2 || c.Jobs[g.Job] != 2 {
		t.Errorf("after the last was given back %d slots are used, %d workers counted", c.Used.Slots, c.Jobs[g.Job])
	}
	c.Freed(g.Job, 2, g.Spec.Needs(0))
	if c.Used.Slots != 0 || len(c.Jobs) != 0 {
		t.Errorf("in the end %d slots are used, by %d jobs", c.Used.Slots, len(c.Jobs))
	}
}

// Whom the owner lets in is limited by spares as by workers.
func TestSparesCountForTheOwnersLimits(t *testing.T) {
	c, _ := keeping(t, jobs.Limits{MaxJobs: 1, MaxWorkersPerJob: 3})
	if a := c.Advertised(jobtest.Start, wiretest.Ad(jobtest.Node(2), "bbbbb", 1, 2)); a.Workers != 0 {
		t.Errorf("a second job is offered %d workers", a.Workers)
	}
	if a := c.Advertised(jobtest.Start, wiretest.Ad(jobtest.Node(1), "aaaaa", 1, 1)); a.Workers != 0 {
		t.Errorf("the job is offered %d workers more", a.Workers)
	}
}

// An origin that was started again may have given spares up, and be granted others at the same node.
func TestLaterSparesTakeThePlaceOfEarlierOnes(t *testing.T) {
	c, g := keeping(t, jobs.Limits{})
	again := *g
	again.Key, again.Spares = c.Advertised(jobtest.Start, wiretest.Ad(jobtest.Node(1), "aaaaa", 1, 1)).Key, 1
	if err := c.Granted(jobtest.Start, g.Job.Origin(), &again); err != nil {
		t.Fatal(err)
	}
	if s := c.Spares[g.Job]; s.Key != again.Key || s.Workers != 1 || c.Used.Slots != 1 || c.Jobs[g.Job] != 1 {
		t.Errorf("%+v are kept, %d slots used, %d workers counted", s, c.Used.Slots, c.Jobs[g.Job])
	}
}
