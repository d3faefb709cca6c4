package sim

import (
	"testing"
	"time"
)

const ms = time.Millisecond

func start(t *testing.T, layout Layout, seed uint64) *Overlay {
	t.Logf("seed %d", seed)
	return NewOverlay(OverlayConfig{Layout: layout, Seed: seed, Noise: Usual()})
}

func TestLayouts(t *testing.T) {
	for _, l := range []Layout{SixSites(400, false), SixSites(400, true), Plane(400, 40, 1), Plane(400, 100, 1), OneSite(400)} {
		sum := 0
		for a, size := range l.Sizes {
			sum += size
			for b := range a {
				if l.RTT[a][b] != l.RTT[b][a] || l.RTT[a][b] < ms {
					t.Errorf("sites %d and %d are %v and %v apart", a, b, l.RTT[a][b], l.RTT[b][a])
				}
			}
		}
		if sum != 400 {
			t.Errorf("%d hosts at %d sites, want 400", sum, len(l.Sizes))
		}
	}
	if s := SixSites(400, true).Sizes; s[0] != 160 || s[5] != 16 {
		t.Errorf("uneven sites %v", s)
	}
}

func TestOneSeedOneRun(t *testing.T) {
	run := func() Traffic {
		o := start(t, SixSites(60, true), 3)
		o.Run(5 * time.Second)
		o.Crash(1, 2)
		o.Add(2)
		o.Run(15 * time.Second)
		return o.Traffic()
	}
	if a, b := run(), run(); a != b || a.Packets == 0 {
		t.Errorf("two runs of one seed sent %+v and %+v", a, b)
	}
}

func TestMeasuredIsTrue(t *testing.T) {
	o := start(t, SixSites(60, false), 4)
	o.Run(20 * time.Second)
	for i := range o.Len() {
		for _, nb := range o.Neighbours(i) {
			k, _ := o.Index(nb.ID)
			if want := o.RTT(i, k); nb.RTT < want || nb.RTT > want*5/4+ms/2 {
				t.Errorf("node %d measures %v to node %d, which is %v away", i, nb.RTT, k, want)
			}
		}
	}
	if n := o.Reached(0); n != o.Len() {
		t.Errorf("a flood reaches %d of %d nodes", n, o.Len())
	}
}

func TestMembersComeAndGo(t *testing.T) {
	o := start(t, SixSites(60, false), 5)
	o.Run(10 * time.Second)
	i := o.Add(3)
	o.Run(5 * time.Second)
	if len(o.Neighbours(i)) < 8 {
		t.Errorf("the newcomer has %d neighbours", len(o.Neighbours(i)))
	}
	o.Crash(0, 1)
	o.Leave(2)
	o.hosts[3].down = true // and nobody is ever told
	o.Run(30 * time.Second)
	if n := o.Reached(4); n != 57 {
		t.Errorf("a flood reaches %d nodes, want 57", n)
	}
	for k := range o.Len() {
		for _, nb := range o.Neighbours(k) {
			if to, _ := o.Index(nb.ID); o.Up(k) && !o.Up(to) && to != 3 { // nobody says that 3 is dead: it is asked again
				t.Errorf("node %d keeps a link to %d, which is gone", k, to)
			}
		}
	}
	o.Revive(0)
	o.Crash(4)
	o.Run(time.Second)
	o.Revive(4)
	o.Run(10 * time.Second)
	if n := o.Reached(0); n != 58 || o.roster[0].Len() != 59 { // who has not looked knows of 3
		t.Errorf("a flood reaches %d nodes, want 58, of %d members", n, o.roster[0].Len())
	}
}

func TestCutSitesForgetEachOtherAndReturn(t *testing.T) {
	o := start(t, SixSites(60, false), 6)
	o.Run(10 * time.Second)
	o.Cut(0, 1)
	o.Run(20 * time.Second)
	if a, b := o.Reached(0), o.Reached(59); a != 20 || b != 40 {
		t.Errorf("floods reach %d and %d nodes of the parts, want 20 and 40", a, b)
	}
	o.Heal()
	o.Run(10 * time.Second)
	if n := o.Reached(0); n != 60 {
		t.Errorf("after healing a flood reaches %d nodes", n)
	}
}

func TestSendCarriesOverTheNetwork(t *testing.T) {
	o := NewOverlay(OverlayConfig{Layout: SixSites(12, false), Seed: 1, Idle: true})
	var at time.Duration
	o.Send(0, 11, func() { at = o.Elapsed() })
	o.Run(time.Second)
	if want := o.RTT(0, 11) / 2; at != want {
		t.Errorf("arrived after %v, want %v", at, want)
	}
	o.Busy(1, time.Minute, 40*ms)
	late := time.Duration(0)
	for range 100 {
		begin := o.Elapsed()
		o.Send(0, 1, func() { late = max(late, o.Elapsed()-begin) })
		o.Run(time.Second)
	}
	if late < 30*ms || late > 41*ms {
		t.Errorf("a busy node is at most %v late, want about 40ms", late)
	}
	o.SetNoise(Noise{Loss: 0.5, Doubled: 1})
	arrived, promised := 0, 0
	for range 1000 {
		if o.Send(0, 5, func() { arrived++ }) {
			promised++
		}
	}
	o.Run(time.Second)
	if arrived != 2*promised || promised < 400 || promised > 600 {
		t.Errorf("%d arrivals of %d packets, want each twice and half of 1000", arrived, promised)
	}
	o.Cut(0)
	o.hosts[3].down = true // and nobody is ever told
	if o.Send(0, 11, func() {}) || o.Send(4, 3, func() {}) {
		t.Error("a packet passes a cut, or reaches a dead node")
	}
	if o.Traffic() != (Traffic{}) {
		t.Errorf("idle cores sent %+v", o.Traffic())
	}
}

func BenchmarkTwoThousandNodes(b *testing.B) {
	for b.Loop() {
		o := NewOverlay(OverlayConfig{Layout: Plane(2000, 40, 1), Seed: 1, Noise: Usual()})
		o.Run(10 * time.Second)
		b.ReportMetric(float64(o.Traffic().Packets)/2000/10, "packets/s/node")
	}
}
