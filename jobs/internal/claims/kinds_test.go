package claims

import (
	"errors"
	"testing"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/groups"
	"zorilla/jobs/internal/calendar"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/internal/wire/wiretest"
	"zorilla/vicinity"
)

// gang is a job with groups, of which each has one worker or more.
func gang(list ...groups.Group) jobs.Spec {
	s := jobs.Spec{Args: []string{"prog"}, Slots: 1, Topology: groups.Topology{Groups: list}}
	for i := range list {
		list[i].Name = string(rune('a' + i))
		list[i].Min, list[i].Max = max(1, list[i].Min), max(1, list[i].Min, list[i].Max)
	}
	s.Min, s.Max = s.Topology.Least(), s.Topology.Most()
	return s
}

// adOf is the advertisement of a job with groups.
func adOf(spec *jobs.Spec, name string, wanted int, stamp jobs.Stamp) wire.Advertisement {
	ad := wiretest.Ad(jobtest.Node(1), name, wanted, stamp)
	ad.AskFor(spec)
	return ad
}

// grantOf grants so many ranks of each group.
func grantOf(spec *jobs.Spec, ad wire.Advertisement, key uint64, sizes ...int) *wire.Grant {
	g := &wire.Grant{Job: ad.Job, Key: key, Spec: spec.Sized(sizes)}
	for rank := range g.Spec.Max {
		g.Ranks = append(g.Ranks, jobs.RankAttempt{Rank: rank, Attempt: 1})
	}
	return g
}

// member knows of groups.
func member() vicinity.Member {
	return vicinity.Member{ID: jobtest.Node(0), Slots: 8, Memory: 8 << 30, GPUs: 2, Version: jobs.CurrentVersion}
}

func slots(n int64) groups.Range { return groups.Range{Min: n} }

// mixed is a job of three groups: small workers, large ones, and ones with a GPU.
func mixed() jobs.Spec {
	return gang(groups.Group{Max: 8}, groups.Group{Max: 8, Slots: slots(3), Memory: groups.Range{Min: 2 << 30}}, groups.Group{Max: 8, GPUs: groups.Range{Min: 1}})
}

// What is held for a job with groups is room for any mix of them, and for no more.
func TestRoomIsForAnyMix(t *testing.T) {
	spec := mixed()
	ad := adOf(&spec, "aaaaa", 24, 1)
	for _, c := range []struct {
		sizes []int
		ok    bool
	}{
		{[]int{8, 0, 0}, true}, {[]int{0, 2, 2}, true}, {[]int{2, 2, 0}, true}, {[]int{5, 1, 0}, true}, {[]int{6, 0, 2}, true}, {[]int{1, 1, 1}, true},
		{[]int{9, 0, 0}, false}, {[]int{0, 3, 0}, false}, {[]int{0, 0, 3}, false}, {[]int{3, 2, 0}, false}, {[]int{6, 1, 0}, false},
	} {
		n := New(member(), jobtest.Rand())
		a := n.Advertised(jobtest.Start, ad)
		if a.Workers != 8 || a.Capacity != 8 || a.Fits != 7 || a.Room == nil || *a.Room != (wire.Room{Slots: 8, Memory: 8 << 30, GPUs: 2}) || a.Check() != nil {
			t.Fatalf("it offers %+v with room %+v", a, a.Room)
		}
		err := n.Granted(jobtest.Start, ad.Origin(), grantOf(&spec, ad, a.Key, c.sizes...))
		if (err == nil) != c.ok || err != nil && !errors.Is(err, jobs.ErrRefused) {
			t.Errorf("a grant of %v gives %v", c.sizes, err)
			continue
		}
		if !c.ok {
			continue
		}
		used := calendar.Supply{Slots: c.sizes[0] + 3*c.sizes[1] + c.sizes[2], Memory: int64(c.sizes[1]) << 31, GPUs: c.sizes[2]}
		if n.Used != used || n.Jobs[ad.Job] != c.sizes[0]+c.sizes[1]+c.sizes[2] || len(n.Holds) != 0 {
			t.Errorf("%v use %+v, want %+v", c.sizes, n.Used, used)
		}
		for group, workers := range c.sizes {
			n.Freed(ad.Job, workers, spec.NeedsOf(group))
		}
		if n.Used != (calendar.Supply{}) || len(n.Jobs) != 0 {
			t.Errorf("when %v have ended %+v is used", c.sizes, n.Used)
		}
	}
}

// How many workers are offered is a bound: of the smallest kind, as many as are wanted or allowed.
func TestWorkersOfKindsAreABound(t *testing.T) {
	spec := mixed()
	for name, c := range map[string]struct {
		wanted int
		limits jobs.Limits
		want   int
		room   wire.Room
	}{
		"few are wanted":  {2, jobs.Limits{}, 2, wire.Room{Slots: 6, Memory: 4 << 30, GPUs: 2}},
		"one is wanted":   {1, jobs.Limits{}, 1, wire.Room{Slots: 3, Memory: 2 << 30, GPUs: 1}},
		"few are allowed": {9, jobs.Limits{MaxWorkersPerJob: 1}, 1, wire.Room{Slots: 3, Memory: 2 << 30, GPUs: 1}},
		"all":             {9, jobs.Limits{}, 8, wire.Room{Slots: 8, Memory: 8 << 30, GPUs: 2}},
	} {
		n := New(member(), jobtest.Rand())
		n.Limit(c.limits)
		ad := adOf(&spec, "aaaaa", c.wanted, 1)
		a := n.Advertised(jobtest.Start, ad)
		if a.Workers != c.want || a.Room == nil || *a.Room != c.room {
			t.Errorf("%s: offers %d with %+v, want %d with %+v", name, a.Workers, a.Room, c.want, c.room)
		}
		if err := n.Granted(jobtest.Start, ad.Origin(), grantOf(&spec, ad, a.Key, c.want+1, 0, 0)); !errors.Is(err, jobs.ErrRefused) {
			t.Errorf("%s: a worker more gives %v", name, err)
		}
	}
	// One kind is short of GPUs, the other of slots: together there are more of them than of either.
	both := gang(groups.Group{Max: 8, GPUs: groups.Range{Min: 1}}, groups.Group{Max: 8, Slots: slots(3)})
	short, m := adOf(&both, "aaaaa", 8, 1), New(member(), jobtest.Rand())
	if err := m.Granted(jobtest.Start, short.Origin(), grantOf(&both, short, m.Advertised(jobtest.Start, short).Key, 2, 2)); err != nil {
		t.Errorf("two of each: %v", err)
	}
	// Workers of which there is no room for one do not count, nor do those that the node cannot run.
	n := New(vicinity.Member{ID: jobtest.Node(0), Slots: 8, Memory: 1 << 30, Version: jobs.CurrentVersion}, jobtest.Rand())
	large := gang(groups.Group{Slots: slots(1), GPUs: groups.Range{Min: 1}}, groups.Group{Slots: slots(3)}, groups.Group{Slots: slots(2), Memory: groups.Range{Min: 2 << 30}})
	if a := n.Advertised(jobtest.Start, adOf(&large, "aaaaa", 9, 1)); a.Workers != 2 || a.Capacity != 2 || a.Fits != 2 || a.Room.Slots != 6 {
		t.Errorf("of three kinds it can run the second: it offers %+v, room %+v", a, a.Room)
	}
}

func TestKindsThatANodeCannotRun(t *testing.T) {
	huge, gpus := groups.Group{Slots: slots(9)}, groups.Group{GPUs: groups.Range{Min: 3}}
	memory, far := groups.Group{Memory: groups.Range{Min: 9 << 30}}, groups.Group{Where: `site == "far"`}
	for _, c := range []struct {
		spec   jobs.Spec
		fits   uint16
		reason string
	}{
		{gang(huge), 0, wire.ReasonSlots}, {gang(gpus), 0, wire.ReasonGPUs}, {gang(memory), 0, wire.ReasonMemory}, {gang(far), 0, wire.ReasonWhere},
		{gang(far, memory), 0, wire.ReasonMemory}, {gang(memory, far), 0, wire.ReasonMemory},
		{gang(far, groups.Group{}, huge), 2, ""}, {gang(groups.Group{}, far), 1, ""},
	} {
		n := New(member(), jobtest.Rand())
		a := n.Advertised(jobtest.Start, adOf(&c.spec, "aaaaa", 2, 1))
		if a.Fits != c.fits || a.Reason != c.reason || (a.Workers > 0) != (c.fits != 0) {
			t.Errorf("%+v: it answers %+v, want the kinds %b, %s", c.spec.Groups, a, c.fits, c.reason)
		}
	}
	old := member()
	old.Version = 7
	spec := mixed()
	if a := New(old, jobtest.Rand()).Advertised(jobtest.Start, adOf(&spec, "aaaaa", 2, 1)); a.Workers != 0 || a.Reason != wire.ReasonWhere {
		t.Errorf("an older node answers %+v", a)
	}
}

func TestGrantOfKindsMustAskForWhatIsHeld(t *testing.T) {
	spec := gang(groups.Group{Max: 4}, groups.Group{Max: 4, Where: `site == "far"`}, groups.Group{Max: 4, Slots: slots(2)})
	ad := adOf(&spec, "aaaaa", 9, 1)
	n := New(member(), jobtest.Rand())
	a := n.Advertised(jobtest.Start, ad)
	if a.Fits != 5 {
		t.Fatalf("it answers %+v", a)
	}
	for name, change := range map[string]func(*wire.Grant){
		"a condition that does not hold": func(g *wire.Grant) { g.Spec = spec.Sized([]int{1, 1, 1}) },
		"other needs":                    func(g *wire.Grant) { g.Spec.Groups[0].Slots.Min = 5 },
		"other conditions":               func(g *wire.Grant) { g.Spec.Groups[0].Where = "gpus > 1" },
		"no groups":                      func(g *wire.Grant) { g.Spec.Topology = groups.Topology{} },
		"a rank that is not there":       func(g *wire.Grant) { g.Ranks[0].Rank = 99 },
		"another key":                    func(g *wire.Grant) { g.Key++ },
	} {
		g := grantOf(&spec, ad, a.Key, 2, 0, 1)
		change(g)
		if err := n.Granted(jobtest.Start, ad.Origin(), g); !errors.Is(err, jobs.ErrRefused) || n.Used != (calendar.Supply{}) {
			t.Errorf("%s gives %v, %+v is used", name, err, n.Used)
		}
	}
	if err := n.Granted(jobtest.Start, ad.Origin(), grantOf(&spec, ad, a.Key, 2, 0, 1)); err != nil || n.Used.Slots != 4 {
		t.Errorf("what is held gives %v, %+v is used", err, n.Used)
	}
}

// An offer stands, whatever the node is found to be like afterwards; and what waits is dropped if
// nothing of it can run.
func TestDescribeWithKinds(t *testing.T) {
	n := New(member(), jobtest.Rand())
	slow := gang(groups.Group{Max: 4, Power: groups.Range{Max: 1000}}, groups.Group{Max: 4, Slots: slots(2), Power: groups.Range{Max: 900}})
	first, second := adOf(&slow, "aaaaa", 8, 1), adOf(&slow, "bbbbb", 8, 2)
	a := n.Advertised(jobtest.Start, first)
	if b := n.Advertised(jobtest.Start, second); a.Fits != 3 || b.Reason != wire.ReasonBusy || len(n.Queue) != 1 {
		t.Fatalf("it answers %+v and %+v", a, b)
	}
	fast := member()
	fast.Speeds.Power = 1500
	n.Describe(fast)
	if out := n.Offers(jobtest.Start); len(n.Queue) != 0 || len(out) != 1 || out[0].Answer.Reason != wire.ReasonWhere || out[0].Answer.Job != second.Job {
		t.Errorf("%d wait, and it says %+v", len(n.Queue), out)
	}
	if err := n.Granted(jobtest.Start, first.Origin(), grantOf(&slow, first, a.Key, 2, 1)); err != nil {
		t.Errorf("what was offered before is refused: %v", err)
	}
}

// A queue offers what is left, and tells of it as a first answer does.
func TestQueueOffersKinds(t *testing.T) {
	n, spec := New(member(), jobtest.Rand()), mixed()
	plain, ad := wiretest.Ad(jobtest.Node(2), "bbbbb", 8, 1), adOf(&spec, "aaaaa", 24, 2)
	plain.Memory = 1 << 30
	a := n.Advertised(jobtest.Start, plain)
	if err := n.Granted(jobtest.Start, plain.Origin(), wiretest.Grant(plain, a.Key, 8)); err != nil {
		t.Fatal(err)
	}
	if a = n.Advertised(jobtest.Start, ad); a.Workers != 0 || a.Capacity != 8 || a.Fits != 7 || a.Reason != wire.ReasonBusy {
		t.Fatalf("busy it answers %+v", a)
	}
	n.Freed(plain.Job, 4, plain.Needs)
	out := n.Offers(jobtest.Start)
	if len(out) != 1 || out[0].Answer.Workers != 4 || out[0].Answer.Fits != 7 || *out[0].Answer.Room != (wire.Room{Slots: 4, Memory: 4 << 30, GPUs: 2}) || out[0].Answer.Round != 0 {
		t.Fatalf("the queue offers %+v", out)
	}
	n.Freed(plain.Job, 4, plain.Needs) // there is more now, under the same key
	if again := n.Offers(jobtest.Start); len(again) != 1 || again[0].Answer.Key != out[0].Answer.Key || again[0].Answer.Room.Slots != 8 {
		t.Fatalf("then it offers %+v", again)
	}
}

// An offer of as many workers as are wanted may lack what one kind of them needs: the job waits for that, and
// is offered it when it is there.
func TestRoomThatLacksForOneKindIsQueued(t *testing.T) {
	for name, gaveBack := range map[string]bool{"the offer stands": false, "it was given back": true} {
		n, spec := New(member(), jobtest.Rand()), gang(groups.Group{}, groups.Group{GPUs: groups.Range{Min: 2}})
		plain, ad := wiretest.Ad(jobtest.Node(2), "bbbbb", 1, 1), adOf(&spec, "aaaaa", 2, 2)
		plain.GPUs = 2
		a := n.Advertised(jobtest.Start, plain)
		if err := n.Granted(jobtest.Start, plain.Origin(), wiretest.Grant(plain, a.Key, 1)); err != nil {
			t.Fatal(err)
		}
		if a = n.Advertised(jobtest.Start, ad); a.Workers != 2 || a.Fits != 3 || a.Room.GPUs != 0 || len(n.Queue) != 1 {
			t.Fatalf("it offers %+v, room %+v, and %d wait", a, a.Room, len(n.Queue))
		}
		if out := n.Offers(jobtest.Start); len(out) != 0 {
			t.Errorf("%s: nothing has changed, and it offers %+v", name, out)
		}
		if gaveBack {
			n.Released(ad.Job, a.Key, false)
		}
		n.Freed(plain.Job, 1, plain.Needs)
		out := n.Offers(jobtest.Start)
		if len(out) != 1 || out[0].Answer.Room.GPUs != 2 || len(n.Queue) != 0 {
			t.Fatalf("%s: then it offers %+v, and %d wait", name, out, len(n.Queue))
		}
		if err := n.Granted(jobtest.Start, ad.Origin(), grantOf(&spec, ad, out[0].Answer.Key, 1, 1)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Room comes when what runs has ended: the smallest worker that the node can run is what counts.
func TestWhenThereIsRoomForAKind(t *testing.T) {
	n := New(member(), jobtest.Rand())
	plain := wiretest.Ad(jobtest.Node(2), "bbbbb", 4, 1)
	plain.Slots = 2
	g := wiretest.Grant(plain, n.Advertised(jobtest.Start, plain).Key, 4)
	g.Spec.Walltime = codec.Duration(time.Minute)
	if err := n.Granted(jobtest.Start, plain.Origin(), g); err != nil {
		t.Fatal(err)
	}
	spec := gang(groups.Group{Slots: slots(9)}, groups.Group{Slots: slots(8)}, groups.Group{Slots: slots(2)})
	if a := n.Advertised(jobtest.Start, adOf(&spec, "aaaaa", 3, 2)); a.Free != time.Minute.Milliseconds() {
		t.Errorf("it answers %+v", a)
	}
	n.Measured(0)
	disk := gang(groups.Group{Disk: groups.Range{Min: 1}}, groups.Group{Disk: groups.Range{Min: 2}})
	if a := n.Advertised(jobtest.Start, adOf(&disk, "ccccc", 3, 2)); a.Reason != wire.ReasonDisk && a.Reason != wire.ReasonFull {
		t.Errorf("without disk it answers %+v", a)
	}
}

func TestLimitsHoldForKinds(t *testing.T) {
	spec := mixed()
	n := New(member(), jobtest.Rand())
	n.Limit(jobs.Limits{MaxWorkersPerJob: 3, MaxJobs: 1})
	ad := adOf(&spec, "aaaaa", 8, 1)
	a := n.Advertised(jobtest.Start, ad)
	if a.Workers != 3 || a.Capacity != 3 {
		t.Fatalf("it offers %+v", a)
	}
	if err := n.Granted(jobtest.Start, ad.Origin(), grantOf(&spec, ad, a.Key, 1, 1, 0)); err != nil {
		t.Fatal(err)
	}
	if a = n.Advertised(jobtest.Start, ad); a.Workers != 1 {
		t.Errorf("beside 2 of 3 it offers %+v", a)
	}
	other := adOf(&spec, "bbbbb", 8, 2)
	if b := n.Advertised(jobtest.Start, other); b.Workers != 0 || b.Reason != "owner allows 1 job" {
		t.Errorf("another job is offered %+v", b)
	}
}

// An older job takes what is held for a younger one, when that has had its time, whichever of them has groups.
func TestRecallBetweenKindsAndOthers(t *testing.T) {
	spec := mixed()
	grouped := func(stamp jobs.Stamp) wire.Advertisement { return adOf(&spec, "aaaaa", 24, stamp) }
	plain := func(stamp jobs.Stamp) wire.Advertisement {
		ad := wiretest.Ad(jobtest.Node(2), "bbbbb", 8, stamp)
		ad.Memory = 1 << 30
		return ad
	}
	for name, c := range map[string]struct{ younger, older wire.Advertisement }{
		"groups first": {plain(9), grouped(1)}, "groups last": {grouped(9), plain(1)},
	} {
		n := New(member(), jobtest.Rand())
		a := n.Advertised(jobtest.Start, c.younger)
		if b := n.Advertised(jobtest.Start, c.older); a.Workers != 8 || b.Workers != 0 || b.Held != 8 {
			t.Fatalf("%s: it answers %+v, then %+v", name, a, b)
		}
		n.Recalled(jobtest.Start, c.older.Job)
		if out := n.TakenBack(); len(out) != 1 || !out[0].Answer.Recall || out[0].Answer.Check() != nil || (out[0].Answer.Room != nil) != (len(c.younger.Kinds) > 0) {
			t.Fatalf("%s: it recalls %+v", name, out)
		}
		out := n.Offers(jobtest.Start.Add(RecallTime))
		if len(out) != 2 || out[0].Answer.Job != c.older.Job || out[0].Answer.Workers != 8 || out[1].Answer.Job != c.younger.Job || out[1].Answer.Workers != 0 {
			t.Fatalf("%s: then it offers %+v", name, out)
		}
		if left, _ := n.promised(); left.Slots != 0 || left.Memory < 0 {
			t.Errorf("%s: %+v is left", name, left)
		}
	}
}

// Where more of the disk is used than there is, that is no room which holds for others make.
func TestHoldsOfKindsMakeNoRoom(t *testing.T) {
	n := New(member(), jobtest.Rand())
	n.Has.Disk, n.Used.Disk = 1<<20, 3<<20
	spec := gang(groups.Group{Max: 4}, groups.Group{Max: 4, Disk: groups.Range{Min: 1 << 20}})
	for i, name := range []string{"ccccc", "bbbbb"} { // the older one comes last, and takes no notice of the other
		ad := adOf(&spec, name, 2, jobs.Stamp(9-i))
		if a := n.Advertised(jobtest.Start, ad); a.Workers != 2 || a.Room.Disk != 0 {
			t.Fatalf("it offers %+v, room %+v", a, a.Room)
		}
		n.Recalled(jobtest.Start, ad.Job)
	}
	if left, _ := n.promised(); left.Disk != -2<<20 {
		t.Errorf("%d of disk are left, want %d", left.Disk, -2<<20)
	}
}

// The announcement of a grant does not say of which kinds its workers are.
func TestAnnouncedGrantOfKinds(t *testing.T) {
	n, spec := New(member(), jobtest.Rand()), mixed()
	ad := adOf(&spec, "aaaaa", 24, 9)
	a := n.Advertised(jobtest.Start, ad)
	if h := n.Announced(jobtest.Start, ad.Job, "", a.Key, 4); h == nil || h.Workers != 4 || h.Room.GPUs != 2 {
		t.Fatalf("it holds %+v", h)
	}
	older := wiretest.Ad(jobtest.Node(2), "bbbbb", 8, 1)
	if b := n.Advertised(jobtest.Start, older); b.Workers != 0 {
		t.Errorf("an older job is offered %+v of it", b)
	}
	if err := n.Granted(jobtest.Start, ad.Origin(), grantOf(&spec, ad, a.Key, 0, 2, 2)); err != nil {
		t.Error(err)
	}
	if out := n.Offers(jobtest.Start); n.Busy() != 8 || len(out) != 0 {
		t.Errorf("%d slots are busy, and it offers %+v", n.Busy(), out)
	}
}

// Of a job with kinds, the end that is forgotten when a worker has ended is that of a worker as large.
func TestEndsOfWorkersThatDiffer(t *testing.T) {
	spec := gang(groups.Group{}, groups.Group{Slots: groups.Range{Min: 3}})
	spec.Walltime = codec.Duration(time.Hour)
	n := New(member(), jobtest.Rand())
	job := jobs.ID("ccccc").At(jobtest.Node(2))
	n.claim(jobtest.Start, job, &spec, 1, 0)
	n.claim(jobtest.Start.Add(10*time.Minute), job, &spec, 0, 0)
	n.Freed(job, 1, spec.Needs(0))
	all := wiretest.Ad(jobtest.Node(3), "other", 1, 1)
	all.Slots = n.Has.Slots
	if free := n.runnable(&all).free(jobtest.Start, &n.Calendar, &all); free != time.Hour.Milliseconds() {
		t.Errorf("all slots are free in %d ms, when the worker that is left has ended", free)
	}
}

// A job that wants one worker at each node is offered one, and no other before that has ended, whatever else
// is free.
func TestOneWorkerAtANode(t *testing.T) {
	plain, groups := jobs.Spec{Args: []string{"prog"}, Min: 3, Max: 3, Slots: 1}, mixed()
	for _, spec := range []jobs.Spec{plain, groups} {
		spec.OnePerNode = true
		n := New(member(), jobtest.Rand())
		ad := adOf(&spec, "aaaaa", 3, 1)
		a := n.Advertised(jobtest.Start, ad)
		if a.Workers != 1 || a.Capacity != 1 || a.Held != 0 {
			t.Fatalf("it offers %+v", a)
		}
		one := wiretest.Grant(ad, a.Key, 1)
		one.Spec = spec
		two := *one
		two.Ranks = []jobs.RankAttempt{{Rank: 0, Attempt: 1}, {Rank: 1, Attempt: 1}}
		if n.Granted(jobtest.Start, ad.Origin(), &two) == nil {
			t.Error("it takes two")
		}
		if err := n.Granted(jobtest.Start, ad.Origin(), one); err != nil {
			t.Fatal(err)
		}
		if a = n.Advertised(jobtest.Start, ad); a.Workers != 0 || a.Reason != wire.ReasonSingle || a.Capacity != 1 || a.Check() != nil {
			t.Errorf("with one it answers %+v", a)
		}
		if out := n.Offers(jobtest.Start); len(out) != 0 {
			t.Errorf("with one it offers %+v", out)
		}
		other := adOf(&plain, "bbbbb", 3, 2)
		if a = n.Advertised(jobtest.Start, other); a.Workers != 3 {
			t.Errorf("another job is offered %+v", a)
		}
		n.Freed(ad.Job, 1, spec.Needs(0))
		if out := n.Offers(jobtest.Start); len(out) != 1 || out[0].Answer.Workers != 1 {
			t.Errorf("when it has ended it offers %+v", out)
		}
	}
}
