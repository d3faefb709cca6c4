package core

import (
	"slices"
	"testing"
	"time"

	"zorilla/flood"
	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/primary"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// pair is a node without slots and another one, to which all that it says is kept.
type pair struct {
	few
	t        *testing.T
	core     *Core
	now      time.Time
	ads      []wire.Advertisement
	grants   []wire.Grant
	packets  []wire.Packet
	answers  uint64
	unsafe   bool // nothing becomes durable
	recorded []DoRecord
	log      []record.Event // all of them
}

func newPair(t *testing.T) *pair {
	p := &pair{few: few{jobtest.Node(2): {ID: jobtest.Node(2), Name: "other"}}, t: t, now: jobtest.Start}
	p.core = New(vicinity.Member{ID: jobtest.Node(1)}, p, jobtest.Rand(), time.Hour)
	return p
}

func (p *pair) Flood(_ time.Time, _ int, ad wire.Advertisement) (f flood.Flood) {
	p.ads = append(p.ads, ad)
	return f
}

// submit submits a job for so many workers.
func (p *pair) submit(workers, slots int) jobs.ID {
	return p.submitFor(time.Time{}, workers, slots)
}

// submitFor submits one that begins later.
func (p *pair) submitFor(begin time.Time, workers, slots int) jobs.ID {
	id := jobs.NewID(p.core.rnd, p.core.Self.ID)
	p.core.Submit(p.now, id, jobs.Spec{Args: []string{"prog"}, Min: workers, Max: workers, Slots: slots, Search: jobs.Search{Begin: begin}}, 0)
	p.act()
	return id
}

// act does what is due.
func (p *pair) act() {
	for more := true; more; {
		var out []Action
		out, _ = p.core.Advance(p.now)
		more = len(out) > 0
		for _, a := range out {
			switch e := a.Effect.(type) {
			case DoRecord:
				p.recorded, p.log = append(p.recorded, e), append(p.log, e.Events...)
			case primary.DoGrant:
				p.grants = append(p.grants, e.Grant)
			case DoPacket:
				p.packets = append(p.packets, e.Packet)
			}
		}
		if !p.unsafe {
			more = more || len(p.recorded) > 0
			for _, e := range p.recorded {
				p.core.Recorded(p.now, e.Job, e.Step)
			}
			p.recorded = nil
		}
	}
}

func (p *pair) pass(d time.Duration) {
	for end := p.now.Add(d); p.now.Before(end); {
		p.now = p.now.Add(5 * time.Millisecond)
		p.act()
	}
}

// offer answers the last advertisement; 0 workers is a decline.
func (p *pair) offer(workers int, key uint64) {
	ad := p.ads[len(p.ads)-1]
	p.answers++
	a := wire.Answer{Job: ad.Job, Round: ad.Round, Number: p.answers, Capacity: 99, Workers: workers, Key: key, Hops: 1, Rim: true}
	if workers == 0 {
		a.Key, a.Reason = 0, wire.ReasonBusy
	}
	p.core.Received(p.now, jobtest.Node(2), wire.Packet{Answer: &a})
	p.act()
}

// asked lists whose advertisements have been sent since the last call.
func (p *pair) asked() (list []jobs.ID) {
	for _, ad := range p.ads {
		list = append(list, ad.Job)
	}
	p.ads = p.ads[len(p.ads)-min(1, len(p.ads)):] // the last may yet be answered
	return list
}

// begun has the first of three jobs get its workers, and returns the others, which search
// together.
func begun(p *pair) (b, c, call jobs.ID) {
	a, b, c := p.submit(2, 1), p.submit(2, 1), p.submit(2, 1)
	if len(p.ads) != 1 || p.ads[0].Job != a || p.ads[0].Wanted != 2 || p.ads[0].Others != 0 {
		p.t.Fatalf("three jobs are advertised as %+v, want the first one alone", p.ads)
	}
	p.offer(2, 1)
	p.pass(300 * time.Millisecond)
	if len(p.grants) != 1 || p.grants[0].Job != a || p.grants[0].Held != "" || len(p.ads) != 2 {
		p.t.Fatalf("granted %+v, advertised %+v", p.grants, p.ads)
	}
	ad := p.ads[1]
	if ad.Job == a || ad.Job == b || ad.Job == c || ad.Wanted != 4 || ad.Others != 2 {
		p.t.Fatalf("advertised %+v, want a batch of both", ad)
	}
	p.grants, p.packets, p.ads = nil, nil, p.ads[1:]
	return b, c, ad.Job
}

// While a job searches, others that want the same wait, and then one search is for all of them.
func TestJobsShareASearch(t *testing.T) {
	for _, offered := range []int{4, 5} {
		p := newPair(t)
		b, c, call := begun(p)
		p.unsafe = true
		p.offer(offered, 7)
		p.pass(300 * time.Millisecond)
		if len(p.grants) != 0 || slices.ContainsFunc(p.packets, func(k wire.Packet) bool { return k.Yield != "" }) {
			t.Fatalf("before it is safe: granted %+v, said %+v", p.grants, p.packets)
		}
		p.unsafe = false
		p.act()
		if slices.ContainsFunc(p.packets, func(k wire.Packet) bool { return k.Yield != "" }) {
			t.Errorf("gives something back that could overtake the announcements: %+v", p.packets)
		}
		p.pass(100 * time.Millisecond)
		if len(p.grants) != 2 || p.grants[0].Job != b || p.grants[1].Job != c {
			t.Fatalf("granted %+v", p.grants)
		}
		forgotten := false
		for _, k := range p.packets {
			switch {
			case k.Grant != "" && (forgotten || k.Held != call || k.Key != 7 || k.Workers != 2):
				t.Errorf("announced %+v, after the end of the call: %v", k, forgotten)
			case k.Yield == call && k.Forget:
				forgotten = true
			case k.Yield != "":
				t.Errorf("gives back %+v", k)
			}
		}
		for _, g := range p.grants {
			if g.Held != call || g.Key != 7 || len(g.Ranks) != 2 {
				t.Errorf("granted %+v", g)
			}
		}
		if forgotten != (offered > 4) {
			t.Errorf("%d were offered, and it is told to forget the call: %v", offered, forgotten)
		}
		if len(p.core.batches.kinds)+len(p.core.batches.calls) != 0 {
			t.Errorf("kinds %v and calls %v are left", p.core.batches.kinds, p.core.batches.calls)
		}
		if e := p.core.Jobs[c].Primary.Explain(p.now); len(e.Nodes) != 2 || e.Asked != 2 {
			t.Errorf("of the last job is told %+v", e)
		}
		if len(p.asked()) != 1 {
			t.Errorf("nodes were asked again")
		}
		p.packets = nil
		for _, id := range []jobs.ID{b, c} {
			p.core.Update(p.now, id, func(j *primary.Primary) { j.Cancel(p.now, "by a test", true) })
		}
		if p.pass(100 * time.Millisecond); len(p.packets) != 0 {
			t.Errorf("told to forget what was not advertised: %+v", p.packets)
		}
	}
}

// Jobs that begin at the same time take turns from then on, also with one that comes later.
func TestJobsThatBeginLaterShareASearch(t *testing.T) {
	p := newPair(t)
	begin := p.now.Add(maxWait + time.Second)
	a, b := p.submitFor(begin, 2, 1), p.submitFor(begin, 2, 1)
	p.pass(maxWait)
	now := p.submit(2, 1)
	if len(p.ads) != 1 || p.ads[0].Job != now {
		t.Fatalf("advertised %+v, want the job that begins now, and nobody to wait for others", p.ads)
	}
	p.offer(2, 1)
	p.pass(begin.Sub(p.now) - 5*time.Millisecond)
	if len(p.ads) != 1 || len(p.core.batches.kinds) != 0 {
		t.Fatalf("before their time: advertised %+v, kinds %v", p.ads, p.core.batches.kinds)
	}
	p.ads, p.grants = nil, nil
	p.pass(10 * time.Millisecond)
	later := p.submit(2, 1)
	if len(p.ads) != 1 || p.ads[0].Job != a || p.ads[0].Others != 0 {
		t.Fatalf("advertised %+v, want the first one alone", p.ads)
	}
	p.offer(2, 2)
	p.pass(300 * time.Millisecond)
	if len(p.ads) != 2 || p.ads[1].Wanted != 4 || p.ads[1].Others != 2 {
		t.Fatalf("advertised %+v, want a batch of both others", p.ads)
	}
	p.offer(4, 3)
	p.pass(300 * time.Millisecond)
	if len(p.grants) != 3 || p.grants[0].Job != a || p.grants[1].Job != b || p.grants[2].Job != later {
		t.Errorf("granted %+v", p.grants)
	}
}

// A job that is ended while it searches for others does not take them along.
func TestBatchesOfEndedJobs(t *testing.T) {
	p := newPair(t)
	b, c, call := begun(p)
	p.offer(1, 7)
	p.core.Update(p.now, b, func(j *primary.Primary) { j.Cancel(p.now, "by a test", true) })
	p.act()
	if got := p.asked(); len(got) != 1 || len(p.packets) != 0 {
		t.Fatalf("advertised are %v, said %+v, want the search to go on for the other job", got, p.packets)
	}
	p.offer(2, 8)
	p.pass(300 * time.Millisecond)
	if len(p.grants) != 1 || p.grants[0].Job != c || p.grants[0].Held != call || p.grants[0].Key != 8 || len(p.core.batches.calls)+len(p.core.batches.kinds) != 0 {
		t.Errorf("granted %+v, calls %v, kinds %v", p.grants, p.core.batches.calls, p.core.batches.kinds)
	}

	p = newPair(t)
	b, c, _ = begun(p)
	p.core.Update(p.now, c, func(j *primary.Primary) { j.Cancel(p.now, "by a test", true) })
	p.offer(2, 7)
	p.pass(300 * time.Millisecond)
	if len(p.grants) != 1 || p.grants[0].Job != b || len(p.core.batches.calls)+len(p.core.batches.kinds) != 0 {
		t.Errorf("granted %+v, calls %v, kinds %v", p.grants, p.core.batches.calls, p.core.batches.kinds)
	}
}

// Nobody waits for a search that finds too little, or takes long.
func TestBatchesThatWouldTakeLong(t *testing.T) {
	p := newPair(t)
	p.submit(2, 1)
	b, c := p.submit(2, 1), p.submit(2, 1)
	p.pass(maxWait - 50*time.Millisecond)
	if got := p.asked(); slices.Contains(got, b) || slices.Contains(got, c) {
		t.Fatalf("advertised are %v before their time", got)
	}
	p.pass(100 * time.Millisecond)
	ads := slices.Clone(p.ads)
	if got := p.asked(); !slices.Contains(got, b) || !slices.Contains(got, c) {
		t.Errorf("advertised are %v, want all three by now", got)
	}
	p.ads = ads[:1]
	p.offer(2, 1) // to the first of them
	p.pass(300 * time.Millisecond)
	if got := p.asked(); len(p.grants) != 1 || len(p.core.batches.calls) != 0 || len(p.core.batches.kinds) != 0 {
		t.Errorf("granted %+v, advertised %v, calls %v: want nothing for those who look for themselves", p.grants, got, p.core.batches.calls)
	}

	p = newPair(t)
	a := p.submit(2, 1)
	b, c = p.submit(2, 1), p.submit(2, 1)
	p.offer(0, 0)
	p.pass(100 * time.Millisecond)
	if got := p.asked(); !slices.Contains(got, b) || !slices.Contains(got, c) {
		t.Errorf("advertised are %v when there is no room for %s, want the others too", got, a.Short())
	}
}

// Nor for one whose submission could not be written down.
func TestBatchesOfRefusedJobs(t *testing.T) {
	p := newPair(t)
	p.unsafe = true
	a, b := p.submit(2, 1), p.submit(2, 1)
	p.core.Refuse(a)
	p.ads = nil
	p.unsafe = false
	p.act()
	if len(p.ads) != 1 || p.ads[0].Job != b {
		t.Errorf("advertised %+v, want the job that is left", p.ads)
	}
	p.core.Drop(b)
	if len(p.core.batches.kinds) != 0 {
		t.Errorf("kinds %v are left of jobs that nobody has", p.core.batches.kinds)
	}
}

// Each has its time anew when the search was handed on.
func TestTimeOfABatch(t *testing.T) {
	p := newPair(t)
	b, c, call := begun(p)
	d := p.submit(2, 1)
	p.pass(700 * time.Millisecond)
	p.offer(2, 7)
	p.pass(700 * time.Millisecond)
	if got := p.asked(); len(p.grants) != 1 || p.grants[0].Job != b || slices.Contains(got, c) || slices.Contains(got, d) {
		t.Errorf("granted %+v, advertised %v, want %s and nobody but %s", p.grants, got, b, call)
	}
}

// Who wants something else does not wait.
func TestBatchesAreOfJobsThatWantTheSame(t *testing.T) {
	p := newPair(t)
	list := []jobs.ID{p.submit(2, 1), p.submit(2, 2)}
	if got := p.asked(); !slices.Equal(got, list) {
		t.Errorf("advertised are %v, want %v", got, list)
	}
}

// A node that holds more for a batch than was granted is told so when the batch is over, if its other jobs
// found too little as well.
func TestBatchGivesBackWhatNoJobGets(t *testing.T) {
	p := newPair(t)
	b, _, call := begun(p)
	p.offer(3, 7)
	p.pass(300 * time.Millisecond)
	if len(p.grants) != 1 || p.grants[0].Job != b {
		t.Fatalf("granted %+v, want the first of two", p.grants)
	}
	if p.pass(100 * time.Millisecond); !slices.ContainsFunc(p.packets, func(k wire.Packet) bool { return k.Yield == call && k.Forget }) {
		t.Errorf("said %+v, want that the rest is not needed", p.packets)
	}
}

// A batch is over when the last of its jobs has ended.
func TestBatchEndsWithItsJobs(t *testing.T) {
	p := newPair(t)
	b, c, _ := begun(p)
	for _, id := range []jobs.ID{b, c} {
		p.core.Update(p.now, id, func(j *primary.Primary) { j.Cancel(p.now, "by a test", true) })
	}
	p.act()
	if left := &p.core.batches; len(left.calls)+len(left.kinds)+len(left.due.List) != 0 {
		t.Errorf("%d calls, %d kinds and %d timers are left", len(left.calls), len(left.kinds), len(left.due.List))
	}
}

// What a node offered that is no member any more is not counted on.
func TestBatchDropsOffersOfNodesThatAreGone(t *testing.T) {
	p := newPair(t)
	_, _, call := begun(p)
	p.offer(1, 7)
	offers := p.core.batches.calls[call].search.Offers
	if len(offers) != 1 {
		t.Fatalf("%d offers stand, want one that is not enough", len(offers))
	}
	p.core.Membership(p.now, jobtest.Node(2), false)
	if len(offers) != 0 {
		t.Errorf("%d offers stand of a node that is gone", len(offers))
	}
}
