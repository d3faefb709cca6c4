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

// testJob is a job of testNode(1).
var testJob = ID("k7f3q").At(testNode(1))

func testAd(origin vicinity.ID, job string, wanted int, stamp Stamp) Advertisement {
	return Advertisement{Job: ID(job).At(origin), Round: 1, Wanted: wanted, Slots: 1, Stamp: stamp, Life: 60_000}
}

func testGrant(ad Advertisement, key uint64, n int) *Grant {
	return &Grant{Job: ad.Job, Key: key, Spec: Spec{Slots: ad.Slots, Memory: ad.Memory, Disk: ad.Disk, GPUs: ad.GPUs}, Ranks: make([]RankAttempt, n)}
}

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func TestOfferGrantAndFree(t *testing.T) {
	o := testNode(1)
	c := newClaims(vicinity.Member{ID: testNode(0), Slots: 4, Memory: 0}, testRand())
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
	c.freed(ad.Job, 2, ad.needs())
	if c.busy() != 0 {
		t.Fatalf("%d slots busy, want 0", c.busy())
	}
}

// What a node offered before it was found unable to start workers is void.
func TestOffersOfANodeThatCannotStartWorkersAreVoid(t *testing.T) {
	c := newClaims(vicinity.Member{ID: testNode(0), Slots: 2}, testRand())
	ad := testAd(testNode(1), "aaaaa", 2, 1)
	a := c.advertised(start, ad)
	for range maxMisses {
		c.missed(start, "no room")
	}
	if err := c.granted(start, ad.Origin(), testGrant(ad, a.Key, 2)); !errors.Is(err, ErrRefused) || c.busy() != 0 {
		t.Fatalf("a grant of what was offered before gives %v, %d slots are busy", err, c.busy())
	}
}

func TestNoHoldOutlivesItsLease(t *testing.T) {
	c := newClaims(vicinity.Member{ID: testNode(0), Slots: 2, Memory: 0}, testRand())
	ad := testAd(testNode(1), "aaaaa", 2, 1)
	a := c.advertised(start, ad)
	late := start.Add(holdLease)
	if err := c.granted(late, ad.Origin(), testGrant(ad, a.Key, 2)); !errors.Is(err, ErrRefused) {
		t.Fatalf("a grant after the lease gives %v", err)
	}
	if c.busy() != 0 {
		t.Fatal("the hold is still there")
	}
}

func TestGrantMustAskForWhatIsHeld(t *testing.T) {
	c := newClaims(vicinity.Member{ID: testNode(0), Slots: 4, Memory: 0}, testRand())
	ad := testAd(testNode(1), "aaaaa", 2, 1)
	a := c.advertised(start, ad)
	g := testGrant(ad, a.Key, 2)
	g.Spec.Slots = 4096 // to be given back later
	if err := c.granted(start, ad.Origin(), g); !errors.Is(err, ErrRefused) {
		t.Fatalf("a grant with other needs than advertised gives %v", err)
	}
}

func TestRoomOfAnExpiredHoldIsOfferedWhoeverNotices(t *testing.T) {
	c := newClaims(vicinity.Member{ID: testNode(0), Slots: 2, Memory: 0}, testRand())
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
	c := newClaims(vicinity.Member{ID: testNode(0), Slots: 2, Memory: 0}, testRand())
	first, second, third := testAd(testNode(1), "aaaaa", 2, 1), testAd(testNode(2), "bbbbb", 1, 3), testAd(testNode(3), "ccccc", 1, 2)
	a := c.advertised(start, first)
	if err := c.granted(start, first.Origin(), testGrant(first, a.Key, 2)); err != nil {
		t.Fatal(err)
	}
	for _, ad := range []Advertisement{second, third} {
		if a := c.advertised(start, ad); a.Workers != 0 || a.Reason != reasonBusy {
			t.Fatalf("got %+v, want a decline because it is busy", a)
		}
	}
	c.freed(first.Job, 1, first.needs())
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

// A job whose origin asks again wants room, whatever it gave back before; here
// two jobs ask at the same time again and again, and the first one needs more
// than there is.
func TestJobThatAsksAgainIsOfferedWhatOthersGiveBack(t *testing.T) {
	c := newClaims(vicinity.Member{ID: testNode(0), Slots: 2}, testRand())
	tall, small := testAd(testNode(1), "aaaaa", 9, 1), testAd(testNode(2), "bbbbb", 2, 2)
	c.advertised(start, small)
	c.released(small.Job, false) // at that time it was short elsewhere
	if a := c.advertised(start, tall); a.Workers != 2 {
		t.Fatalf("got %+v", a)
	}
	if a := c.advertised(start, small); a.Reason != reasonBusy {
		t.Fatalf("got %+v although all is held", a)
	}
	c.released(tall.Job, false)
	if out := c.offers(start); len(out) != 1 || out[0].answer.Job != small.Job {
		t.Fatalf("got %+v, want an offer to %s", out, small.Job)
	}
}

func TestOlderJobTakesAHoldThatWasNotGranted(t *testing.T) {
	c := newClaims(vicinity.Member{ID: testNode(0), Slots: 2, Memory: 0}, testRand())
	younger, older := testAd(testNode(1), "aaaaa", 2, 9), testAd(testNode(2), "bbbbb", 2, 1)
	a := c.advertised(start, younger)
	b := c.advertised(start, older)
	if b.Workers != 2 {
		t.Fatalf("got %+v, want the older job to be offered the slots", b)
	}
	if told := c.takenBack(); len(told) != 1 || told[0].to != younger.Origin() || told[0].answer.Job != younger.Job || told[0].answer.Workers != 0 || told[0].answer.check() != nil {
		t.Fatalf("the younger job's origin is told %+v, want that its offer is gone", told)
	}
	if len(c.queue) != 1 || c.queue[0].ad.Job != younger.Job || len(c.takenBack()) != 0 {
		t.Fatalf("%d jobs are in the queue, want the younger one", len(c.queue))
	}
	if err := c.granted(start, younger.Origin(), testGrant(younger, a.Key, 2)); !errors.Is(err, ErrRefused) {
		t.Fatalf("the younger job's grant gives %v", err)
	}
	if err := c.granted(start, older.Origin(), testGrant(older, b.Key, 2)); err != nil {
		t.Fatal(err)
	}
	if again := c.advertised(start, younger); again.Workers != 0 {
		t.Fatalf("got %+v although all slots are claimed", again)
	}
}

// TestNeverMoreThanThereIs throws random inputs at the core and checks after
// each that what is used and held fits, that the owner's limits hold for what
// is new, and that the queue is in order.
func TestNeverMoreThanThereIs(t *testing.T) {
	for seed := range uint64(200) {
		r := newRandomClaims(t, seed)
		for range 300 {
			r.step()
			r.check()
		}
	}
}

// randomClaims is claims that are asked at random, and what must be true of them.
type randomClaims struct {
	t     *testing.T
	seed  uint64
	rnd   *rand.Rand
	c     *claims
	now   time.Time
	given []givenClaim
}

type givenClaim struct {
	job   ID
	n     int
	needs needs
	gpus  []int
}

func newRandomClaims(t *testing.T, seed uint64) *randomClaims {
	rnd := rand.New(rand.NewPCG(seed, 7))
	c := newClaims(vicinity.Member{ID: testNode(0), Slots: 1 + rnd.IntN(8), Memory: int64(rnd.IntN(2)) << 30, GPUs: rnd.IntN(4)}, rnd)
	return &randomClaims{t: t, seed: seed, rnd: rnd, c: c, now: start}
}

func (r *randomClaims) step() {
	rnd, c := r.rnd, r.c
	r.now = r.now.Add(time.Duration(rnd.Int64N(int64(2 * time.Second))))
	ad := testAd(testNode(1), string("abcdefgh"[rnd.IntN(8)])+"aaaa", 1+rnd.IntN(6), 0)
	ad.Stamp, ad.Slots, ad.Memory = Stamp(ad.Job[0]), 1+rnd.IntN(3), int64(rnd.IntN(3))<<28
	ad.Disk, ad.GPUs = int64(rnd.IntN(2))<<20, rnd.IntN(8)/6
	switch rnd.IntN(8) {
	case 0, 1, 2:
		a := c.advertised(r.now, ad)
		if (a.Workers > 0) == (a.Reason != "") {
			r.t.Fatalf("seed %d: the answer is %+v", r.seed, a)
		}
		if a.Workers > 0 && rnd.IntN(2) == 0 {
			n := 1 + rnd.IntN(a.Workers)
			h := c.holds[ad.Job]
			if err := c.granted(r.now, h.ad.Origin(), testGrant(ad, a.Key, n)); err != nil {
				r.t.Fatalf("seed %d: %v", r.seed, err)
			}
			r.given = append(r.given, givenClaim{ad.Job, n, h.needs, c.takeGPUs(n * h.needs.gpus)})
			if most := c.limits.MaxWorkersPerJob; most > 0 && c.jobs[ad.Job] > most {
				r.t.Fatalf("seed %d: %d workers of a job, the owner allows %d", r.seed, c.jobs[ad.Job], most)
			}
			if most := c.limits.MaxJobs; most > 0 && len(c.jobs) > most && c.jobs[ad.Job] == n {
				r.t.Fatalf("seed %d: %d jobs, the owner allows %d", r.seed, len(c.jobs), most)
			}
		}
	case 3:
		for _, out := range c.offers(r.now) {
			if c.limits.Paused {
				r.t.Fatalf("seed %d: offered %+v although it is paused", r.seed, out)
			}
		}
	case 4:
		c.released(ad.Job, rnd.IntN(2) == 0)
	case 5, 6:
		if len(r.given) > 0 {
			k := r.given[0]
			r.given = r.given[1:]
			c.giveGPUs(k.gpus)
			c.freed(k.job, k.n, k.needs)
		}
	case 7:
		if rnd.IntN(3) == 0 {
			c.limit(Limits{Paused: rnd.IntN(4) == 0, MaxJobs: rnd.IntN(4), MaxWorkersPerJob: rnd.IntN(4)})
		}
	}
}

func (r *randomClaims) check() {
	c := r.c
	left, _ := c.promised()
	if left.slots < 0 || left.memory < 0 || left.disk < 0 || left.gpus < 0 {
		r.t.Fatalf("seed %d: more is promised than there is: %+v is left", r.seed, left)
	}
	want, gpus := 0, map[int]bool{}
	for _, k := range r.given {
		want += k.n
		if len(k.gpus) != k.n*k.needs.gpus {
			r.t.Fatalf("seed %d: %d workers have the GPUs %v", r.seed, k.n, k.gpus)
		}
		for _, g := range k.gpus {
			if gpus[g] {
				r.t.Fatalf("seed %d: GPU %d has two owners", r.seed, g)
			}
			gpus[g] = true
		}
	}
	have := 0
	for _, n := range c.jobs {
		have += n
	}
	if have != want {
		r.t.Fatalf("seed %d: it counts %d workers of %d", r.seed, have, want)
	}
	for i := 1; i < len(c.queue); i++ {
		if c.queue[i].ad.order().before(c.queue[i-1].ad.order()) {
			r.t.Fatalf("seed %d: the queue is out of order", r.seed)
		}
	}
	if list := c.waiting(r.now); len(c.queue) != len(list) {
		r.t.Fatalf("seed %d: not all that waits is listed", r.seed)
	}
}

func testRand() *rand.Rand { return rand.New(rand.NewPCG(1, 1)) }
