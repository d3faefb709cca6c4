package claims

import (
	"errors"
	"testing"

	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/internal/wire/wiretest"
	"zorilla/vicinity"
)

// batched is a node of four slots, all of which are held for a batch.
func batched(limits jobs.Limits) (c *Claims, batch wire.Advertisement, key uint64) {
	c = New(vicinity.Member{ID: jobtest.Node(0), Slots: 4}, jobtest.Rand())
	c.Limit(limits)
	batch = wiretest.Ad(jobtest.Node(1), "ccccc", 9, 1)
	batch.Others = 6
	return c, batch, c.Advertised(jobtest.Start, batch).Key
}

// of grants workers of what is held for a batch to a job.
func of(batch wire.Advertisement, job string, key uint64, n int) *wire.Grant {
	g := wiretest.Grant(batch, key, n)
	g.Job, g.Held = jobs.ID(job).At(batch.Origin()), batch.Job
	return g
}

// What is held for a batch goes to one job of it after the other, whether or not word of a
// grant came first; and each part is none of the batch's any more.
func TestJobsOfABatchShareItsHold(t *testing.T) {
	c, batch, key := batched(jobs.Limits{})
	first, second := of(batch, "aaaaa", key, 1), of(batch, "bbbbb", key, 2)
	if h := c.Announced(jobtest.Start, first.Job, batch.Job, key, 1); h == nil || h.Workers != 1 || c.Holds[batch.Job].Workers != 3 {
		t.Fatalf("%+v is held, of the batch %+v", h, c.Holds[batch.Job])
	}
	if a := c.Advertised(jobtest.Start, batch); a.Key != key || a.Workers != 3 || a.Lent != 1 {
		t.Errorf("what is left is offered as %+v", a)
	}
	if err := c.Granted(jobtest.Start, batch.Origin(), second); err != nil {
		t.Fatal(err)
	}
	if c.Holds[batch.Job].Workers != 1 || c.Jobs[second.Job] != 2 {
		t.Fatalf("%+v is left of the batch, %d workers of the job", c.Holds[batch.Job], c.Jobs[second.Job])
	}
	if a := c.Advertised(jobtest.Start, batch); a.Workers != 1 || a.Lent != 3 {
		t.Errorf("what is left after the grant is offered as %+v", a)
	}
	c.Released(batch.Job, 0, true)
	if err := c.Granted(jobtest.Start, batch.Origin(), first); err != nil {
		t.Fatalf("the grant that was announced before the end of the batch: %v", err)
	}
	if len(c.Holds) != 0 || c.Used.Slots != 3 || len(c.Queue) != 0 {
		t.Errorf("%+v is held, %d slots used, %d jobs queued", c.Holds, c.Used.Slots, len(c.Queue))
	}
	if err := c.Granted(jobtest.Start, batch.Origin(), of(batch, "ddddd", key, 1)); !errors.Is(err, jobs.ErrRefused) {
		t.Errorf("a grant after the end of the batch: %v", err)
	}
}

// A grant that overtakes its announcement, or an announcement that comes twice, takes nothing
// from the other jobs of the batch.
func TestAJobGetsOnePartOfABatch(t *testing.T) {
	c, batch, key := batched(jobs.Limits{})
	first, second := of(batch, "aaaaa", key, 1), of(batch, "bbbbb", key, 3)
	if err := c.Granted(jobtest.Start, batch.Origin(), first); err != nil {
		t.Fatal(err)
	}
	if h := c.Announced(jobtest.Start, first.Job, batch.Job, key, 1); h != nil || c.Holds[batch.Job].Workers != 3 {
		t.Errorf("announced after its grant: %+v is held, of the batch %+v", h, c.Holds[batch.Job])
	}
	if err := c.Granted(jobtest.Start, batch.Origin(), second); err != nil {
		t.Errorf("the other job's grant: %v", err)
	}
	if c.Used.Slots != 4 || len(c.Holds) != 0 {
		t.Errorf("%d slots are used, %+v held", c.Used.Slots, c.Holds)
	}
}

// The last part takes the batch out of the queue.
func TestABatchOfWhichNothingIsLeft(t *testing.T) {
	c, batch, key := batched(jobs.Limits{})
	if len(c.Queue) != 1 {
		t.Fatalf("%d are queued, want the batch", len(c.Queue))
	}
	c.Announced(jobtest.Start, of(batch, "aaaaa", key, 4).Job, batch.Job, key, 4)
	if len(c.Queue) != 0 || c.Holds[batch.Job] != nil || c.HeldSlots() != 4 {
		t.Errorf("%d are queued, %+v held for the batch, %d slots in all", len(c.Queue), c.Holds[batch.Job], c.HeldSlots())
	}
}

func TestWhatABatchDoesNotGive(t *testing.T) {
	for name, change := range map[string]func(g *wire.Grant){
		"another key":         func(g *wire.Grant) { g.Key++ },
		"more than is held":   func(g *wire.Grant) { g.Ranks = make([]jobs.RankAttempt, 5) },
		"of another origin":   func(g *wire.Grant) { g.Held = g.Held.At(jobtest.Node(2)) },
		"of a batch not held": func(g *wire.Grant) { g.Held = jobs.ID("eeeee").At(jobtest.Node(1)) },
		"nothing":             func(g *wire.Grant) { g.Held = "" },
	} {
		c, batch, key := batched(jobs.Limits{})
		g := of(batch, "aaaaa", key, 1)
		change(g)
		if err := c.Granted(jobtest.Start, batch.Origin(), g); !errors.Is(err, jobs.ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
		if h := c.Holds[batch.Job]; h == nil || h.Workers != 4 || len(c.Holds) != 1 {
			t.Errorf("%s: %+v is left of the batch", name, h)
		}
	}
}

// Nor does it give anything to another origin.
func TestOthersGetNothingOfABatch(t *testing.T) {
	c, batch, key := batched(jobs.Limits{})
	g := of(batch, "aaaaa", key, 1)
	g.Job = g.Job.At(jobtest.Node(2))
	if err := c.Granted(jobtest.Start, g.Job.Origin(), g); !errors.Is(err, jobs.ErrRefused) || c.Holds[batch.Job].Workers != 4 {
		t.Errorf("%v, of the batch is left %+v", err, c.Holds[batch.Job])
	}
}

// Of a job that is being granted no more is offered before the grant is there: its origin would
// take it for what it has granted.
func TestOffersWaitForGrants(t *testing.T) {
	c := New(vicinity.Member{ID: jobtest.Node(0), Slots: 2}, jobtest.Rand())
	other, ad := wiretest.Ad(jobtest.Node(2), "bbbbb", 1, 1), wiretest.Ad(jobtest.Node(1), "aaaaa", 2, 9)
	before := c.Advertised(jobtest.Start, other)
	a := c.Advertised(jobtest.Start, ad)
	c.Announced(jobtest.Start, ad.Job, "", a.Key, 1)
	c.Released(other.Job, before.Key, true)
	if out := c.Offers(jobtest.Start); len(out) != 0 {
		t.Fatalf("offers %+v", out)
	}
	if err := c.Granted(jobtest.Start, ad.Origin(), wiretest.Grant(ad, a.Key, 1)); err != nil {
		t.Fatal(err)
	}
	if out := c.Offers(jobtest.Start); len(out) != 1 || out[0].Answer.Workers != 1 || out[0].Answer.Key == a.Key {
		t.Errorf("offers %+v, want what is free, under another key", out)
	}
}

// An owner who limits jobs, or the workers of each, is asked for those of one job of a batch at
// most, and gets no more of them.
func TestBatchesAndTheLimitsOfOwners(t *testing.T) {
	c, batch, key := batched(jobs.Limits{MaxJobs: 1})
	if h := c.Holds[batch.Job]; h.Workers != 3 {
		t.Fatalf("%d workers are held, want those of one job", h.Workers)
	}
	if err := c.Granted(jobtest.Start, batch.Origin(), of(batch, "aaaaa", key, 1)); !errors.Is(err, jobs.ErrRefused) {
		t.Errorf("a job beside the rest of the batch, where one is allowed: %v", err)
	}
	if err := c.Granted(jobtest.Start, batch.Origin(), of(batch, "aaaaa", key, 3)); err != nil {
		t.Errorf("the only job: %v", err)
	}

	c, batch, key = batched(jobs.Limits{MaxWorkersPerJob: 2})
	if err := c.Granted(jobtest.Start, batch.Origin(), of(batch, "aaaaa", key, 2)); err != nil {
		t.Error(err)
	}
	again := c.Advertised(jobtest.Start, batch)
	if err := c.Granted(jobtest.Start, batch.Origin(), of(batch, "aaaaa", again.Key, 1)); !errors.Is(err, jobs.ErrRefused) {
		t.Errorf("a third worker where two are allowed: %v", err)
	}
}
