package vicinity

import (
	"slices"
	"testing"
	"time"
)

func TestBearingsSurviveTheWire(t *testing.T) {
	in := bearings{{3, 0}, {4, 123 * time.Microsecond}, {900, 20 * ms}, {65535, maxRTT}}
	out, ok := bearingsFromWire(in.wire())
	if !ok || len(out) != len(in) {
		t.Fatalf("got %v, %v", out, ok)
	}
	for i, b := range in {
		if d := b.rtt - out[i].rtt; out[i].tag != b.tag || max(d, -d) > b.rtt/1000+time.Microsecond {
			t.Errorf("%v became %v", b, out[i])
		}
	}
	for i := range 1000 {
		id := testID(i)
		if got := unpackID(appendID(nil, id)); got != id || len(appendID(nil, id)) != packedID {
			t.Fatalf("ID %s became %s", id, got)
		}
	}
}

func TestApartIsALowerBound(t *testing.T) {
	at := func(ms ...int) (b bearings) {
		for i, x := range ms {
			if x >= 0 {
				b = append(b, bearing{uint16(i), time.Duration(x) * time.Millisecond})
			}
		}
		return b
	}
	for _, x := range []struct {
		a, b  bearings
		least time.Duration
		ok    bool
		alike bool
	}{
		{at(1, 2, 3), at(1, 5, 3), 3 * ms, true, false},
		{at(1, 2, 3, 4, 5), at(1, 2, 3, 4, 5), 0, true, true},
		{at(1, 2, 3, 4, 5), at(1, 2, 90, 4, 6), ms, true, false}, // one landmark may err
		{at(1, 2, 3, 4, 5), at(1, 2, 90, 4, 5), 0, true, true},
		{at(1, 2, 3, -1, -1), at(-1, -1, 3, 4, 5), 0, false, false},
		{at(7), at(4), 3 * ms, true, false}, // a network of two
		{at(7), at(-1, 4), 0, false, false},
		{nil, at(4), 0, false, false},
	} {
		least, ok := x.a.apart(x.b)
		_, _, common := x.a.compare(x.b)
		if ok != x.ok || ok && least != x.least || same(least, common) != x.alike {
			t.Errorf("%v and %v: %v, %v, %d in common", x.a, x.b, least, ok, common)
		}
		back, ok2 := x.b.apart(x.a)
		if back != least || ok2 != ok {
			t.Errorf("%v and %v: not the same the other way around", x.a, x.b)
		}
	}
}

func TestLandmarksAreTheSameEverywhere(t *testing.T) {
	var want []ID
	for i := range 40 {
		want = append(want, testID(i))
	}
	slices.Sort(want)
	want = want[:maxLandmarks]
	k := newTalk(t, 2, 1, 39)
	k.core.cfg.Roster.Add(testID(0))
	k.took(k.core.Join(k.now, testID(0)))
	check := func() {
		t.Helper()
		var got []ID
		for _, m := range k.core.where.current() {
			got = append(got, m.id)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("landmarks %v, want %v", got, want)
		}
	}
	check()
	for i := range 40 { // one of them goes, and comes back
		if testID(i) == want[0] && i > 0 {
			k.leave(i)
			if k.core.where.isLandmark(want[0]) || len(k.core.where.current()) != maxLandmarks {
				t.Error("who is gone is still a landmark, or nobody took its place")
			}
			k.join(i)
		}
	}
	check()
}

// Whatever bearings a member invents, it moves only itself.
func TestLiarMovesOnlyItself(t *testing.T) {
	k := newTalk(t, 2, 1, 12)
	for i := 1; i <= 12; i++ {
		for range 3 {
			k.took(k.core.Observe(k.now, testID(i), time.Duration(i)*ms))
		}
	}
	honest := k.core.where.bearings()
	for i := 1; i <= 12; i++ {
		k.hear(i, message{Kind: kindPing, Nonce: 1, Place: honest.wire()})
	}
	before := map[int]Coordinate{}
	liar := 0
	for i := 1; i <= 12; i++ {
		if !k.core.where.isLandmark(testID(i)) {
			liar = i
		}
		before[i], _ = k.core.Coordinate(testID(i))
	}
	far := slices.Clone(honest)
	for i := range far {
		far[i].rtt = maxRTT
	}
	k.now = k.now.Add(time.Second)
	k.hear(liar, message{Kind: kindPing, Nonce: 2, Place: far.wire()})
	k.now = k.now.Add(time.Minute)
	for i := 1; i <= 12; i++ {
		if at, ok := k.core.Coordinate(testID(i)); !ok || at.flat(before[i]) > 0.001 {
			t.Errorf("member %d moved from %v to %v", i, before[i], at)
		}
	}
	if s := k.core.Stats(); s.Absurd != 1 {
		t.Errorf("%d absurd values counted, want 1", s.Absurd)
	}
	k.took(k.core.Observe(k.now, testID(1), -ms))
	k.took(k.core.Observe(k.now, testID(1), time.Hour))
	if s := k.core.Stats(); s.Absurd != 3 {
		t.Errorf("%d absurd values counted, want 3", s.Absurd)
	}
}

// Bearings that came in a message of another protocol tell where a node is.
func TestPlacedByOthersMessages(t *testing.T) {
	k := newTalk(t, 2, 1, 12)
	for i := 1; i <= 12; i++ {
		for range 3 {
			k.took(k.core.Observe(k.now, testID(i), time.Duration(i)*ms))
		}
	}
	mine := k.core.Bearings()
	if len(mine) == 0 || len(mine) > MaxBearings {
		t.Fatalf("bearings of %d bytes", len(mine))
	}
	var others []ID // that are no landmarks
	for i := 1; i <= 12; i++ {
		if !k.core.where.isLandmark(testID(i)) {
			others = append(others, testID(i))
		} else {
			k.core.Placed(k.now, testID(i), mine)
		}
	}
	if _, ok := k.core.Distance(others[0], others[1]); ok {
		t.Error("nodes that said nothing have places")
	}
	k.core.Placed(k.now, others[0], mine)
	k.core.Placed(k.now, others[1], mine)
	if d, ok := k.core.Distance(others[0], others[1]); !ok || d > 2*ms {
		t.Errorf("two nodes with the same bearings are %v apart, known: %v", d, ok)
	}
	before := k.core.Stats()
	k.core.Placed(k.now, testID(10), mine[1:])
	k.core.Placed(k.now, testID(99), mine)
	k.core.Placed(k.now, k.core.cfg.Self, mine)
	after := k.core.Stats()
	if after.Malformed != before.Malformed+1 || after.Strangers != before.Strangers+1 {
		t.Errorf("counted %+v after %+v", after, before)
	}
}

// One packet that was held up does not make a node at the same place a far one.
func TestNearerThanTheOnlySample(t *testing.T) {
	k := newTalk(t, 2, 1, 12)
	var others []ID // that are no landmarks
	for i := 1; i <= 12; i++ {
		if !k.core.where.isLandmark(testID(i)) {
			others = append(others, testID(i))
			continue
		}
		for range 3 {
			k.took(k.core.Observe(k.now, testID(i), time.Duration(i+20)*ms))
		}
	}
	mine := k.core.Bearings()
	held, far, sure := others[0], others[1], others[2]
	k.took(k.core.Observe(k.now, held, 90*ms))
	k.core.Placed(k.now, held, mine)
	k.took(k.core.Observe(k.now, far, 91*ms)) // of which nothing else is known
	for range sureSamples {
		k.took(k.core.Observe(k.now, sure, 92*ms)) // whatever its bearings
	}
	k.core.Placed(k.now, sure, mine)
	if list := k.core.Nearer(50*ms, 1); len(list) != 1 || list[0].ID != held || !list[0].Least || list[0].RTT > ms {
		t.Errorf("the nearest is %+v", list)
	}
	all := k.core.Nearer(time.Hour, 100)
	if n := len(all); n < 3 || all[n-2] != (Measured{ID: far, RTT: 91 * ms}) || all[n-1] != (Measured{ID: sure, RTT: 92 * ms}) {
		t.Errorf("got %+v", all)
	}
	if list := k.core.Nearer(1, 9); len(list) != 0 {
		t.Errorf("no node is so near, and it is %+v", list)
	}
	if list := k.core.Nearer(50*ms, 2); len(list) != 2 || list[1].RTT < 20*ms {
		t.Errorf("the nearest two are %+v", list)
	}
	k.core.enter(k.now.Add(askAgain))
	k.core.near.list = nil
	k.core.near.propose()
	if has := func(x candidate) bool { return x.id == held }; !slices.ContainsFunc(k.core.near.list, has) {
		t.Errorf("it is not measured again; %+v are", k.core.near.list)
	}
	k.took(k.core.Observe(k.now, held, 90*ms))
	if list := k.core.Nearer(time.Hour, 100); slices.ContainsFunc(list, func(m Measured) bool { return m.Least }) {
		t.Errorf("two samples are not believed: %+v", list)
	}
}

// A member that was never measured is known by its bearings, if those of some landmarks do.
func TestBoundsOfTheUnmeasured(t *testing.T) {
	k := newTalk(t, 2, 1, 12)
	var others []ID // that are no landmarks
	for i := 1; i <= 12; i++ {
		if !k.core.where.isLandmark(testID(i)) {
			others = append(others, testID(i))
			continue
		}
		for range 3 {
			k.took(k.core.Observe(k.now, testID(i), time.Duration(i+20)*ms))
		}
	}
	k.core.Placed(k.now, others[0], k.core.Bearings()) // of others[1] nothing is known
	list := k.core.Nearer(time.Hour, 100)
	if len(list) != 9 || list[0].ID != others[0] || !list[0].Least || list[0].RTT > ms || list[0].Most < 40*ms || list[0].Most > 60*ms {
		t.Fatalf("got %+v", list)
	}
	if near := k.core.Nearer(list[0].Most, 100); len(near) > 0 && near[0].ID == others[0] {
		t.Error("it may be farther than that")
	}
	if near := k.core.Nearer(list[0].Most+1, 1); len(near) != 1 || near[0].ID != others[0] {
		t.Errorf("the nearest is %+v", near)
	}
}
