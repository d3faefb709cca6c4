package claims

import (
	"testing"

	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/internal/wire/wiretest"
	"zorilla/vicinity"
)

// What waits for room and is found not to match waits no longer, and its origin hears of it.
func TestDescribe(t *testing.T) {
	c := bigNode()
	slow, first := wiretest.Ad(jobtest.Node(1), "bbbbb", 2, 1), wiretest.Ad(jobtest.Node(1), "aaaaa", c.Has.Slots, 1)
	slow.Where = "power < 1000"
	first.Priority = 1
	c.Advertised(jobtest.Start, first)
	if a := c.Advertised(jobtest.Start, slow); a.Reason != wire.ReasonBusy || len(c.Queue) != 1 {
		t.Fatalf("got %+v, want it to wait", a)
	}
	c.Describe(vicinity.Member{ID: jobtest.Node(0), Speeds: vicinity.Speeds{Power: 1010}})
	if c.Wake().After(jobtest.Start) {
		t.Errorf("nothing is due before %v", c.Wake())
	}
	if out := c.Offers(jobtest.Start); len(c.Queue) != 0 || len(out) != 1 || out[0].Answer.Job != slow.Job || out[0].Answer.Reason != wire.ReasonWhere {
		t.Errorf("%d wait, and it says %+v", len(c.Queue), out)
	}
	if len(c.Holds) != 1 {
		t.Errorf("%d offers stand, want that which it made", len(c.Holds))
	}
	fast := wiretest.Ad(jobtest.Node(1), "ccccc", 1, 1)
	if fast.Where = "power >= 1000"; c.Advertised(jobtest.Start, fast).Reason == wire.ReasonWhere {
		t.Error("its power is not known to it")
	}
}
