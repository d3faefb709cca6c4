package jobs

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"zorilla/vicinity"
)

// testNode returns a node ID for tests; different numbers have different short
// IDs.
func testNode(n int) vicinity.ID {
	const digits = "abcdefghijklmnopqrstuvwxyz234567"
	return vicinity.ID("z" + string([]byte{digits[n/1024%32], digits[n/32%32], digits[n%32], 'a'}) + "aaaaaaaaaaaaaaaaaaaaaa")
}

func testAd(origin vicinity.ID, job string, wanted int, stamp Stamp) Advertisement {
	return Advertisement{Job: ID(job + "@" + origin.Short()), Origin: origin, Round: 1, Wanted: wanted, Slots: 1, Stamp: stamp, Life: 60_000}
}

func testGrant(ad Advertisement, key uint64, n int) *Grant {
	return &Grant{Job: ad.Job, Key: key, Spec: Spec{Slots: ad.Slots, Memory: ad.Memory}, Ranks: make([]RankAttempt, n)}
}

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func TestOfferGrantAndFree(t *testing.T) {
	o := testNode(1)
	c := newClaims(testNode(0), 4, 0, testRand())
	ad := testAd(o, "aaaaa", 3, 1)
	a := c.advertised(start, ad)
	if a.Workers != 3 || a.Key == 0 || a.Capacity != 4 {
		t.Fatalf("got %+v, want an offer of 3", a)
	}
	if again := c.advertised(start, ad); again.Key != a.Key || again.Workers != 3 {
		t.Fatalf("the same advertisement again gives %+v, want the same offer", again)
	}
	if err := c.granted(start, o, testGrant(ad, a.Key+1, 3)); !errors.Is(err, ErrRefused) {
		t.Fatalf("a wrong key gives %v", err)
	}
	if err := c.granted(start, testNode(2), testGrant(ad, a.Key, 3)); !errors.Is(err, ErrRefused) {
		t.Fatalf("a wrong origin gives %v", err)
	}
	if err := c.granted(start, o, testGrant(ad, a.Key, 4)); !errors.Is(err, ErrRefused) {
		t.Fatalf("more than offered gives %v", err)
	}
	if err := c.granted(start, o, testGrant(ad, a.Key, 2)); err != nil {
		t.Fatal(err)
	}
	if c.busy() != 2 {
		t.Fatalf("%d slots busy, want 2: what was not granted is free again", c.busy())
	}
	c.freed(ad.Job, 2, 1, 0)
	if c.busy() != 0 {
		t.Fatalf("%d slots busy, want 0", c.busy())
	}
}

func TestNoHoldOutlivesItsLease(t *testing.T) {
	c := newClaims(testNode(0), 2, 0, testRand())
	ad := testAd(testNode(1), "aaaaa", 2, 1)
	a := c.advertised(start, ad)
	late := start.Add(holdLease)
	if err := c.granted(late, ad.Origin, testGrant(ad, a.Key, 2)); !errors.Is(err, ErrRefused) {
		t.Fatalf("a grant after the lease gives %v", err)
	}
	if c.busy() != 0 {
		t.Fatal("the hold is still there")
	}
}

func TestGrantMustAskForWhatIsHeld(t *testing.T) {
	c := newClaims(testNode(0), 4, 0, testRand())
	ad := testAd(testNode(1), "aaaaa", 2, 1)
	a := c.advertised(start, ad)
	g := testGrant(ad, a.Key, 2)
	g.Spec.Slots = 4096 // to be given back later
	if err := c.granted(start, ad.Origin, g); !errors.Is(err, ErrRefused) {
		t.Fatalf("a grant with other needs than advertised gives %v", err)
	}
}

func TestRoomOfAnExpiredHoldIsOfferedWhoeverNotices(t *testing.T) {
	c := newClaims(testNode(0), 2, 0, testRand())
	first, second := testAd(testNode(1), "aaaaa", 2, 1), testAd(testNode(2), "bbbbb", 1, 2)
	c.advertised(start, first)
	if a := c.advertised(start, second); a.Workers != 0 {
		t.Fatalf("got %+v although all slots are held", a)
	}
	late := start.Add(holdLease)
	heavy := testAd(testNode(3), "ccccc", 1, 3)
	heavy.Slots = 3
	c.advertised(late, heavy) // drops the hold by the way
	if at := c.wake(); at.IsZero() || at.After(late) {
		t.Fatalf("wakes at %v: nobody offers the room to the job that waits", at)
	}
	if out := c.offers(late); len(out) != 1 || out[0].answer.Job != second.Job {
		t.Fatalf("got %+v, want an offer to %s", out, second.Job)
	}
	if at := c.wake(); !at.After(late) {
		t.Fatal("wakes again and again")
	}
}

func TestQueuedJobIsOfferedFreedRoom(t *testing.T) {
	c := newClaims(testNode(0), 2, 0, testRand())
	first, second, third := testAd(testNode(1), "aaaaa", 2, 1), testAd(testNode(2), "bbbbb", 1, 3), testAd(testNode(3), "ccccc", 1, 2)
	a := c.advertised(start, first)
	if err := c.granted(start, first.Origin, testGrant(first, a.Key, 2)); err != nil {
		t.Fatal(err)
	}
	for _, ad := range []Advertisement{second, third} {
		if a := c.advertised(start, ad); a.Workers != 0 || a.Reason != reasonBusy {
			t.Fatalf("got %+v, want a decline because it is busy", a)
		}
	}
	c.freed(first.Job, 1, 1, 0)
	out := c.offers(start)
	if len(out) != 1 || out[0].answer.Job != third.Job {
		t.Fatalf("got %+v, want an offer to the older job %s", out, third.Job)
	}
	// The origin gives it back: the same room is not offered to it again, but
	// to the next one.
	c.released(third.Job, false)
	out = c.offers(start)
	if len(out) != 1 || out[0].answer.Job != second.Job {
		t.Fatalf("got %+v, want an offer to %s", out, second.Job)
	}
}

func TestOlderJobTakesAHoldThatWasNotGranted(t *testing.T) {
	c := newClaims(testNode(0), 2, 0, testRand())
	younger, older := testAd(testNode(1), "aaaaa", 2, 9), testAd(testNode(2), "bbbbb", 2, 1)
	a := c.advertised(start, younger)
	b := c.advertised(start, older)
	if b.Workers != 2 {
		t.Fatalf("got %+v, want the older job to be offered the slots", b)
	}
	if err := c.granted(start, younger.Origin, testGrant(younger, a.Key, 2)); !errors.Is(err, ErrRefused) {
		t.Fatalf("the younger job's grant gives %v", err)
	}
	if err := c.granted(start, older.Origin, testGrant(older, b.Key, 2)); err != nil {
		t.Fatal(err)
	}
	if again := c.advertised(start, younger); again.Workers != 0 {
		t.Fatalf("got %+v although all slots are claimed", again)
	}
}

func TestReasonsOfDeclines(t *testing.T) {
	c := newClaims(testNode(0), 2, 1<<30, testRand())
	wide, heavy := testAd(testNode(1), "aaaaa", 1, 1), testAd(testNode(1), "bbbbb", 1, 1)
	wide.Slots, heavy.Memory = 3, 2<<30
	if a := c.advertised(start, wide); a.Reason != reasonSlots || a.Capacity != 0 {
		t.Errorf("got %+v", a)
	}
	if a := c.advertised(start, heavy); a.Reason != reasonMemory || a.Capacity != 0 {
		t.Errorf("got %+v", a)
	}
	c.closed = true
	if a := c.advertised(start, testAd(testNode(1), "ccccc", 1, 1)); a.Reason != reasonLeaving {
		t.Errorf("got %+v", a)
	}
}

// TestNeverMoreThanTheSlots throws random inputs at the core and checks after
// each that what is used and held fits, and that the queue is in order.
func TestNeverMoreThanTheSlots(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		c := newClaims(testNode(0), 1+rnd.IntN(8), int64(rnd.IntN(2))<<30, rnd)
		now := start
		type claim struct {
			job      ID
			n, slots int
			memory   int64
		}
		var claims []claim
		for range 300 {
			now = now.Add(time.Duration(rnd.Int64N(int64(2 * time.Second))))
			ad := testAd(testNode(1+rnd.IntN(5)), string("abcdefgh"[rnd.IntN(8)])+"aaaa", 1+rnd.IntN(6), Stamp(rnd.IntN(8)))
			ad.Origin = testNode(1)
			ad.Slots, ad.Memory, ad.Stamp = 1+rnd.IntN(3), int64(rnd.IntN(3))<<28, Stamp(ad.Job[0])
			switch rnd.IntN(5) {
			case 0, 1:
				a := c.advertised(now, ad)
				if a.Workers > 0 && rnd.IntN(2) == 0 {
					n := 1 + rnd.IntN(a.Workers)
					h := c.holds[ad.Job]
					if err := c.granted(now, h.origin, testGrant(ad, a.Key, n)); err != nil {
						t.Fatalf("seed %d: %v", seed, err)
					}
					claims = append(claims, claim{ad.Job, n, h.slots, h.memory})
				}
			case 2:
				c.offers(now)
			case 3:
				c.released(ad.Job, rnd.IntN(2) == 0)
			case 4:
				if len(claims) > 0 {
					k := claims[0]
					claims = claims[1:]
					c.freed(k.job, k.n, k.slots, k.memory)
				}
			}
			if c.heldSlots() > c.slots || c.memory > 0 && c.heldMemory() > c.memory {
				t.Fatalf("seed %d: %d of %d slots and %d of %d bytes are promised", seed, c.heldSlots(), c.slots, c.heldMemory(), c.memory)
			}
			for i := 1; i < len(c.queue); i++ {
				if c.queue[i].ad.order().before(c.queue[i-1].ad.order()) {
					t.Fatalf("seed %d: the queue is out of order", seed)
				}
			}
		}
	}
}

func testRand() *rand.Rand { return rand.New(rand.NewPCG(1, 1)) }
