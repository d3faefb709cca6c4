package vicinity

import (
	"testing"
	"time"

	"zorilla/internal/seeds"
)

func TestEqualSites(t *testing.T) {
	seeds.OneGoroutine(t)
	t.Parallel()
	w := newNetwork(t, 1)
	all := 150
	for i := range all {
		w.add(i%6, 0, 0)
	}
	w.run(2 * time.Second)
	if got := w.reached(); got != all {
		t.Errorf("after 2 s a flood reaches %d of %d nodes", got, all)
	}
	w.run(10 * time.Second)
	t.Log("12 s: " + w.report())
	if got := w.nearShare(); got < 0.99 {
		t.Errorf("after 12 s %.3f of the near links are right", got)
	}
	w.run(8 * time.Second)
	w.healthy()
	w.run(60 * time.Second)
	before := w.bytes
	w.run(60 * time.Second)
	perNode := float64(w.bytes-before) / 60 / float64(all)
	t.Logf("calm: %.0f B/s, %s", perNode, w.report())
	if perNode > 500 {
		t.Errorf("a calm node sends %.0f B/s", perNode)
	}
}

func TestUnevenSites(t *testing.T) {
	seeds.OneGoroutine(t)
	t.Parallel()
	w := newNetwork(t, 2)
	for site, size := range []int{100, 60, 40, 20, 12, 5, 2, 1} {
		for range size {
			w.add(site, 0, 0)
		}
	}
	w.run(25 * time.Second)
	t.Log("25 s: " + w.report())
	if got := w.nearShare(); got < 0.95 {
		t.Errorf("after 25 s %.3f of the near links are right", got)
	}
	w.healthy()
}

func TestFortySmallSites(t *testing.T) {
	seeds.OneGoroutine(t)
	t.Parallel()
	w := newNetwork(t, 3)
	sites := seeds.Larger(40, 20)
	for i := range 4 * sites {
		w.add(i%sites, 0, 0)
	}
	w.run(30 * time.Second)
	t.Log("30 s: " + w.report())
	if got := w.nearShare(); got < 0.95 {
		t.Errorf("after 30 s %.3f of the near links are right", got)
	}
	w.healthy()
}

func TestThirdOfNodesCrashes(t *testing.T) {
	seeds.OneGoroutine(t)
	t.Parallel()
	w := newNetwork(t, 4)
	all := seeds.Larger(120, 60)
	for i := range all {
		w.add(i%6, 0, 0)
	}
	w.run(40 * time.Second)
	var dead []*simNode
	for _, i := range w.rnd.Perm(all)[:all*3/10] {
		dead = append(dead, w.nodes[i])
	}
	w.crash(dead...)
	if got := w.reached(); got != all-len(dead) {
		t.Errorf("right after the crash a flood reaches %d of %d nodes", got, all-len(dead))
	}
	w.run(15 * time.Second)
	t.Log("15 s after: " + w.report())
	if got := w.nearShare(); got < 0.95 {
		t.Errorf("15 s after the crash %.3f of the near links are right", got)
	}
	w.healthy()
}

func TestMemberThatDiesUnnoticedIsReplaced(t *testing.T) {
	seeds.OneGoroutine(t)
	t.Parallel()
	w := newNetwork(t, 5)
	for i := range 60 {
		w.add(i%3, 0, 0)
	}
	w.run(60 * time.Second)
	w.nodes[7].down = true // and the overlay never says so
	w.run(30 * time.Second)
	for _, n := range w.alive() {
		if p := n.core.peers.known[w.nodes[7].id]; p != nil && p.link != nil && p.link.confirmed {
			t.Errorf("node %s still keeps a link to the dead node", n.id.Short())
		}
		if len(n.core.links.list) < 7 { // one may be a near and a far one for the moment
			t.Errorf("node %s has %d links", n.id.Short(), len(n.core.links.list))
		}
	}
}

// A network is cut in two until each half has forgotten the other; when the
// members return the halves must be one again.
func TestCutNetworkGrowsTogether(t *testing.T) {
	seeds.OneGoroutine(t)
	t.Parallel()
	w := newNetwork(t, 6)
	all := seeds.Larger(120, 60)
	for i := range all {
		w.add(i%6, 0, 0)
	}
	w.run(40 * time.Second)
	side := func(n *simNode) bool { return n.site < 2 }
	w.cut = func(a, b *simNode) bool { return side(a) != side(b) }
	w.changeSides(side, (*Core).Leave)
	w.run(60 * time.Second)
	if got := w.reached(); got != all/3 {
		t.Fatalf("while cut a flood reaches %d nodes, want the %d of one side", got, all/3)
	}
	w.cut = nil
	w.changeSides(side, (*Core).Join)
	w.run(5 * time.Second)
	if got := w.reached(); got != all {
		t.Errorf("5 s after healing a flood reaches %d of %d nodes", got, all)
	}
	w.run(20 * time.Second)
	t.Log("25 s after healing: " + w.report())
	w.healthy()
}

// changeSides tells every node that the members of the other side come or go.
// From then on each node has a roster of its own.
func (w *network) changeSides(side func(*simNode) bool, tell func(*Core, time.Time, ID) []Packet) {
	for _, n := range w.nodes {
		own := new(Roster)
		for i := range n.core.cfg.Roster.Len() {
			own.Add(n.core.cfg.Roster.At(i))
		}
		n.core.cfg.Roster = own
		for _, other := range w.nodes {
			if side(n) == side(other) {
				continue
			}
			w.push(event{at: w.now.Add(w.heardAfter()), to: n, call: func() {
				if !own.Remove(other.id) {
					own.Add(other.id)
				}
				w.sent(n, tell(n.core, w.now, other.id))
			}})
		}
	}
}

func TestNewcomerIsFoundByItsSite(t *testing.T) {
	seeds.OneGoroutine(t)
	t.Parallel()
	w := newNetwork(t, 7)
	for i := range 120 {
		w.add(i%3, 0, 0)
	}
	w.run(120 * time.Second)
	n := w.add(1, 0, 0)
	w.run(2 * time.Second)
	if len(n.core.links.list) < 8 {
		t.Errorf("after 2 s the newcomer has %d links", len(n.core.links.list))
	}
	w.run(10 * time.Second)
	got := 0
	for _, l := range n.core.links.list {
		if l.want == claimNear && w.byID[l.peer.id].site == 1 {
			got++
		}
	}
	if got < 6 {
		t.Errorf("after 12 s %d of the newcomer's 6 near links are at its site", got)
	}
}

func TestCoordinatesPredictDistances(t *testing.T) {
	seeds.OneGoroutine(t)
	t.Parallel()
	w := newNetwork(t, 8)
	for i := range 60 {
		w.add(i%6, 0, 0)
	}
	w.run(120 * time.Second)
	bad, all := 0, 0
	for _, n := range w.nodes[:20] {
		for _, a := range w.nodes {
			for _, b := range w.nodes[:10] {
				if a.site == b.site {
					continue
				}
				d, ok := n.core.Distance(a.id, b.id)
				all++
				if want := truth(a, b); !ok || d < want*3/4 || d > want*4/3 {
					bad++
				}
			}
		}
	}
	t.Logf("%d of %d predictions are off by more than a quarter or missing", bad, all)
	if bad > all/10 {
		t.Errorf("%d of %d predictions between sites are bad", bad, all)
	}
}

func TestSameSeedSameNetwork(t *testing.T) {
	t.Parallel()
	play := func() int64 {
		w := newNetwork(t, 9)
		for i := range 50 {
			w.add(i%4, 0, 0)
		}
		w.run(15 * time.Second)
		return w.bytes
	}
	if a, b := play(), play(); a != b {
		t.Errorf("two runs with one seed sent %d and %d bytes", a, b)
	}
}
