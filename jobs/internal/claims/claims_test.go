package claims

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/groups"
	"zorilla/jobs/internal/calendar"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/internal/wire/wiretest"
	"zorilla/vicinity"
)

func TestOfferGrantAndFree(t *testing.T) {
	o := jobtest.Node(1)
	c := New(vicinity.Member{ID: jobtest.Node(0), Slots: 4, Memory: 0}, jobtest.Rand())
	ad := wiretest.Ad(o, "aaaaa", 3, 1)
	a := c.Advertised(jobtest.Start, ad)
	if a.Workers != 3 || a.Key == 0 || a.Capacity != 4 {
		t.Fatalf("got %+v, want an offer of 3", a)
	}
	if again := c.Advertised(jobtest.Start, ad); again.Key != a.Key || again.Workers != 3 {
		t.Fatalf("the same advertisement again gives %+v, want the same offer", again)
	}
	if err := c.Granted(jobtest.Start, o, wiretest.Grant(ad, a.Key+1, 3)); !errors.Is(err, jobs.ErrRefused) {
		t.Fatalf("a wrong key gives %v", err)
	}
	if err := c.Granted(jobtest.Start, jobtest.Node(2), wiretest.Grant(ad, a.Key, 3)); !errors.Is(err, jobs.ErrRefused) {
		t.Fatalf("a wrong origin gives %v", err)
	}
	if err := c.Granted(jobtest.Start, o, wiretest.Grant(ad, a.Key, 4)); !errors.Is(err, jobs.ErrRefused) {
		t.Fatalf("more than offered gives %v", err)
	}
	if err := c.Granted(jobtest.Start, o, wiretest.Grant(ad, a.Key, 2)); err != nil {
		t.Fatal(err)
	}
	if c.Busy() != 2 {
		t.Fatalf("%d slots busy, want 2: what was not granted is free again", c.Busy())
	}
	c.Freed(ad.Job, 2, ad.Needs)
	if c.Busy() != 0 {
		t.Fatalf("%d slots busy, want 0", c.Busy())
	}
}

// What a node offered before it was found unable to start workers is void.
func TestOffersOfANodeThatCannotStartWorkersAreVoid(t *testing.T) {
	c := New(vicinity.Member{ID: jobtest.Node(0), Slots: 2}, jobtest.Rand())
	ad := wiretest.Ad(jobtest.Node(1), "aaaaa", 2, 1)
	a := c.Advertised(jobtest.Start, ad)
	for range MaxMisses {
		c.Missed(jobtest.Start, "no room")
	}
	if err := c.Granted(jobtest.Start, ad.Origin(), wiretest.Grant(ad, a.Key, 2)); !errors.Is(err, jobs.ErrRefused) || c.Busy() != 0 {
		t.Fatalf("a grant of what was offered before gives %v, %d slots are busy", err, c.Busy())
	}
}

func TestNoHoldOutlivesItsLease(t *testing.T) {
	c := New(vicinity.Member{ID: jobtest.Node(0), Slots: 2, Memory: 0}, jobtest.Rand())
	ad := wiretest.Ad(jobtest.Node(1), "aaaaa", 2, 1)
	a := c.Advertised(jobtest.Start, ad)
	late := jobtest.Start.Add(wire.HoldLease)
	if err := c.Granted(late, ad.Origin(), wiretest.Grant(ad, a.Key, 2)); !errors.Is(err, jobs.ErrRefused) {
		t.Fatalf("a grant after the lease gives %v", err)
	}
	if c.Busy() != 0 {
		t.Fatal("the hold is still there")
	}
}

func TestGrantMustAskForWhatIsHeld(t *testing.T) {
	c := New(vicinity.Member{ID: jobtest.Node(0), Slots: 4, Memory: 0}, jobtest.Rand())
	ad := wiretest.Ad(jobtest.Node(1), "aaaaa", 2, 1)
	a := c.Advertised(jobtest.Start, ad)
	g := wiretest.Grant(ad, a.Key, 2)
	g.Spec.Slots = 4096 // to be given back later
	if err := c.Granted(jobtest.Start, ad.Origin(), g); !errors.Is(err, jobs.ErrRefused) {
		t.Fatalf("a grant with other needs than advertised gives %v", err)
	}
}

func TestRoomOfAnExpiredHoldIsOfferedWhoeverNotices(t *testing.T) {
	c := New(vicinity.Member{ID: jobtest.Node(0), Slots: 2, Memory: 0}, jobtest.Rand())
	first, second := wiretest.Ad(jobtest.Node(1), "aaaaa", 2, 1), wiretest.Ad(jobtest.Node(2), "bbbbb", 1, 2)
	c.Advertised(jobtest.Start, first)
	if a := c.Advertised(jobtest.Start, second); a.Workers != 0 {
		t.Fatalf("got %+v although all slots are held", a)
	}
	late := jobtest.Start.Add(wire.HoldLease)
	heavy := wiretest.Ad(jobtest.Node(3), "ccccc", 1, 3)
	heavy.Slots = 3
	c.Advertised(late, heavy) // drops the hold by the way
	if at := c.Wake(); at.IsZero() || at.After(late) {
		t.Fatalf("wakes at %v: nobody offers the room to the job that waits", at)
	}
	if out := c.Offers(late); len(out) != 1 || out[0].Answer.Job != second.Job {
		t.Fatalf("got %+v, want an offer to %s", out, second.Job)
	}
	if at := c.Wake(); !at.After(late) {
		t.Fatal("wakes again and again")
	}
}

func TestQueuedJobIsOfferedFreedRoom(t *testing.T) {
	c := New(vicinity.Member{ID: jobtest.Node(0), Slots: 2, Memory: 0}, jobtest.Rand())
	first, second, third := wiretest.Ad(jobtest.Node(1), "aaaaa", 2, 1), wiretest.Ad(jobtest.Node(2), "bbbbb", 1, 3), wiretest.Ad(jobtest.Node(3), "ccccc", 1, 2)
	a := c.Advertised(jobtest.Start, first)
	if err := c.Granted(jobtest.Start, first.Origin(), wiretest.Grant(first, a.Key, 2)); err != nil {
		t.Fatal(err)
	}
	for _, ad := range []wire.Advertisement{second, third} {
		if a := c.Advertised(jobtest.Start, ad); a.Workers != 0 || a.Reason != wire.ReasonBusy {
			t.Fatalf("got %+v, want a decline because it is busy", a)
		}
	}
	c.Freed(first.Job, 1, first.Needs)
	out := c.Offers(jobtest.Start)
	if len(out) != 1 || out[0].Answer.Job != third.Job {
		t.Fatalf("got %+v, want an offer to the older job %s", out, third.Job)
	}
	// The origin gives it back: the same room is not offered to it again, but
	// to the next one.
	c.Released(third.Job, 0, false)
	out = c.Offers(jobtest.Start)
	if len(out) != 1 || out[0].Answer.Job != second.Job {
		t.Fatalf("got %+v, want an offer to %s", out, second.Job)
	}
}

// A job whose origin asks again wants room, whatever it gave back before; here
// two jobs ask at the same time again and again, and the first one needs more
// than there is.
func TestJobThatAsksAgainIsOfferedWhatOthersGiveBack(t *testing.T) {
	c := New(vicinity.Member{ID: jobtest.Node(0), Slots: 2}, jobtest.Rand())
	tall, small := wiretest.Ad(jobtest.Node(1), "aaaaa", 9, 1), wiretest.Ad(jobtest.Node(2), "bbbbb", 2, 2)
	c.Advertised(jobtest.Start, small)
	c.Released(small.Job, 0, false) // at that time it was short elsewhere
	if a := c.Advertised(jobtest.Start, tall); a.Workers != 2 {
		t.Fatalf("got %+v", a)
	}
	if a := c.Advertised(jobtest.Start, small); a.Reason != wire.ReasonBusy {
		t.Fatalf("got %+v although all is held", a)
	}
	c.Released(tall.Job, 0, false)
	if out := c.Offers(jobtest.Start); len(out) != 1 || out[0].Answer.Job != small.Job {
		t.Fatalf("got %+v, want an offer to %s", out, small.Job)
	}
}

func TestOlderJobTakesAHoldThatWasNotGranted(t *testing.T) {
	c := New(vicinity.Member{ID: jobtest.Node(0), Slots: 2, Memory: 0}, jobtest.Rand())
	younger, older := wiretest.Ad(jobtest.Node(1), "aaaaa", 2, 9), wiretest.Ad(jobtest.Node(2), "bbbbb", 2, 1)
	a := c.Advertised(jobtest.Start, younger)
	if b := c.Advertised(jobtest.Start, older); b.Workers != 0 || b.Held != 2 {
		t.Fatalf("got %+v, want the older job to be told of the slots", b)
	}
	c.Recalled(jobtest.Start, older.Job)
	c.TakenBack()
	taken := c.Wake()
	if !taken.Equal(jobtest.Start.Add(RecallTime)) || len(c.Offers(taken.Add(-1))) != 0 {
		t.Fatalf("an offer is taken away at %v, want %v after it was recalled", taken, RecallTime)
	}
	out := c.Offers(taken)
	if len(out) != 2 || out[0].Answer.Job != older.Job || out[0].Answer.Workers != 2 {
		t.Fatalf("got %+v, want the older job to be offered the slots", out)
	}
	b := out[0].Answer
	if told := out[1]; told.To != younger.Origin() || told.Answer.Job != younger.Job || told.Answer.Workers != 0 || told.Answer.Held != 2 || told.Answer.Check() != nil {
		t.Fatalf("the younger job's origin is told %+v, want that its offer is gone", told)
	}
	if len(c.Queue) != 1 || c.Queue[0].Ad.Job != younger.Job || len(c.TakenBack()) != 0 {
		t.Fatalf("%d jobs are in the queue, want the younger one", len(c.Queue))
	}
	if err := c.Granted(jobtest.Start, younger.Origin(), wiretest.Grant(younger, a.Key, 2)); !errors.Is(err, jobs.ErrRefused) {
		t.Fatalf("the younger job's grant gives %v", err)
	}
	if err := c.Granted(jobtest.Start, older.Origin(), wiretest.Grant(older, b.Key, 2)); err != nil {
		t.Fatal(err)
	}
	if again := c.Advertised(jobtest.Start, younger); again.Workers != 0 {
		t.Fatalf("got %+v although all slots are claimed", again)
	}
}

// TestNeverMoreThanThereIs throws random inputs at the core and checks after
// each that what is used and held fits, that the owner's limits hold for what
// is new, and that the queue is in order.
func TestNeverMoreThanThereIs(t *testing.T) {
	gangs := 0
	for seed := range uint64(200) {
		r := newRandomClaims(t, seed)
		for range 300 {
			r.step()
			r.check()
		}
		gangs += r.gangs
	}
	if gangs < 1000 {
		t.Errorf("%d jobs with groups were granted: the test does not test", gangs)
	}
}

// randomClaims is claims that are asked at random, and what must be true of them.
type randomClaims struct {
	t     *testing.T
	seed  uint64
	rnd   *rand.Rand
	c     *Claims
	now   time.Time
	given []givenClaim
	gangs int // jobs with groups that were granted
}

type givenClaim struct {
	job   jobs.ID
	n     int
	needs jobs.Needs
	gpus  []int
}

func newRandomClaims(t *testing.T, seed uint64) *randomClaims {
	rnd := rand.New(rand.NewPCG(seed, 7))
	c := New(vicinity.Member{ID: jobtest.Node(0), Slots: 1 + rnd.IntN(8), Memory: int64(rnd.IntN(2)) << 30, GPUs: rnd.IntN(4), Version: jobs.CurrentVersion}, rnd)
	return &randomClaims{t: t, seed: seed, rnd: rnd, c: c, now: jobtest.Start}
}

func (r *randomClaims) step() {
	rnd, c := r.rnd, r.c
	r.now = r.now.Add(time.Duration(rnd.Int64N(int64(2 * time.Second))))
	ad := wiretest.Ad(jobtest.Node(1), string("abcdefgh"[rnd.IntN(8)])+"aaaa", 1+rnd.IntN(6), 0)
	ad.Stamp, ad.Slots, ad.Memory = jobs.Stamp(ad.Job[0]), 1+rnd.IntN(3), int64(rnd.IntN(3))<<28
	ad.Disk, ad.GPUs = int64(rnd.IntN(2))<<20, rnd.IntN(8)/6
	switch rnd.IntN(8) {
	case 0:
		r.gang()
	case 1, 2:
		a := c.Advertised(r.now, ad)
		if (a.Workers > 0) == (a.Reason != "") {
			r.t.Fatalf("seed %d: the answer is %+v", r.seed, a)
		}
		if a.Workers > 0 && rnd.IntN(2) == 0 {
			n := 1 + rnd.IntN(a.Workers)
			h := c.Holds[ad.Job]
			if err := c.Granted(r.now, h.Ad.Origin(), wiretest.Grant(ad, a.Key, n)); err != nil {
				r.t.Fatalf("seed %d: %v", r.seed, err)
			}
			r.given = append(r.given, givenClaim{ad.Job, n, h.Ad.Needs, c.TakeGPUs(n * h.Ad.Needs.GPUs)})
			if most := c.Limits.MaxWorkersPerJob; most > 0 && c.Jobs[ad.Job] > most {
				r.t.Fatalf("seed %d: %d workers of a job, the owner allows %d", r.seed, c.Jobs[ad.Job], most)
			}
			if most := c.Limits.MaxJobs; most > 0 && len(c.Jobs) > most && c.Jobs[ad.Job] == n {
				r.t.Fatalf("seed %d: %d jobs, the owner allows %d", r.seed, len(c.Jobs), most)
			}
		}
	case 3:
		for _, out := range c.Offers(r.now) {
			if c.Limits.Paused {
				r.t.Fatalf("seed %d: offered %+v although it is paused", r.seed, out)
			}
		}
	case 4:
		c.Released(ad.Job, 0, rnd.IntN(2) == 0)
	case 5, 6:
		if len(r.given) > 0 {
			k := r.given[0]
			r.given = r.given[1:]
			c.GiveGPUs(k.gpus)
			c.Freed(k.job, k.n, k.needs)
		}
	case 7:
		if rnd.IntN(3) == 0 {
			c.Limit(jobs.Limits{Paused: rnd.IntN(4) == 0, MaxJobs: rnd.IntN(4), MaxWorkersPerJob: rnd.IntN(4)})
		}
	}
}

// gang has a job with groups ask, and perhaps take a mix of its workers that there is room for.
func (r *randomClaims) gang() {
	rnd, c := r.rnd, r.c
	var list []groups.Group
	for range 1 + rnd.IntN(3) {
		g := groups.Group{Max: jobs.MaxRanks / 4, Slots: slots(1 + rnd.Int64N(3)), Memory: groups.Range{Min: rnd.Int64N(3) << 28}, GPUs: groups.Range{Min: rnd.Int64N(8) / 6}}
		g.Where = []string{"", "", "slots > 4"}[rnd.IntN(3)]
		list = append(list, g)
	}
	spec := gang(list...)
	ad := adOf(&spec, string("abcdefgh"[rnd.IntN(8)])+"aaaa", 1+rnd.IntN(6), 0)
	ad.Stamp = jobs.Stamp(ad.Job[0])
	a := c.Advertised(r.now, ad)
	if (a.Workers > 0) == (a.Reason != "") || a.Check() != nil || (a.Room != nil) != (a.Workers > 0) {
		r.t.Fatalf("seed %d: the answer is %+v, room %+v", r.seed, a, a.Room)
	}
	if a.Workers == 0 || rnd.IntN(2) == 0 {
		return
	}
	_, of := spec.Kinds()
	room, sizes, n := c.Holds[ad.Job].Room, make([]int, len(list)), 0
	for n < a.Workers {
		g := rnd.IntN(len(list))
		left := room.Minus(spec.NeedsOf(g), 1)
		if a.Fits&(1<<of[g]) == 0 || left.Slots < 0 || left.Memory < 0 || left.GPUs < 0 {
			if rnd.IntN(4) == 0 {
				break
			}
			continue
		}
		room, n = left, n+1
		sizes[g]++
	}
	if n == 0 {
		return
	}
	if err := c.Granted(r.now, ad.Origin(), grantOf(&spec, ad, a.Key, sizes...)); err != nil {
		r.t.Fatalf("seed %d: a grant of %v of %+v, %+v: %v", r.seed, sizes, a, a.Room, err)
	}
	for g, n := range sizes {
		if needs := spec.NeedsOf(g); n > 0 {
			r.given = append(r.given, givenClaim{ad.Job, n, needs, c.TakeGPUs(n * needs.GPUs)})
		}
	}
	if most := c.Limits.MaxWorkersPerJob; most > 0 && c.Jobs[ad.Job] > most {
		r.t.Fatalf("seed %d: %d workers of a job, the owner allows %d", r.seed, c.Jobs[ad.Job], most)
	}
	r.gangs++
}

func (r *randomClaims) check() {
	c := r.c
	left, _ := c.promised()
	if left.Slots < 0 || left.Memory < 0 || left.Disk < 0 || left.GPUs < 0 {
		r.t.Fatalf("seed %d: more is promised than there is: %+v is left", r.seed, left)
	}
	want, gpus, used := 0, map[int]bool{}, calendar.Supply{}
	for _, k := range r.given {
		want += k.n
		used = used.Minus(k.needs, -k.n)
		if len(k.gpus) != k.n*k.needs.GPUs {
			r.t.Fatalf("seed %d: %d workers have the GPUs %v", r.seed, k.n, k.gpus)
		}
		for _, g := range k.gpus {
			if gpus[g] {
				r.t.Fatalf("seed %d: GPU %d has two owners", r.seed, g)
			}
			gpus[g] = true
		}
	}
	if c.Used != used {
		r.t.Fatalf("seed %d: it counts %+v, workers use %+v", r.seed, c.Used, used)
	}
	have := 0
	for _, n := range c.Jobs {
		have += n
	}
	if have != want {
		r.t.Fatalf("seed %d: it counts %d workers of %d", r.seed, have, want)
	}
	for i := 1; i < len(c.Queue); i++ {
		if c.Queue[i].Ad.Order().Before(c.Queue[i-1].Ad.Order()) {
			r.t.Fatalf("seed %d: the queue is out of order", r.seed)
		}
	}
	if list := c.Waiting(r.now); len(c.Queue) != len(list) {
		r.t.Fatalf("seed %d: not all that waits is listed", r.seed)
	}
}

// A malleable job that grants what it was offered asks for the rest at once: the grant, which
// comes later, is as good as before.
func TestHoldsDoNotShrinkUnderAGrant(t *testing.T) {
	c := New(vicinity.Member{ID: jobtest.Node(0), Slots: 2}, jobtest.Rand())
	ad := wiretest.Ad(jobtest.Node(1), "aaaaa", 3, 1)
	a := c.Advertised(jobtest.Start, ad)
	rest := ad
	rest.Round, rest.Wanted = 2, 1
	if b := c.Advertised(jobtest.Start, rest); b.Key != a.Key || b.Workers != 2 {
		t.Fatalf("asked for one more it offers %+v, and %+v before", b, a)
	}
	if err := c.Granted(jobtest.Start, ad.Origin(), wiretest.Grant(ad, a.Key, 2)); err != nil {
		t.Fatal(err)
	}
}
