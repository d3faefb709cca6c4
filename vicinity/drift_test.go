package vicinity

import (
	"testing"
	"time"

	"zorilla/internal/seeds"
)

// A tenth of the nodes change places with others: half a minute later all have the right
// neighbours again, and nobody remembers a node where it is not.
func TestNodesThatMoveFindTheirNearest(t *testing.T) {
	seeds.OneGoroutine(t)
	t.Parallel()
	w := newNetwork(t, seeds.One(t))
	for i := range 120 {
		w.add(i%6, 0, 0)
	}
	w.run(60 * time.Second)
	moved := w.rnd.Perm(120)[:12]
	for i := 0; i < len(moved); i += 2 {
		a, b := w.nodes[moved[i]], w.nodes[moved[i+1]]
		a.site, b.site = b.site, a.site
	}
	w.run(30 * time.Second)
	if got := w.nearShare(); got < 0.99 {
		t.Errorf("30 s after some moved %.3f of the near links are right", got)
	}
	w.run(30 * time.Second)
	wrong, all := 0, 0
	for _, n := range w.nodes {
		for _, m := range n.core.Nearer(ms, 24) {
			all++
			if w.byID[m.ID].site != n.site {
				wrong++
			}
		}
	}
	t.Logf("%d of %d that seem to be at the own site are elsewhere", wrong, all)
	if wrong > all/100 {
		t.Errorf("a minute after some moved %d of %d that seem to be at the own site are elsewhere", wrong, all)
	}
	w.healthy()
}

func TestElsewhere(t *testing.T) {
	at := func(rtts ...time.Duration) (b bearings) {
		for i, rtt := range rtts {
			b = append(b, bearing{uint16(i), rtt})
		}
		return b
	}
	old := at(10*ms, 20*ms, 30*ms, 40*ms)
	for _, x := range []struct {
		now  bearings
		want bool
	}{
		{old, false},
		{at(11*ms, 21*ms, 31*ms, 44*ms), false}, // not clearly
		{at(10*ms, 90*ms, 30*ms, 40*ms), false}, // one is late
		{at(2*ms, 5*ms, 6*ms, 7*ms), false},     // measured better
		{at(2*ms, 90*ms, 30*ms, 40*ms), true},
		{at(60*ms, 90*ms, 30*ms, 40*ms), true},
		{nil, false},
	} {
		if got := elsewhere(old, x.now); got != x.want {
			t.Errorf("%v: %v, want %v", x.now, got, x.want)
		}
	}
}

// A list tells of those most that seem to be near whom it is for.
func TestListsTellOfThoseNearTheReceiver(t *testing.T) {
	k := newTalk(t, 2, 1, 40)
	for i := 1; i <= 40; i++ {
		var b bearings
		for j, m := range k.core.where.current() {
			b = append(b, bearing{m.tag, time.Duration(i+j) * 5 * ms})
		}
		k.core.where.learn(k.core.peers.get(testID(i)), b, k.core.at)
	}
	m := k.core.list(kindSwap, k.core.peers.get(testID(20)))
	told := map[ID]bool{}
	for rest := m.Known; len(rest) > 0; rest = rest[recordLength(m.Tags):] {
		told[unpackID(rest[:packedID])] = true
	}
	for _, i := range []int{17, 18, 19, 21, 22, 23} {
		if !told[testID(i)] {
			t.Errorf("node 20 is not told of node %d", i)
		}
	}
	if len(told) != listPlaces || told[testID(20)] {
		t.Errorf("it is told of %d nodes, itself %v", len(told), told[testID(20)])
	}
}

// What a node has measured of others counts no more when most ways are other ones, and still
// does when a few are.
func TestNodeThatMovedBeginsAnew(t *testing.T) {
	for _, x := range []struct {
		shifted int
		moved   bool
	}{{2, false}, {3, false}, {4, true}, {6, true}} {
		k := newTalk(t, 2, 1, 30)
		see := func(i int, rtt time.Duration) { k.took(k.core.Observe(k.now, testID(i), rtt)) }
		see(20, 2*ms)
		see(21, 40*ms)
		for range 6 {
			for i := 1; i <= 6; i++ {
				see(i, ms)
			}
			k.after(10 * time.Second)
		}
		for range rowLength {
			for i := 1; i <= 6; i++ {
				if i <= x.shifted {
					see(i, 30*ms)
				} else {
					see(i, ms)
				}
			}
			k.after(2 * time.Second)
		}
		if _, known := k.core.RTT(testID(20)); known == x.moved {
			t.Errorf("with %d of 6 ways changed the others are known: %v", x.shifted, known)
		}
	}
}

// Where some ways are other ones, so that the node may have moved, whom it had measured is
// measured again; where hardly any are, only some are.
func TestNodeInDoubtMeasuresTheOthersAgain(t *testing.T) {
	for _, x := range []struct{ shifted, least, most int }{{2, 0, 15}, {3, 36, 43}} { // some are asked again in any case
		k := newTalk(t, 2, 1, 49)
		see := func(i int, rtt time.Duration) { k.took(k.core.Observe(k.now, testID(i), rtt)) }
		for range 6 {
			for i := 1; i <= 6; i++ {
				see(i, ms)
			}
			k.after(10 * time.Second)
		}
		for i := 7; i <= 49; i++ {
			see(i, time.Duration(i)*ms)
		}
		k.after(askAgain)
		k.sent = nil
		for range rowLength {
			for i := 1; i <= 6; i++ {
				if i <= x.shifted {
					see(i, 30*ms)
				} else {
					see(i, ms)
				}
			}
			k.after(2 * time.Second)
		}
		k.after(15 * time.Second)
		var asked []int
		for i := 7; i <= 49; i++ {
			if len(k.said(i, kindPing)) > 0 {
				asked = append(asked, i)
			}
		}
		if len(asked) < x.least || len(asked) > x.most {
			t.Errorf("with %d of 6 ways changed %v are asked", x.shifted, asked)
		}
	}
}

// A round trip to one neighbour that is longer than usual is that neighbour's affair; two at a
// time may be this node's, which measures all links at once.
func TestLinksAreMeasuredWhenTwoSeemLonger(t *testing.T) {
	for late := range 4 {
		k := newTalk(t, 6, 0, 6)
		for range 6 {
			for i := 1; i <= 6; i++ {
				k.hear(i, message{Kind: kindPing, Nonce: 1, Link: claimNear})
				k.took(k.core.Observe(k.now, testID(i), ms))
			}
			k.after(5 * time.Second)
		}
		k.sent = nil
		for i := 1; i <= late; i++ {
			k.took(k.core.Observe(k.now, testID(i), 30*ms))
		}
		k.after(firstRetry / 2)
		asked := 0
		for i := late + 1; i <= 6; i++ {
			asked += len(k.said(i, kindPing))
		}
		if want := map[bool]int{true: 6 - late}[late >= 2]; asked != want {
			t.Errorf("%d neighbours seem to be farther away: %d others are pinged at once, want %d", late, asked, want)
		}
	}
}
