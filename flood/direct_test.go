package flood

import (
	"slices"
	"testing"
	"time"

	"zorilla/vicinity"
)

func ms(n float64) time.Duration { return time.Duration(n * float64(time.Millisecond)) }

// known is a frontier of a flood that went to nobody, of an origin from whom node n is n
// milliseconds away.
func known(nodes int) *Frontier {
	var f Frontier
	again(&f, begin, nodes)
	return &f
}

// again begins another flood like that of known.
func again(f *Frontier, now time.Time, nodes int) {
	f.Begin(Flood{until: now.Add(time.Minute)}, now)
	var others []vicinity.Measured
	for n := 1; n <= nodes; n++ {
		others = append(others, vicinity.Measured{ID: node(n), RTT: ms(float64(n))})
	}
	f.Direct(others)
}

// asks returns the numbers of the nodes that are asked for so many workers, where some offer.
func asks(f *Frontier, now time.Time, horizon time.Duration, wanted int, offers map[int]int) (list []int) {
	for _, r := range f.Ask(now, horizon, wanted, func(id vicinity.ID) int { return offers[number(id)] }) {
		if !r.Last || r.Again {
			panic("a copy that goes on")
		}
		list = append(list, number(r.Node))
	}
	return list
}

func number(id vicinity.ID) int {
	for n := range 100 {
		if node(n) == id {
			return n
		}
	}
	panic(id)
}

func upTo(first, last int) (list []int) {
	for n := first; n <= last; n++ {
		list = append(list, n)
	}
	return list
}

func TestDirectAsksAsManyAsAreNeeded(t *testing.T) {
	f := known(60)
	// One worker is expected at each, and a quarter more are asked for.
	if got := asks(f, begin, time.Hour, 8, nil); !slices.Equal(got, upTo(1, 10)) {
		t.Fatalf("asks %v for 8 workers", got)
	}
	if got := asks(f, begin, time.Hour, 8, nil); got != nil {
		t.Fatalf("asks %v too before anybody could answer", got)
	}
	if !f.Due(begin, time.Hour).Equal(begin.Add(ms(1.25) + late)) {
		t.Errorf("waits until %v", f.Due(begin, time.Hour).Sub(begin))
	}
	answer := func(n int) {
		f.Answered(begin.Add(ms(float64(n))), Reach{Node: node(n), RTT: ms(float64(n)), Hops: 1, Rim: true, Onward: 8})
	}
	// The fewer there are who have room, the more are asked; nobody waits for the last answer.
	answer(1)
	answer(2)
	answer(3)
	if got := asks(f, begin.Add(ms(3)), time.Hour, 8, nil); !slices.Equal(got, upTo(11, 21)) {
		t.Fatalf("asks %v when three of ten have none", got)
	}
	answer(4)
	offers := map[int]int{4: 2, 9: 8}
	answer(9)
	// Node 9 has enough, but those before it are nearer.
	if got := asks(f, begin.Add(ms(9)), ms(9), 8, offers); got != nil || !f.Open(begin.Add(ms(9)), ms(9)) || f.Open(begin.Add(ms(9)), ms(5)) {
		t.Fatalf("asks %v, or does not wait for nodes 5 to 8", got)
	}
	for n := 5; n <= 8; n++ {
		answer(n)
	}
	if f.Open(begin.Add(ms(9)), ms(9)) {
		t.Error("waits though all who are nearer have answered")
	}
	if rtt, ok := f.Nearest(); !ok || rtt != ms(22) {
		t.Errorf("node 22 is the nearest that was not asked, not %v", rtt)
	}
	if c := f.Cost(); c != (Cost{Messages: 21, Reached: 9, Hops: 1}) {
		t.Errorf("counted %+v", c)
	}
}

func TestDirectAsksSomeAtLeast(t *testing.T) {
	if got := asks(known(60), begin, time.Hour, 1, nil); !slices.Equal(got, upTo(1, first)) {
		t.Errorf("asks %v for one worker", got)
	}
	if got := asks(known(60), begin, ms(4), 1, nil); !slices.Equal(got, upTo(1, 3)) {
		t.Errorf("asks %v for one worker, nearer than node 4", got)
	}
	if got := asks(known(3), begin, time.Hour, 1, nil); !slices.Equal(got, upTo(1, 3)) {
		t.Errorf("asks %v for one worker, of three", got)
	}
}

// Where a flood found little, the next one asks many at once.
func TestDirectExpectsWhatTheFloodBeforeFound(t *testing.T) {
	for found, want := range map[int]int{0: 60, 1: 60, 15: 10, 60: first} {
		f, at, offers := known(60), begin, map[int]int{}
		for n := range found {
			offers[n+1] = 1
		}
		for range 60 { // until all have been asked
			for _, n := range asks(f, at, time.Hour, 60, offers) {
				f.Answered(at, Reach{Node: node(n), RTT: ms(float64(n)), Hops: 1})
			}
		}
		asks(f, at, time.Hour, 60, offers)
		again(f, at, 60)
		if got := asks(f, at, time.Hour, 2, nil); !slices.Equal(got, upTo(1, want)) {
			t.Errorf("asks %d for two workers after %d of 60 had room, want %d", len(got), found, want)
		}
	}
}

// Who has offered may be farther than somebody who was not asked yet.
func TestDirectAsksTheNearerToo(t *testing.T) {
	f := known(60)
	at := begin.Add(ms(100))
	seen := map[int]bool{}
	for _, n := range asks(f, begin, time.Hour, 1, nil) {
		seen[n] = true
		f.Answered(at, Reach{Node: node(n), RTT: ms(float64(n)), Hops: 1})
	}
	f.Answered(at, Reach{Node: node(40), RTT: ms(40), Hops: 1})
	for range 60 {
		for _, n := range asks(f, at, ms(40), 1, map[int]int{40: 1}) {
			seen[n] = true
			f.Answered(at, Reach{Node: node(n), RTT: ms(float64(n)), Hops: 1})
		}
	}
	for n := 1; n < 40; n++ {
		if !seen[n] {
			t.Errorf("node %d is nearer, and was not asked", n)
		}
	}
	if seen[41] {
		t.Error("node 41 is farther, and was asked")
	}
}

func TestDirectAsksTheSilentAgain(t *testing.T) {
	f := known(9)
	measured := func(id vicinity.ID) time.Duration { return ms(float64(number(id))) }
	asks(f, begin, time.Hour, 2, nil)
	if list := f.Silent(begin.Add(ms(2)), time.Hour, measured); list != nil {
		t.Fatalf("asks %v again, who has not had time to answer", list)
	}
	at := begin.Add(ms(50))
	f.Answered(at, Reach{Node: node(2), Hops: 1})
	for range maxAsked - 1 {
		list := f.Silent(at, ms(3), measured)
		if len(list) != 1 || list[0].Node != node(1) || !list[0].Again || !list[0].Last {
			t.Fatalf("asks %+v again, want node 1", list)
		}
		if !f.Open(at, ms(3)) {
			t.Error("does not wait for it")
		}
		at = at.Add(ms(50))
	}
	if list := f.Silent(at, ms(3), measured); list != nil {
		t.Errorf("asks %+v for ever", list)
	}
	if took, least := f.Took(node(2)); took != ms(50) || least != ms(2) {
		t.Errorf("node 2 took %v, at least %v", took, least)
	}
	if took, _ := f.Took(node(1)); took != 0 {
		t.Errorf("node 1, who says nothing, took %v", took)
	}
	if got := asks(f, begin.Add(time.Minute), time.Hour, 8, nil); got != nil {
		t.Errorf("asks %v after the flood's life", got)
	}
}

// Who has not been measured more than once is asked again as well, and one of whom only bounds
// are known has as long as it may take.
func TestDirectAsksTheUnsureAgain(t *testing.T) {
	var f Frontier
	f.Begin(Flood{until: begin.Add(time.Minute)}, begin)
	f.Direct([]vicinity.Measured{{ID: node(1), RTT: ms(1), Least: true, Most: ms(40)}, {ID: node(2), RTT: ms(2)}})
	if got := asks(&f, begin, time.Hour, 2, nil); !slices.Equal(got, []int{1, 2}) {
		t.Fatalf("asks %v", got)
	}
	at := func(d time.Duration) []Reach {
		return f.Silent(begin.Add(d), time.Hour, func(vicinity.ID) time.Duration { return 0 })
	}
	if list := at(ms(30)); len(list) != 1 || list[0].Node != node(2) {
		t.Fatalf("asks %+v again, want node 2", list)
	}
	if !f.Awaits(begin.Add(ms(31)), ms(3)) || f.Awaits(begin.Add(ms(31)), ms(1)) {
		t.Error("waits for others than node 2, which was asked again")
	}
	f.Answered(begin.Add(ms(35)), Reach{Node: node(2), Hops: 1})
	if f.Awaits(begin.Add(ms(36)), time.Hour) {
		t.Error("waits for who has answered, or was asked once")
	}
	if list := at(ms(50) + late); len(list) != 1 || list[0].Node != node(1) {
		t.Fatalf("asks %+v again, want node 1", list)
	}
}

// Of who may be nearer than was measured only the answer tells how far it is.
func TestDirectBelievesTheAnswerAlone(t *testing.T) {
	var f Frontier
	f.Begin(Flood{until: begin.Add(time.Minute)}, begin)
	f.Direct([]vicinity.Measured{{ID: node(1), RTT: ms(0.1), Least: true}})
	if got := asks(&f, begin, time.Hour, 1, nil); !slices.Equal(got, []int{1}) {
		t.Fatalf("asks %v", got)
	}
	f.Answered(begin.Add(ms(7)), Reach{Node: node(1), Hops: 1})
	if took, least := f.Took(node(1)); took != ms(7) || least != ms(7) {
		t.Errorf("it took %v, and is no less than %v away", took, least)
	}
}

// A copy to one node alone goes no further, but may be carried on from there later.
func TestExtendToOneNodeAlone(t *testing.T) {
	origin := testCore(t, func(cfg *Config) { cfg.Self = node(0) }, 1)
	fl, _, err := origin.Start(begin, 1, time.Minute, []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	other := testCore(t, func(cfg *Config) { cfg.Self = node(9) }, 2, 3)
	out := origin.Extend(begin, fl, []Reach{{Node: node(9), Hops: 1, Last: true}, {Node: node(8), Hops: 1}})
	if len(out) != 2 || !slices.Equal(out[0].To, []vicinity.ID{node(8)}) || !slices.Equal(out[1].To, []vicinity.ID{node(9)}) {
		t.Fatalf("sends %+v", out)
	}
	got := other.Receive(begin, 0, node(0), out[1].Packet)
	if got.Deliver == nil || len(got.To) != 0 || got.Deliver.TTL != 1 || got.Deliver.Onward != 2 {
		t.Fatalf("node 9 does %+v, want that it delivers and sends nothing", got)
	}
	more := origin.Extend(begin, fl, []Reach{{Node: node(9), Hops: 1}})
	if got = other.Receive(begin, 0, node(0), more[0].Packet); got.Deliver != nil || len(got.To) != 2 {
		t.Fatalf("node 9 does %+v, want that it sends it on", got)
	}
}

// How long a node took counts from the first copy: an answer to that may come after the second
// was sent, and would make the node nearer than it is.
func TestTookCountsFromTheFirstCopy(t *testing.T) {
	f := known(9)
	asks(f, begin, time.Hour, 1, nil)
	measured := func(id vicinity.ID) time.Duration { return ms(float64(number(id))) }
	if list := f.Silent(begin.Add(ms(50)), ms(2), measured); len(list) != 1 {
		t.Fatalf("asks %+v again, want node 1", list)
	}
	f.Answered(begin.Add(ms(51)), Reach{Node: node(1), Hops: 1})
	if took, _ := f.Took(node(1)); took != ms(51) {
		t.Errorf("node 1 took %v, want 51 ms", took)
	}
}

// Offers are counted off what is asked for, and nobody waits for those who have answered.
func TestDirectCountsWhatIsOffered(t *testing.T) {
	f := known(60)
	asks(f, begin, time.Hour, 8, nil)
	for n := 1; n <= 3; n++ {
		f.Answered(begin.Add(ms(3)), Reach{Node: node(n), RTT: ms(float64(n)), Hops: 1})
	}
	offers := map[int]int{1: 1, 2: 1, 3: 1}
	if got := asks(f, begin.Add(ms(3)), time.Hour, 10, offers); !slices.Equal(got, upTo(11, 13)) {
		t.Errorf("asks %v for seven more workers and two and a half, nodes 4 to 10 being asked", got)
	}
	if due := f.Due(begin.Add(ms(1)), ms(4)); !due.IsZero() {
		t.Errorf("waits until %v for nodes that have answered", due.Sub(begin))
	}
}
