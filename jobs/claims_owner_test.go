package jobs

import (
	"errors"
	"strings"
	"testing"
	"time"

	"zorilla/docs/tables"
	"zorilla/vicinity"
)

// bigNode has everything that a job can ask for.
func bigNode() *claims {
	return newClaims(vicinity.Member{ID: testNode(0), Name: "big", Slots: 8, Memory: 8 << 30, GPUs: 2, Platform: "linux/amd64"}, testRand())
}

func TestReasonsOfDeclines(t *testing.T) {
	for want, change := range map[string]func(*claims, *Advertisement){
		reasonSlots:                  func(_ *claims, ad *Advertisement) { ad.Slots = 9 },
		reasonMemory:                 func(_ *claims, ad *Advertisement) { ad.Memory = 9 << 30 },
		reasonGPUs:                   func(_ *claims, ad *Advertisement) { ad.GPUs = 3 },
		reasonDisk:                   func(c *claims, ad *Advertisement) { c.measured(1 << 20); ad.Disk = 2 << 20 },
		reasonWhere:                  func(_ *claims, ad *Advertisement) { ad.Where = `os == "plan9"` },
		reasonLeaving:                func(c *claims, _ *Advertisement) { c.closed = reasonLeaving },
		reasonPaused:                 func(c *claims, _ *Advertisement) { c.limit(Limits{Paused: true}) },
		reasonDenied:                 func(c *claims, ad *Advertisement) { c.limit(Limits{Deny: []string{string(ad.Origin())}}) },
		reasonBusy:                   func(c *claims, _ *Advertisement) { c.used.slots = 8 },
		"owner allows 1 job":         func(c *claims, _ *Advertisement) { c.jobs["other@zaaca"] = 1; c.limit(Limits{MaxJobs: 1}) },
		"owner allows 2 jobs":        func(c *claims, _ *Advertisement) { c.jobs = map[ID]int{"a": 1, "b": 1}; c.limit(Limits{MaxJobs: 2}) },
		"owner allows 1 job ":        nil, // one that has workers here may have more of them
		"owner allows 3 workers per": nil,
	} {
		c, ad := bigNode(), testAd(testNode(1), "aaaaa", 4, 1)
		switch {
		case change != nil:
			change(c, &ad)
		case strings.HasSuffix(want, "per"):
			c.jobs[ad.Job] = 3
			c.limit(Limits{MaxWorkersPerJob: 3})
			want += " job"
		default:
			c.jobs[ad.Job] = 1
			c.limit(Limits{MaxJobs: 1})
			want = ""
		}
		a := c.advertised(start, ad)
		if a.Reason != want || (a.Workers == 0) != (want != "") {
			t.Errorf("got %+v, want %q", a, want)
		}
		never := want == reasonSlots || want == reasonMemory || want == reasonGPUs || want == reasonWhere || want == reasonLeaving || want == reasonDenied
		if never && (a.Capacity != 0 || len(c.queue) != 0) {
			t.Errorf("%s: it says %+v and queues the job, which it will never run", want, a)
		}
		if !never && want != "" && len(c.queue) != 1 {
			t.Errorf("%s: the job is not queued", want)
		}
		if queue := c.waiting(start); want != "" && !never && queue[0].Reason != want {
			t.Errorf("%s: the queue says %q", want, queue[0].Reason)
		}
	}
}

func TestRequirementsAreCounted(t *testing.T) {
	c := bigNode()
	c.measured(10 << 20)
	first := testAd(testNode(1), "aaaaa", 4, 1)
	first.Disk, first.GPUs, first.Where = 4<<20, 1, `gpus == 2 && disk > 9M`
	a := c.advertised(start, first)
	if a.Workers != 2 || a.Capacity != 2 {
		t.Fatalf("got %+v, want two workers: there is disk, and there are GPUs, for no more", a)
	}
	g := testGrant(first, a.Key, 2)
	g.Spec.GPUs = 0
	if err := c.granted(start, first.Origin(), g); !errors.Is(err, ErrRefused) {
		t.Fatalf("a grant of workers that need something else: %v", err)
	}
	if err := c.granted(start, first.Origin(), testGrant(first, a.Key, 2)); err != nil {
		t.Fatal(err)
	}
	c.released(first.Job, true) // it has enough
	one, two := c.takeGPUs(1), c.takeGPUs(1)
	if len(one) != 1 || len(two) != 1 || one[0] == two[0] || c.takeGPUs(1) != nil {
		t.Fatalf("the GPUs are given as %v and %v", one, two)
	}
	second := testAd(testNode(2), "bbbbb", 1, 2)
	second.GPUs = 1
	if a := c.advertised(start, second); a.Reason != reasonBusy {
		t.Fatalf("got %+v although both GPUs are used", a)
	}
	c.giveGPUs(one)
	c.freed(first.Job, 1, first.needs())
	if out := c.offers(start); len(out) != 1 || out[0].answer.Job != second.Job {
		t.Fatalf("got %+v, want the freed GPU offered to %s", out, second.Job)
	}
	if again := c.takeGPUs(1); len(again) != 1 || again[0] != one[0] {
		t.Fatalf("got GPU %v, want %v that is free", again, one)
	}
}

func TestAdoptedWorkerKeepsItsGPU(t *testing.T) {
	c := bigNode()
	old := testAd(testNode(1), "aaaaa", 1, 1)
	c.adopted(old.Job, &Spec{Slots: 1, GPUs: 1}, []int{0}, start)
	ad := testAd(testNode(2), "bbbbb", 2, 2)
	ad.GPUs = 1
	if a := c.advertised(start, ad); a.Workers != 1 {
		t.Fatalf("got %+v, want an offer of the GPU that is left", a)
	}
	// One that has ended may have had the same, and gives it back.
	c.adopted(old.Job, &Spec{Slots: 1, GPUs: 1}, []int{0}, start)
	c.giveGPUs([]int{0})
	c.freed(old.Job, 1, needs{slots: 1, gpus: 1})
	if got := c.takeGPUs(1); len(got) != 1 || got[0] != 1 {
		t.Fatalf("got GPU %v, want the other one", got)
	}
	c.limit(Limits{MaxJobs: 1})
	if a := c.advertised(start, ad); a.Reason != "owner allows 1 job" {
		t.Fatalf("got %+v: the adopted job counts", a)
	}
}

func TestDiskThatBecomesFreeIsOffered(t *testing.T) {
	c := bigNode()
	c.measured(1 << 20)
	ad := testAd(testNode(1), "aaaaa", 1, 1)
	ad.Disk = 2 << 20
	if a := c.advertised(start, ad); a.Reason != reasonDisk {
		t.Fatalf("got %+v", a)
	}
	c.measured(1 << 10)
	if out := c.offers(start); len(out) != 0 {
		t.Fatalf("offered %+v", out)
	}
	c.measured(3 << 20)
	if out := c.offers(start); len(out) != 1 || out[0].answer.Workers != 1 {
		t.Fatalf("got %+v, want an offer", out)
	}
}

func TestPauseTakesOffersBackAndResumeOffers(t *testing.T) {
	c := bigNode()
	first, second := testAd(testNode(1), "aaaaa", 8, 1), testAd(testNode(2), "bbbbb", 2, 2)
	held := c.advertised(start, first)
	granted := c.advertised(start, first)
	if err := c.granted(start, first.Origin(), testGrant(first, granted.Key, 4)); err != nil || held.Key != granted.Key {
		t.Fatal(err)
	}
	held = c.advertised(start, second)
	c.limit(Limits{Paused: true})
	if err := c.granted(start, second.Origin(), testGrant(second, held.Key, 2)); !errors.Is(err, ErrRefused) {
		t.Fatalf("a grant after the pause: %v", err)
	}
	if c.busy() != 4 {
		t.Fatalf("%d slots are busy, want the 4 of the workers that go on", c.busy())
	}
	if a := c.advertised(start, second); a.Reason != reasonPaused {
		t.Fatalf("got %+v", a)
	}
	c.freed(first.Job, 4, first.needs())
	if out := c.offers(start); len(out) != 0 {
		t.Fatalf("offered %+v while paused", out)
	}
	c.limit(Limits{})
	if out := c.offers(start); len(out) != 1 || out[0].answer.Workers != 2 {
		t.Fatalf("got %+v, want an offer at once after resume", out)
	}
}

func TestLiftedLimitIsOffered(t *testing.T) {
	c := bigNode()
	c.limit(Limits{MaxJobs: 1, MaxWorkersPerJob: 2})
	first, second := testAd(testNode(1), "aaaaa", 4, 1), testAd(testNode(2), "bbbbb", 3, 2)
	a := c.advertised(start, first)
	if a.Workers != 2 || a.Capacity != 2 {
		t.Fatalf("got %+v, want the two that the owner allows", a)
	}
	if a := c.advertised(start, second); a.Reason != "owner allows 1 job" || a.Capacity != 2 {
		t.Fatalf("got %+v", a)
	}
	c.limit(Limits{MaxJobs: 2, MaxWorkersPerJob: 2})
	if out := c.offers(start); len(out) != 1 || out[0].answer.Job != second.Job || out[0].answer.Workers != 2 {
		t.Fatalf("got %+v, want an offer of 2 to %s", out, second.Job)
	}
	c.limit(Limits{})
	if out := c.offers(start); len(out) != 2 || out[0].answer.Workers != 4 || out[1].answer.Workers != 3 {
		t.Fatalf("got %+v, want offers of all that is wanted", out)
	}
	// Less is allowed again: the youngest offer goes first.
	c.limit(Limits{MaxJobs: 1})
	if c.holds[first.Job] == nil || c.holds[second.Job] != nil {
		t.Fatal("the offer to the older job should stand alone")
	}
}

func TestOlderJobTakesTheOnlyPlace(t *testing.T) {
	c := bigNode()
	c.limit(Limits{MaxJobs: 1})
	younger, older := testAd(testNode(1), "aaaaa", 1, 9), testAd(testNode(2), "bbbbb", 1, 1)
	c.advertised(start, younger)
	if a := c.advertised(start, older); a.Workers != 1 || c.holds[younger.Job] != nil {
		t.Fatalf("got %+v, and the younger job holds %+v", a, c.holds[younger.Job])
	}
}

func TestDeniedOrigin(t *testing.T) {
	c := bigNode()
	c.member = func(id vicinity.ID) (vicinity.Member, bool) {
		return vicinity.Member{ID: id, Name: "noisy"}, id == testNode(1)
	}
	ad := testAd(testNode(1), "aaaaa", 1, 1)
	held := c.advertised(start, ad)
	busy := testAd(testNode(1), "ccccc", 1, 3)
	busy.Slots = 8
	c.advertised(start, busy)
	c.limit(Limits{Deny: []string{"noisy"}})
	if err := c.granted(start, ad.Origin(), testGrant(ad, held.Key, 1)); !errors.Is(err, ErrRefused) {
		t.Fatalf("a grant of a denied origin: %v", err)
	}
	if len(c.queue) != 0 {
		t.Fatal("its jobs are still queued")
	}
	own := testAd(testNode(0), "bbbbb", 1, 1)
	if a := c.advertised(start, own); a.Workers != 1 {
		t.Fatalf("got %+v for a job of the node itself", a)
	}
}

func TestQueueTellsSinceWhen(t *testing.T) {
	c := bigNode()
	c.used.slots = 8
	low, high := testAd(testNode(1), "aaaaa", 4, 1), testAd(testNode(2), "bbbbb", 2, 2)
	high.Priority = 5
	c.advertised(start, low)
	c.advertised(start.Add(time.Second), high)
	c.advertised(start.Add(2*time.Second), low)
	queue := c.waiting(start.Add(3 * time.Second))
	if len(queue) != 2 || queue[0].Job != high.Job || queue[1].Job != low.Job {
		t.Fatalf("got %+v, want the higher priority first", queue)
	}
	if w := queue[1]; !w.Since.Equal(start) || !w.Expires.Equal(start.Add(62*time.Second)) || w.Wanted != 4 || w.Reason != reasonBusy {
		t.Fatalf("got %+v", w)
	}
	if queue := c.waiting(start.Add(62 * time.Second)); len(queue) != 0 {
		t.Fatalf("after a minute there is %+v", queue)
	}
}

// wantRow compares a reason of a decline with a row of the documentation.
func wantRow(t *testing.T, name, reason string) {
	t.Helper()
	if err := tables.Check("../docs/exit-codes.md", name, tables.Seen{Reason: reason}); err != nil {
		t.Error(err)
	}
}

// A queue that is full takes only jobs that go before the last one in it.
func TestQueueIsBounded(t *testing.T) {
	c := newClaims(vicinity.Member{ID: testNode(0), Slots: 1}, testRand())
	first := testAd(testNode(1), "aaaaa", 1, 0)
	if a := c.advertised(start, first); a.Workers != 1 || c.granted(start, testNode(1), testGrant(first, a.Key, 1)) != nil {
		t.Fatalf("got %+v", a)
	}
	for stamp := range maxQueue {
		ad := testAd(testNode(1), "aaaaa", 1, Stamp(stamp+10))
		ad.Job = NewID(c.rnd, testNode(1))
		c.queue = append(c.queue, &queued{ad: ad, since: start, expires: start.Add(time.Minute)})
	}
	wantRow(t, "too many jobs waiting", c.advertised(start, testAd(testNode(2), "bbbbb", 1, maxQueue+20)).Reason)
	if a := c.advertised(start, testAd(testNode(2), "ccccc", 1, 5)); a.Reason != reasonBusy || len(c.queue) != maxQueue || c.queue[0].ad.Job != ID("ccccc").At(testNode(2)) {
		t.Errorf("an older job: %q, queue of %d", a.Reason, len(c.queue))
	}
}
