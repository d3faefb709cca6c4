package claims

import (
	"errors"
	"strings"
	"testing"
	"time"

	"zorilla/docs/tables"
	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/internal/wire/wiretest"
	"zorilla/vicinity"
)

// ownedMount is a path that the tests' owner shows, to be read.
const ownedMount = "/data"

// bigNode has everything that a job can ask for.
func bigNode() *Claims {
	return New(vicinity.Member{ID: jobtest.Node(0), Name: "big", Slots: 8, Memory: 8 << 30, GPUs: 2, Platform: "linux/amd64"}, jobtest.Rand())
}

func TestReasonsOfDeclines(t *testing.T) {
	for want, change := range map[string]func(*Claims, *wire.Advertisement){
		wire.ReasonSlots:  func(_ *Claims, ad *wire.Advertisement) { ad.Slots = 9 },
		wire.ReasonMemory: func(_ *Claims, ad *wire.Advertisement) { ad.Memory = 9 << 30 },
		wire.ReasonGPUs:   func(_ *Claims, ad *wire.Advertisement) { ad.GPUs = 3 },
		wire.ReasonDisk:   func(c *Claims, ad *wire.Advertisement) { c.Measured(1 << 20); ad.Disk = 2 << 20 },
		wire.ReasonWhere:  func(_ *Claims, ad *wire.Advertisement) { ad.Where = `os == "plan9"` },
		wire.ReasonMount + " /home/ann": func(c *Claims, ad *wire.Advertisement) {
			c.Limit(jobs.Limits{Expose: []string{ownedMount + ":ro"}})
			ad.Mounts = []string{ownedMount + "/x:ro", "/home/ann:ro"}
		},
		wire.ReasonMount + " " + ownedMount: func(c *Claims, ad *wire.Advertisement) {
			c.Limit(jobs.Limits{Expose: []string{ownedMount + ":ro"}})
			ad.Mounts = []string{ownedMount + ":rw"}
		},
		wire.ReasonFull:      func(c *Claims, _ *wire.Advertisement) { c.Disk.Keep = 2 << 20; c.Measured(1 << 20) },
		wire.ReasonHangs:     func(c *Claims, _ *wire.Advertisement) { Answers(c, jobtest.Start, false) },
		wire.ReasonLeaving:   func(c *Claims, _ *wire.Advertisement) { c.Closed = wire.ReasonLeaving },
		wire.ReasonPaused:    func(c *Claims, _ *wire.Advertisement) { c.Limit(jobs.Limits{Paused: true}) },
		wire.ReasonDenied:    func(c *Claims, ad *wire.Advertisement) { c.Limit(jobs.Limits{Deny: []string{string(ad.Origin())}}) },
		wire.ReasonBusy:      func(c *Claims, _ *wire.Advertisement) { c.Used.Slots = 8 },
		"owner allows 1 job": func(c *Claims, _ *wire.Advertisement) { c.Jobs["other@zaaca"] = 1; c.Limit(jobs.Limits{MaxJobs: 1}) },
		"owner allows 2 jobs": func(c *Claims, _ *wire.Advertisement) {
			c.Jobs = map[jobs.ID]int{"a": 1, "b": 1}
			c.Limit(jobs.Limits{MaxJobs: 2})
		},
		wire.ReasonNetwork:           func(c *Claims, _ *wire.Advertisement) { c.Limit(jobs.Limits{Network: jobs.NetNone}) },
		wire.ReasonNetJob:            func(c *Claims, _ *wire.Advertisement) { c.Limit(jobs.Limits{Network: jobs.NetJob}) },
		wire.ReasonNoNet:             func(_ *Claims, ad *wire.Advertisement) { ad.Net = jobs.NetNone },
		wire.ReasonNoFence:           func(_ *Claims, ad *wire.Advertisement) { ad.Among = true },
		"owner allows 1 job ":        nil, // one that has workers here may have more of them
		"owner allows 3 workers per": nil,
	} {
		c, ad := bigNode(), wiretest.Ad(jobtest.Node(1), "aaaaa", 4, 1)
		switch {
		case change != nil:
			change(c, &ad)
		case strings.HasSuffix(want, "per"):
			c.Jobs[ad.Job] = 3
			c.Limit(jobs.Limits{MaxWorkersPerJob: 3})
			want += " job"
		default:
			c.Jobs[ad.Job] = 1
			c.Limit(jobs.Limits{MaxJobs: 1})
			want = ""
		}
		a := c.Advertised(jobtest.Start, ad)
		if a.Reason != want || (a.Workers == 0) != (want != "") {
			t.Errorf("got %+v, want %q", a, want)
		}
		never := want == wire.ReasonSlots || strings.Contains(want, "--net") || strings.HasPrefix(want, "cannot keep workers") || want == wire.ReasonMemory || want == wire.ReasonGPUs || want == wire.ReasonWhere || want == wire.ReasonLeaving || want == wire.ReasonDenied || strings.HasPrefix(want, wire.ReasonMount)
		if never && (a.Capacity != 0 || len(c.Queue) != 0) {
			t.Errorf("%s: it says %+v and queues the job, which it will never run", want, a)
		}
		if !never && want != "" && len(c.Queue) != 1 {
			t.Errorf("%s: the job is not queued", want)
		}
		if queue := c.Waiting(jobtest.Start); want != "" && !never && queue[0].Reason != want {
			t.Errorf("%s: the queue says %q", want, queue[0].Reason)
		}
	}
}

// Jobs without a network run where that can be had, also where the owner allows no other.
func TestJobsWithoutNetwork(t *testing.T) {
	c := New(vicinity.Member{ID: jobtest.Node(0), Slots: 8, Enforces: []string{"namespaces"}}, jobtest.Rand())
	c.Limit(jobs.Limits{Network: jobs.NetNone})
	ad := wiretest.Ad(jobtest.Node(1), "aaaaa", 2, 1)
	ad.Net = jobs.NetNone
	a := c.Advertised(jobtest.Start, ad)
	if a.Workers != 2 {
		t.Fatalf("got %+v, want an offer", a)
	}
	if err := c.Granted(jobtest.Start, ad.Origin(), wiretest.Grant(ad, a.Key, 2)); !errors.Is(err, jobs.ErrRefused) {
		t.Errorf("a grant with a network gives %v", err)
	}
	with := wiretest.Ad(jobtest.Node(1), "bbbbb", 2, 1)
	c.Limit(jobs.Limits{})
	if a := c.Advertised(jobtest.Start, with); a.Workers != 2 {
		t.Fatalf("got %+v, want an offer", a)
	}
	c.Limit(jobs.Limits{Network: jobs.NetNone})
	if len(c.Holds) != 1 {
		t.Errorf("%d are offered slots, want the one without a network", len(c.Holds))
	}
}

// Jobs that reach their own nodes alone run where that can be had, unless the owner allows
// less, and are not granted another network.
func TestJobsAmongTheirNodes(t *testing.T) {
	c := New(vicinity.Member{ID: jobtest.Node(0), Slots: 8, Enforces: []string{"network-job"}}, jobtest.Rand())
	for allowed, want := range map[string]string{"": "", jobs.NetHost: "", jobs.NetJob: "", jobs.NetNone: wire.ReasonNetwork} {
		c.Limit(jobs.Limits{Network: allowed})
		ad := wiretest.Ad(jobtest.Node(1), "aaaaa", 2, 1)
		ad.Ask(jobs.NetJob)
		a := c.Advertised(jobtest.Start, ad)
		if a.Reason != want || (want == "") != (a.Workers == 2) {
			t.Errorf("%q: got %+v", allowed, a)
		}
		if want == "" {
			if err := c.Granted(jobtest.Start, ad.Origin(), wiretest.Grant(ad, a.Key, 2)); !errors.Is(err, jobs.ErrRefused) {
				t.Errorf("a grant with the network of the node gives %v", err)
			}
		}
	}
	c.Limit(jobs.Limits{Network: jobs.NetJob})
	if a := c.Advertised(jobtest.Start, wiretest.Ad(jobtest.Node(1), "bbbbb", 2, 1)); a.Reason != wire.ReasonNetJob {
		t.Errorf("with the network of the node: %+v", a)
	}
}

// Only what a job asked for when it was offered slots is given to it, and only as long as
// the owner shows it. A job of the node itself gets more, and nobody else's does.
func TestMounts(t *testing.T) {
	c := bigNode()
	c.Limit(jobs.Limits{Expose: []string{ownedMount + ":ro"}})
	ad := wiretest.Ad(jobtest.Node(1), "aaaaa", 2, 1)
	a := c.Advertised(jobtest.Start, ad)
	g := wiretest.Grant(ad, a.Key, 2)
	g.Spec.Mounts = []string{ownedMount + ":ro"}
	if err := c.Granted(jobtest.Start, ad.Origin(), g); !errors.Is(err, jobs.ErrRefused) {
		t.Errorf("a grant with other mounts than advertised gives %v", err)
	}
	ad.Mounts = g.Spec.Mounts
	if a = c.Advertised(jobtest.Start, ad); a.Workers != 2 {
		t.Fatalf("got %+v, want an offer", a)
	}
	c.Limit(jobs.Limits{})
	if len(c.Holds) != 0 {
		t.Error("what is not shown any more is still offered")
	}
	spec := jobs.Spec{Access: jobs.Access{Mounts: []string{"/data:ro"}}}
	older := ad
	older.Where, older.Mounts = spec.Condition(), nil // it does not know that field
	if a := c.Advertised(jobtest.Start, older); a.Reason != wire.ReasonWhere {
		t.Errorf("a node that knows no mounts says %+v", a)
	}
	own := wiretest.Ad(jobtest.Node(0), "bbbbb", 2, 1)
	own.Mounts = []string{"/home/ann:ro"}
	if a := c.Advertised(jobtest.Start, own); a.Workers != 2 {
		t.Errorf("the node's own job gets %+v", a)
	}
	own.Mounts = []string{"/" + strings.Repeat("x", 250) + ":rw"}
	if a := c.Advertised(jobtest.Start, own); a.Workers != 0 || a.Check() != nil {
		t.Errorf("the node's own job gets %+v, which is %v", a, a.Check())
	}
	c.Limit(jobs.Limits{Mounts: jobs.MountsExposed})
	own.Mounts = []string{"/home/ann:ro"}
	if a := c.Advertised(jobtest.Start, own); a.Workers != 0 || a.Reason != wire.ReasonMount+" /home/ann" {
		t.Errorf("the node's own job gets %+v, want a decline", a)
	}
}

// What is to be kept free is nobody's, and a node that has come to that takes nobody in
// until there is some room.
func TestDiskIsKeptFree(t *testing.T) {
	const mib = 1 << 20
	c := bigNode()
	c.Disk.Keep = 100 * mib
	c.Measured(150 * mib)
	first := wiretest.Ad(jobtest.Node(1), "aaaaa", 4, 1)
	first.Disk = 20 * mib
	if a := c.Advertised(jobtest.Start, first); a.Workers != 2 {
		t.Fatalf("got %+v, want two workers: there is disk for no more", a)
	}
	second := wiretest.Ad(jobtest.Node(2), "bbbbb", 2, 1)
	c.Measured(100*mib - 1)
	if len(c.Holds) != 0 || !c.Disk.Full {
		t.Errorf("%d offers stand on a full disk", len(c.Holds))
	}
	if a := c.Advertised(jobtest.Start, second); a.Workers != 0 || a.Reason != wire.ReasonFull {
		t.Errorf("got %+v, want a decline", a)
	}
	for _, free := range []int64{100 * mib, 110*mib - 1} {
		if c.Measured(free); !c.Disk.Full || len(c.Offers(jobtest.Start)) != 0 {
			t.Errorf("with %d free something is offered again", free)
		}
	}
	c.Measured(110 * mib)
	if out := c.Offers(jobtest.Start); len(out) != 1 || out[0].Answer.Workers != 2 || c.Disk.Full {
		t.Errorf("there is room again, and %+v is offered", out)
	}
	if c.Measured(105 * mib); c.Disk.Full {
		t.Error("the disk is full although as much is free as is to be")
	}
}

// A node whose disk hangs takes back what it offers, and offers again when that answers.
func TestNothingIsOfferedOfADiskThatHangs(t *testing.T) {
	c := bigNode()
	ad := wiretest.Ad(jobtest.Node(1), "aaaaa", 4, 1)
	offered := c.Advertised(jobtest.Start, ad)
	Answers(c, jobtest.Start, false)
	grant := wire.Grant{Job: ad.Job, Key: offered.Key, Ranks: []jobs.RankAttempt{{Attempt: 1}}, Spec: jobs.Spec{Slots: 1}}
	if err := c.Granted(jobtest.Start, ad.Origin(), &grant); err == nil || !strings.Contains(err.Error(), wire.ReasonHangs) || len(c.Holds) != 0 {
		t.Errorf("a grant is answered with %v, and %d offers stand", err, len(c.Holds))
	}
	if a := c.Advertised(jobtest.Start, ad); a.Workers != 0 || a.Reason != wire.ReasonHangs || a.Capacity == 0 {
		t.Errorf("got %+v, want a decline that may pass", a)
	}
	if out := c.Offers(jobtest.Start); len(out) != 0 {
		t.Errorf("%+v is offered", out)
	}
	Answers(c, jobtest.Start, true)
	if out := c.Offers(jobtest.Start); len(out) != 1 || out[0].Answer.Workers != 4 {
		t.Errorf("the disk answers, and %+v is offered", out)
	}
}

func TestRequirementsAreCounted(t *testing.T) {
	c := bigNode()
	c.Measured(10 << 20)
	first := wiretest.Ad(jobtest.Node(1), "aaaaa", 4, 1)
	first.Disk, first.GPUs, first.Where = 4<<20, 1, `gpus == 2 && disk > 9M`
	a := c.Advertised(jobtest.Start, first)
	if a.Workers != 2 || a.Capacity != 2 {
		t.Fatalf("got %+v, want two workers: there is disk, and there are GPUs, for no more", a)
	}
	g := wiretest.Grant(first, a.Key, 2)
	g.Spec.GPUs = 0
	if err := c.Granted(jobtest.Start, first.Origin(), g); !errors.Is(err, jobs.ErrRefused) {
		t.Fatalf("a grant of workers that need something else: %v", err)
	}
	if err := c.Granted(jobtest.Start, first.Origin(), wiretest.Grant(first, a.Key, 2)); err != nil {
		t.Fatal(err)
	}
	c.Released(first.Job, 0, true) // it has enough
	one, two := c.TakeGPUs(1), c.TakeGPUs(1)
	if len(one) != 1 || len(two) != 1 || one[0] == two[0] || c.TakeGPUs(1) != nil {
		t.Fatalf("the GPUs are given as %v and %v", one, two)
	}
	second := wiretest.Ad(jobtest.Node(2), "bbbbb", 1, 2)
	second.GPUs = 1
	if a := c.Advertised(jobtest.Start, second); a.Reason != wire.ReasonBusy {
		t.Fatalf("got %+v although both GPUs are used", a)
	}
	c.GiveGPUs(one)
	c.Freed(first.Job, 1, first.Needs)
	if out := c.Offers(jobtest.Start); len(out) != 1 || out[0].Answer.Job != second.Job {
		t.Fatalf("got %+v, want the freed GPU offered to %s", out, second.Job)
	}
	if again := c.TakeGPUs(1); len(again) != 1 || again[0] != one[0] {
		t.Fatalf("got GPU %v, want %v that is free", again, one)
	}
}

func TestAdoptedWorkerKeepsItsGPU(t *testing.T) {
	c := bigNode()
	old := wiretest.Ad(jobtest.Node(1), "aaaaa", 1, 1)
	c.Adopted(old.Job, &jobs.Spec{Slots: 1, GPUs: 1}, 0, []int{0}, jobtest.Start, 0)
	ad := wiretest.Ad(jobtest.Node(2), "bbbbb", 2, 2)
	ad.GPUs = 1
	if a := c.Advertised(jobtest.Start, ad); a.Workers != 1 {
		t.Fatalf("got %+v, want an offer of the GPU that is left", a)
	}
	// One that has ended may have had the same, and gives it back.
	c.Adopted(old.Job, &jobs.Spec{Slots: 1, GPUs: 1}, 0, []int{0}, jobtest.Start, 0)
	c.GiveGPUs([]int{0})
	c.Freed(old.Job, 1, jobs.Needs{Slots: 1, GPUs: 1})
	if got := c.TakeGPUs(1); len(got) != 1 || got[0] != 1 {
		t.Fatalf("got GPU %v, want the other one", got)
	}
	c.Limit(jobs.Limits{MaxJobs: 1})
	if a := c.Advertised(jobtest.Start, ad); a.Reason != "owner allows 1 job" {
		t.Fatalf("got %+v: the adopted job counts", a)
	}
}

func TestDiskThatBecomesFreeIsOffered(t *testing.T) {
	c := bigNode()
	c.Measured(1 << 20)
	ad := wiretest.Ad(jobtest.Node(1), "aaaaa", 1, 1)
	ad.Disk = 2 << 20
	if a := c.Advertised(jobtest.Start, ad); a.Reason != wire.ReasonDisk {
		t.Fatalf("got %+v", a)
	}
	c.Measured(1 << 10)
	if out := c.Offers(jobtest.Start); len(out) != 0 {
		t.Fatalf("offered %+v", out)
	}
	c.Measured(3 << 20)
	if out := c.Offers(jobtest.Start); len(out) != 1 || out[0].Answer.Workers != 1 {
		t.Fatalf("got %+v, want an offer", out)
	}
}

func TestPauseTakesOffersBackAndResumeOffers(t *testing.T) {
	c := bigNode()
	first, second := wiretest.Ad(jobtest.Node(1), "aaaaa", 8, 1), wiretest.Ad(jobtest.Node(2), "bbbbb", 2, 2)
	held := c.Advertised(jobtest.Start, first)
	granted := c.Advertised(jobtest.Start, first)
	if err := c.Granted(jobtest.Start, first.Origin(), wiretest.Grant(first, granted.Key, 4)); err != nil || held.Key != granted.Key {
		t.Fatal(err)
	}
	held = c.Advertised(jobtest.Start, second)
	c.Limit(jobs.Limits{Paused: true})
	if err := c.Granted(jobtest.Start, second.Origin(), wiretest.Grant(second, held.Key, 2)); !errors.Is(err, jobs.ErrRefused) {
		t.Fatalf("a grant after the pause: %v", err)
	}
	if c.Busy() != 4 {
		t.Fatalf("%d slots are busy, want the 4 of the workers that go on", c.Busy())
	}
	if a := c.Advertised(jobtest.Start, second); a.Reason != wire.ReasonPaused {
		t.Fatalf("got %+v", a)
	}
	c.Freed(first.Job, 4, first.Needs)
	if out := c.Offers(jobtest.Start); len(out) != 0 {
		t.Fatalf("offered %+v while paused", out)
	}
	c.Limit(jobs.Limits{})
	if out := c.Offers(jobtest.Start); len(out) != 1 || out[0].Answer.Workers != 2 {
		t.Fatalf("got %+v, want an offer at once after resume", out)
	}
}

func TestLiftedLimitIsOffered(t *testing.T) {
	c := bigNode()
	c.Limit(jobs.Limits{MaxJobs: 1, MaxWorkersPerJob: 2})
	first, second := wiretest.Ad(jobtest.Node(1), "aaaaa", 4, 1), wiretest.Ad(jobtest.Node(2), "bbbbb", 3, 2)
	a := c.Advertised(jobtest.Start, first)
	if a.Workers != 2 || a.Capacity != 2 {
		t.Fatalf("got %+v, want the two that the owner allows", a)
	}
	if a := c.Advertised(jobtest.Start, second); a.Reason != "owner allows 1 job" || a.Capacity != 2 {
		t.Fatalf("got %+v", a)
	}
	c.Limit(jobs.Limits{MaxJobs: 2, MaxWorkersPerJob: 2})
	if out := c.Offers(jobtest.Start); len(out) != 1 || out[0].Answer.Job != second.Job || out[0].Answer.Workers != 2 {
		t.Fatalf("got %+v, want an offer of 2 to %s", out, second.Job)
	}
	c.Limit(jobs.Limits{})
	if out := c.Offers(jobtest.Start); len(out) != 2 || out[0].Answer.Workers != 4 || out[1].Answer.Workers != 3 {
		t.Fatalf("got %+v, want offers of all that is wanted", out)
	}
	// Less is allowed again: the youngest offer goes first.
	c.Limit(jobs.Limits{MaxJobs: 1})
	if c.Holds[first.Job] == nil || c.Holds[second.Job] != nil {
		t.Fatal("the offer to the older job should stand alone")
	}
}

func TestOlderJobTakesTheOnlyPlace(t *testing.T) {
	c := bigNode()
	c.Limit(jobs.Limits{MaxJobs: 1})
	younger, older := wiretest.Ad(jobtest.Node(1), "aaaaa", 1, 9), wiretest.Ad(jobtest.Node(2), "bbbbb", 1, 1)
	c.Advertised(jobtest.Start, younger)
	if a := c.Advertised(jobtest.Start, older); a.Workers != 0 || a.Held != 1 {
		t.Fatalf("got %+v, and the younger job holds %+v", a, c.Holds[younger.Job])
	}
	if c.Recalled(jobtest.Start, older.Job); c.Holds[younger.Job].recalled.IsZero() {
		t.Fatalf("the younger job holds %+v", c.Holds[younger.Job])
	}
	c.TakenBack()
	if out := c.Offers(jobtest.Start.Add(RecallTime)); len(out) != 2 || out[0].Answer.Job != older.Job || c.Holds[younger.Job] != nil {
		t.Fatalf("got %+v, and the younger job holds %+v", out, c.Holds[younger.Job])
	}
}

func TestDeniedOrigin(t *testing.T) {
	c := bigNode()
	c.Member = func(id vicinity.ID) (vicinity.Member, bool) {
		return vicinity.Member{ID: id, Name: "noisy"}, id == jobtest.Node(1)
	}
	ad := wiretest.Ad(jobtest.Node(1), "aaaaa", 1, 1)
	held := c.Advertised(jobtest.Start, ad)
	busy := wiretest.Ad(jobtest.Node(1), "ccccc", 1, 3)
	busy.Slots = 8
	c.Advertised(jobtest.Start, busy)
	c.Limit(jobs.Limits{Deny: []string{"noisy"}})
	if err := c.Granted(jobtest.Start, ad.Origin(), wiretest.Grant(ad, held.Key, 1)); !errors.Is(err, jobs.ErrRefused) {
		t.Fatalf("a grant of a denied origin: %v", err)
	}
	if len(c.Queue) != 0 {
		t.Fatal("its jobs are still queued")
	}
	own := wiretest.Ad(jobtest.Node(0), "bbbbb", 1, 1)
	if a := c.Advertised(jobtest.Start, own); a.Workers != 1 {
		t.Fatalf("got %+v for a job of the node itself", a)
	}
}

func TestQueueTellsSinceWhen(t *testing.T) {
	c := bigNode()
	c.Used.Slots = 8
	low, high := wiretest.Ad(jobtest.Node(1), "aaaaa", 4, 1), wiretest.Ad(jobtest.Node(2), "bbbbb", 2, 2)
	high.Priority = 5
	c.Advertised(jobtest.Start, low)
	c.Advertised(jobtest.Start.Add(time.Second), high)
	c.Advertised(jobtest.Start.Add(2*time.Second), low)
	queue := c.Waiting(jobtest.Start.Add(3 * time.Second))
	if len(queue) != 2 || queue[0].Job != high.Job || queue[1].Job != low.Job {
		t.Fatalf("got %+v, want the higher priority first", queue)
	}
	if w := queue[1]; !w.Since.Equal(jobtest.Start) || !w.Expires.Equal(jobtest.Start.Add(62*time.Second)) || w.Wanted != 4 || w.Reason != wire.ReasonBusy {
		t.Fatalf("got %+v", w)
	}
	if queue := c.Waiting(jobtest.Start.Add(62 * time.Second)); len(queue) != 0 {
		t.Fatalf("after a minute there is %+v", queue)
	}
}

// wantRow compares a reason of a decline with a row of the documentation.
func wantRow(t *testing.T, name, reason string) {
	t.Helper()
	if err := tables.Check("../../../docs/exit-codes.md", name, tables.Seen{Reason: reason}); err != nil {
		t.Error(err)
	}
}

// A queue that is full takes only jobs that go before the last one in it.
func TestQueueIsBounded(t *testing.T) {
	c := New(vicinity.Member{ID: jobtest.Node(0), Slots: 1}, jobtest.Rand())
	first := wiretest.Ad(jobtest.Node(1), "aaaaa", 1, 0)
	if a := c.Advertised(jobtest.Start, first); a.Workers != 1 || c.Granted(jobtest.Start, jobtest.Node(1), wiretest.Grant(first, a.Key, 1)) != nil {
		t.Fatalf("got %+v", a)
	}
	for stamp := range maxQueue {
		ad := wiretest.Ad(jobtest.Node(1), "aaaaa", 1, jobs.Stamp(stamp+10))
		ad.Job = jobs.NewID(c.rnd, jobtest.Node(1))
		c.Queue = append(c.Queue, &Queued{Ad: ad, since: jobtest.Start, expires: jobtest.Start.Add(time.Minute)})
	}
	wantRow(t, "too many jobs waiting", c.Advertised(jobtest.Start, wiretest.Ad(jobtest.Node(2), "bbbbb", 1, maxQueue+20)).Reason)
	if a := c.Advertised(jobtest.Start, wiretest.Ad(jobtest.Node(2), "ccccc", 1, 5)); a.Reason != wire.ReasonBusy || len(c.Queue) != maxQueue || c.Queue[0].Ad.Job != jobs.ID("ccccc").At(jobtest.Node(2)) {
		t.Errorf("an older job: %q, queue of %d", a.Reason, len(c.Queue))
	}
}
