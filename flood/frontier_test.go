package flood

import (
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"zorilla/vicinity"
)

func unmeasured(vicinity.ID) time.Duration { return 0 }

func TestFrontierTakesTheNearestFirst(t *testing.T) {
	var f Frontier
	f.Begin(Flood{Copies: 3, until: begin.Add(time.Minute)}, begin)
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, n := range rnd.Perm(40) {
		f.Answered(begin.Add(2*time.Millisecond), Reach{Node: node(n), RTT: time.Duration(n) * time.Millisecond, Hops: 1, Rim: true, Onward: 2})
	}
	if ids := f.Next(begin.Add(3*time.Millisecond), time.Hour, 1, unmeasured); ids != nil {
		t.Fatalf("extended beyond %v before the rest could answer", ids)
	}
	next := 0
	now := begin
	// 30 of 40 are below the horizon; none is taken together with one that is
	// more than twice as near.
	for step, want := range []int{1, 1, 2, 4, 8, 14, 0} {
		now = f.Ready()
		ids := f.Next(now, 30*time.Millisecond, 1, unmeasured)
		if len(ids) != want {
			t.Fatalf("step %d: %d nodes, want %d", step, len(ids), want)
		}
		for _, r := range ids {
			if r.Node != node(next) {
				t.Fatalf("step %d: extended beyond %+v, want nodes %d to %d", step, ids, next, next+want-1)
			}
			next++
		}
		if len(ids) > 0 && f.Ready().Sub(now) != pause(2*time.Duration(next-1)*time.Millisecond) {
			t.Fatalf("step %d: the next one after %v", step, f.Ready().Sub(now))
		}
	}
	if c := f.Cost(); c != (Cost{Messages: 3 + 30*3, Reached: 40, Extended: 30, Hops: 1}) {
		t.Errorf("counted %+v", c)
	}
	if !f.Open(now, time.Hour) || f.Open(now, 30*time.Millisecond) || f.Open(begin.Add(time.Minute), time.Hour) {
		t.Error("open where it is not, or not where it is")
	}
}

func TestFrontierGrowsInDoublingSteps(t *testing.T) {
	for wanted, steps := range map[int][]int{1: {4, 8, 16, 12, 0}, 64: {16, 24, 0}} {
		var f Frontier
		f.Begin(Flood{Copies: 3, until: begin.Add(time.Minute)}, begin)
		for n := range 40 {
			f.Answered(begin, Reach{Node: node(n), RTT: time.Millisecond, Hops: 1, Rim: true, Onward: 2})
		}
		for step, want := range steps {
			if ids := f.Next(f.Ready(), time.Hour, wanted, unmeasured); len(ids) != want {
				t.Fatalf("%d wanted, step %d: %d nodes, want %d", wanted, step, len(ids), want)
			}
		}
	}
}

func TestFrontierKnowsWhatItIsTold(t *testing.T) {
	var f Frontier
	if f.Next(begin, time.Hour, 1, unmeasured) != nil || f.Open(begin, time.Hour) {
		t.Fatal("a frontier without a flood is open")
	}
	f.Answered(begin, Reach{Node: node(1), Rim: true, Onward: 3}) // of an older flood
	f.Begin(Flood{Copies: 2, until: begin.Add(time.Minute)}, begin)
	f.Answered(begin.Add(time.Millisecond), Reach{Node: node(1), RTT: 9 * time.Millisecond, Hops: 2, Rim: true, Onward: 3})
	f.Answered(begin.Add(time.Millisecond), Reach{Node: node(1), RTT: time.Millisecond, Hops: 1, Rim: true, Onward: 3})
	f.Answered(begin.Add(time.Millisecond), Reach{Node: node(2), RTT: time.Millisecond, Hops: 1, Onward: 4})            // sent it on
	f.Answered(begin.Add(time.Millisecond), Reach{Node: node(3), RTT: time.Millisecond, Hops: 1, Rim: true, Onward: 0}) // has nobody
	if c := f.Cost(); c != (Cost{Messages: 6, Reached: 3, Hops: 2}) {
		t.Errorf("counted %+v", c)
	}
	measured := func(id vicinity.ID) time.Duration { return 5 * time.Millisecond }
	if ids := f.Next(f.Ready(), 5*time.Millisecond, 1, measured); ids != nil {
		t.Errorf("extended beyond %v, measured at the horizon", ids)
	}
	if ids := f.Next(f.Ready(), 6*time.Millisecond, 1, measured); len(ids) != 1 || ids[0].Node != node(1) {
		t.Errorf("extended beyond %v, want node 1, which is nearer than it seemed", ids)
	}
	if c := f.Cost(); c.Messages != 6+1+3 {
		t.Errorf("%d messages: one to the node, three from it", c.Messages)
	}
}

// A node that is known to be near, but that the flood did not reach, is as good
// as one on its rim, once.
func TestFrontierMeetsKnownNodes(t *testing.T) {
	var f Frontier
	f.Meet(node(9), time.Millisecond) // before there is a flood
	f.Begin(Flood{Copies: 1, until: begin.Add(time.Minute)}, begin)
	f.Answered(begin, Reach{Node: node(1), RTT: 9 * time.Millisecond, Hops: 1, Rim: true, Onward: 2})
	f.Meet(node(1), 9*time.Millisecond)
	f.Meet(node(2), 3*time.Millisecond)
	f.Meet(node(2), time.Millisecond)
	f.Meet(node(3), 2*time.Millisecond)
	f.Answered(begin, Reach{Node: node(3), RTT: 2 * time.Millisecond, Hops: 2}) // over a link, after all
	if rtt, ok := f.Nearest(); !ok || rtt != 3*time.Millisecond {
		t.Fatalf("the nearest is %v away", rtt)
	}
	if ids := f.Next(f.Ready(), 5*time.Millisecond, 1, unmeasured); len(ids) != 1 || ids[0].Node != node(2) || ids[0].Hops != 1 {
		t.Fatalf("extended beyond %+v, want node 2", ids)
	}
	f.Answered(begin, Reach{Node: node(2), RTT: 3 * time.Millisecond, Hops: 1, Onward: 4}) // which sent it on
	f.Meet(node(2), 3*time.Millisecond)
	if f.Open(begin, 5*time.Millisecond) {
		t.Error("still open after the known one was met")
	}
	if c := f.Cost(); c.Messages != 1+1+4 || c.Reached != 3 || c.Extended != 1 {
		t.Errorf("counted %+v", c)
	}
}

// extend carries the flood on from the origin as an origin without any horizon
// does, until its rim has nobody left.
func (s *simulation) extend(t *testing.T, origin int, f *Frontier, fl Flood, reached map[int]bool) {
	t.Helper()
	now := begin
	for range 100 {
		for i := range s.cores {
			if len(s.heard[i]) > 0 && !reached[i] {
				reached[i] = true
				m := s.heard[i][0]
				f.Answered(now, Reach{Node: node(i), Hops: int(m.Hops), Rim: m.TTL == 1, Onward: m.Onward})
			}
		}
		now = now.Add(maxPause)
		ids := f.Next(now, time.Hour, 1000, unmeasured)
		if ids == nil {
			return
		}
		links := maps.Clone(s.links[origin])
		for _, r := range ids {
			s.links[origin][s.index[r.Node]] = 20 * time.Millisecond // any member can be sent to
		}
		for _, out := range s.cores[origin].Extend(now, fl, ids) {
			s.send(now, origin, out)
		}
		s.links[origin] = links
		s.spread(t, now, origin, Out{})
	}
	t.Fatal("the flood has no end")
}

// Extensions reach every node that a flood without a radius reaches, once each,
// for far less than floods of growing radius.
func TestExtendedFloodReachesAllForLess(t *testing.T) {
	const n = 400
	build := func() *simulation {
		rnd := rand.New(rand.NewPCG(3, 4))
		s := newSimulation(n)
		for i := range n {
			for range 4 {
				if k := (i + 1 + rnd.IntN(12)) % n; k != i {
					s.link(i, k, time.Millisecond)
				}
			}
		}
		return s
	}
	s := build()
	fl, out, err := s.cores[0].Start(begin, 1, time.Hour, []byte("advertisement"))
	if err != nil {
		t.Fatal(err)
	}
	s.spread(t, begin, 0, out)
	var f Frontier
	f.Begin(fl, begin)
	reached := map[int]bool{}
	s.extend(t, 0, &f, fl, reached)
	for i := 1; i < n; i++ {
		if len(s.heard[i]) != 1 {
			t.Fatalf("node %d heard %d copies", i, len(s.heard[i]))
		}
	}
	if c := f.Cost(); c.Reached != n-1 || c.Messages < s.copies || c.Messages > s.copies*3/2 {
		t.Errorf("counted %+v, %d copies were sent", c, s.copies)
	}
	again := build()
	radius := 0
	for hops := f.Cost().Hops; radius < hops; {
		radius++
		again.flood(t, 0, radius)
	}
	t.Logf("%d nodes, %d links away: one flood extended takes %d copies, floods of growing radius %d", n, radius, s.copies, again.copies)
	if s.copies*3 > again.copies {
		t.Errorf("extending saves too little: %d copies, %d for growing floods", s.copies, again.copies)
	}
}

func TestExtendOnlyWhatIsOneself(t *testing.T) {
	c := testCore(t, nil, 1, 2)
	fl, _, err := c.Start(begin, 1, time.Second, []byte("hi"))
	if err != nil {
		t.Fatal(err)
	}
	out := c.Extend(begin.Add(300*time.Millisecond), fl, []Reach{{Node: node(4), Hops: 3}, {Node: node(5), Hops: 1}, {Node: node(6), Hops: 3}, {Node: node(7), Hops: 99}})
	if len(out) != 3 {
		t.Fatalf("sent %+v", out)
	}
	wantTo(t, "extension beyond a neighbour", out[0], 5)
	wantTo(t, "extension at 3 hops", out[1], 4, 6)
	wantTo(t, "extension at the largest radius", out[2], 7)
	m, err := decode(out[1].Packet)
	if err != nil || m.TTL != 2 || m.Hops != 3 || m.LastHop != node(0) || m.Life != 700*time.Millisecond || m.ID != fl.message.ID {
		t.Fatalf("sent %+v, %v", m, err)
	}
	if out := c.Extend(begin.Add(time.Second), fl, []Reach{{Node: node(5)}}); out != nil {
		t.Errorf("extended a flood whose life is over: %+v", out)
	}
	if out := testCore(t, func(cfg *Config) { cfg.Self = node(7) }, 1).Extend(begin, fl, []Reach{{Node: node(5)}}); out != nil {
		t.Errorf("extended another node's flood: %+v", out)
	}
	if s := c.Stats(); s.Sent != 6 || s.Extended != 4 {
		t.Errorf("counted %+v", s)
	}
}

// Who was sent a copy by the origin itself, is near and says nothing is asked again, twice.
func TestFrontierAsksTheSilentAgain(t *testing.T) {
	near := map[vicinity.ID]time.Duration{node(1): 2 * time.Millisecond, node(2): 3 * time.Millisecond, node(3): 50 * time.Millisecond, node(5): time.Millisecond}
	measured := func(id vicinity.ID) time.Duration { return near[id] }
	var f Frontier
	f.Begin(Flood{Copies: 4, to: []vicinity.ID{node(1), node(2), node(3), node(4)}, until: begin.Add(time.Minute)}, begin)
	f.Answered(begin, Reach{Node: node(1), RTT: 2 * time.Millisecond, Hops: 1, Rim: true, Onward: 3})
	f.Meet(node(5), time.Millisecond)
	if next := f.Next(begin.Add(10*time.Millisecond), time.Minute, 1, measured); len(next) != 1 || next[0].Node != node(5) {
		t.Fatalf("extends to %+v", next)
	}
	if list := f.Silent(begin.Add(pause(6*time.Millisecond)-1), 10*time.Millisecond, measured); len(list) != 0 {
		t.Fatalf("asks %+v again, who may yet answer", list)
	}
	at := begin.Add(20 * time.Millisecond)
	for range maxAsked - 1 {
		list := f.Silent(at, 10*time.Millisecond, measured)
		if len(list) != 2 || list[0].Node != node(2) && list[0].Node != node(5) || !list[0].Again || !list[1].Again || !f.Sent().Equal(at) || !f.Ready().Equal(at.Add(6*time.Millisecond)) {
			t.Fatalf("asks %+v again, want nodes 2 and 5, and waits %v for the farther one", list, f.Ready().Sub(at))
		}
		at = f.Ready()
	}
	if list := f.Silent(at, 10*time.Millisecond, measured); len(list) != 0 {
		t.Fatalf("asks %+v for ever", list)
	}
	f.Answered(at, Reach{Node: node(3), RTT: 50 * time.Millisecond, Hops: 1})
	if list := f.Silent(at, time.Second, measured); len(list) != 0 {
		t.Fatalf("asks %+v, who has answered or whose distance is not known", list)
	}
	if list := f.Silent(begin.Add(time.Hour), time.Second, measured); len(list) != 0 {
		t.Fatalf("asks %+v after the flood's life", list)
	}
}

// Who has died is asked more often than usual for a second only.
func TestFrontierPerseveresForASecond(t *testing.T) {
	measured := func(vicinity.ID) time.Duration { return 2 * time.Millisecond }
	for late, want := range map[time.Duration]int{100 * time.Millisecond: maxAsked, persevere: usual} {
		var f Frontier
		f.Begin(Flood{Copies: 1, to: []vicinity.ID{node(1)}, until: begin.Add(time.Minute)}, begin)
		copies := 1
		for at := begin.Add(late); at.Before(begin.Add(late + time.Second)); at = at.Add(10 * time.Millisecond) {
			copies += len(f.Silent(at, time.Second, measured))
		}
		if copies != want {
			t.Errorf("it is sent %d copies if %v have passed, want %d", copies, late, want)
		}
	}
}

// Nodes that matter for another reason than their distance are sent a copy each, once, and none goes on from there.
func TestSomeAreAskedBesides(t *testing.T) {
	for _, direct := range []bool{false, true} {
		var f Frontier
		known := []vicinity.Measured{{ID: node(1), RTT: time.Millisecond}, {ID: node(2), RTT: 20 * time.Millisecond}, {ID: node(3), RTT: 30 * time.Millisecond}}
		if f.Besides(begin, known) != nil {
			t.Fatal("nodes are asked of whom there is no flood")
		}
		f.Begin(Flood{Copies: 1, until: begin.Add(time.Minute), to: []vicinity.ID{node(1)}}, begin)
		if direct { // which begins with nobody
			f.Begin(Flood{Copies: 1, until: begin.Add(time.Minute)}, begin)
			f.Direct(known)
			f.Answered(begin, Reach{Node: node(1), Hops: 1})
		}
		f.Answered(begin, Reach{Node: node(2), Hops: 1})
		list := f.Besides(begin, known)
		if len(list) != 1 || list[0].Node != node(3) || !list[0].Last || list[0].Hops != 1 {
			t.Fatalf("direct %v: asks %+v besides, want node 3", direct, list)
		}
		if again := f.Besides(begin, known); again != nil || f.Cost().Messages != 2 {
			t.Errorf("direct %v: asks %+v once more; %d messages", direct, again, f.Cost().Messages)
		}
		if direct && f.Ask(begin, time.Hour, 9, func(vicinity.ID) int { return 0 }) != nil {
			t.Error("asks the same nodes for their distance, too")
		}
		if late := f.Besides(begin.Add(time.Minute), []vicinity.Measured{{ID: node(4)}}); late != nil {
			t.Errorf("direct %v: asks %+v when the flood is over", direct, late)
		}
	}
}
