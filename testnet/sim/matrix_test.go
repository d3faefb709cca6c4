package sim

import (
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"
)

func example(t *testing.T) *Matrix {
	t.Helper()
	f, err := os.Open("testdata/detours.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, err := ReadMatrix(f)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestMatrix(t *testing.T) {
	m := example(t)
	for _, n := range []int{5, 12, 30} {
		l, paths := m.Layout(n, 3)
		o := NewOverlay(OverlayConfig{Layout: l, Paths: paths, Seed: 3, Idle: true})
		if o.Len() != n || len(l.Sizes) != min(n, m.Len()) {
			t.Fatalf("%d hosts at %d places, want %d", o.Len(), len(l.Sizes), n)
		}
		uneven := false
		for a := range n {
			for b := range a {
				there, back := way(o, a, b), way(o, b, a)
				if d := there + back - o.RTT(a, b); d < -2 || d > 2 {
					t.Errorf("%v there and %v back, but %v in all", there, back, o.RTT(a, b))
				}
				if there > 3*back/2 {
					uneven = true
				}
				if there < o.RTT(a, b)/4 {
					t.Errorf("one way of %v takes %v", o.RTT(a, b), there)
				}
			}
		}
		if !uneven {
			t.Error("both ways of all pairs take as long")
		}
	}
	if d := m.between(0, 11); d != m.most {
		t.Errorf("a pair that was not measured is %v apart, want %v", d, m.most)
	}
}

func TestMatrixAtTimes(t *testing.T) {
	m, err := ReadMatrix(strings.NewReader("0 10\n10 0\n"), strings.NewReader("0,20\n20,0\n"), strings.NewReader("0\t40\n0\t0\n"))
	if err != nil {
		t.Fatal(err)
	}
	if d := m.between(0, 1); d != 20*ms {
		t.Errorf("the median is %v, want 20 ms", d)
	}
	_, paths := m.Layout(2, 1)
	seen := map[time.Duration]bool{}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		seen[(paths.Way(rnd, 0, 1) + paths.Way(rnd, 1, 0)).Round(ms)] = true
	}
	if len(seen) < 3 {
		t.Errorf("round trips at three times: %v", seen)
	}
	for name, text := range map[string]string{
		"empty": "", "one host": "0\n", "not square": "0 1 2\n1 0 2\n", "ragged": "0 1\n1\n",
	} {
		if _, err := ReadMatrix(strings.NewReader(text)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// Ways that were measured are taken as they are, each by itself.
func TestMatrixOfWays(t *testing.T) {
	var sources []io.Reader
	for _, name := range []string{"testdata/ways-1.txt", "testdata/ways-2.txt"} {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		sources = append(sources, f)
	}
	m, err := ReadWays(sources...)
	if err != nil {
		t.Fatal(err)
	}
	if there, back := m.way(0, 4), m.way(4, 0); there != 31200*time.Microsecond || back != 15200*time.Microsecond || m.between(0, 4) != there+back {
		t.Errorf("%v there and %v back, %v in all", there, back, m.between(0, 4))
	}
	if d := m.way(1, 5); d != m.way(5, 1) {
		t.Errorf("a way that was not measured takes %v, back %v", d, m.way(5, 1))
	}
	if m.between(0, 6) < m.between(0, 2)+m.between(2, 6) {
		t.Error("no way is shorter by way of others")
	}
	l, paths := m.Layout(7, 3)
	o := NewOverlay(OverlayConfig{Layout: l, Paths: paths, Seed: 3, Live: true, Idle: true})
	seen, uneven := map[time.Duration]bool{}, 0
	for a := range 7 {
		for b := range 7 {
			for range 20 {
				seen[way(o, a, b)] = true
			}
			if there, back := paths.Way(nil, a, b), paths.Way(nil, b, a); there > back*3/2 && a != b {
				uneven++
			}
			if d := paths.Way(nil, a, b) + paths.Way(nil, b, a) - o.RTT(a, b); a != b && (d > time.Millisecond || d < -time.Millisecond) {
				t.Errorf("both ways take %v longer than the round trip", d)
			}
		}
	}
	if uneven < 4 || len(seen) < 60 {
		t.Errorf("%d ways are longer than the ways back, %d delays are seen at two times", uneven, len(seen))
	}
}

func TestGuardedNodes(t *testing.T) {
	o := NewOverlay(OverlayConfig{Layout: OneSite(2), Seed: 1, Idle: true, Guarded: func(i int) bool { return i == 1 }})
	got := 0
	arrive := func() { got++ }
	if o.Send(0, 1, arrive) {
		t.Error("a stranger's packet passes")
	}
	o.Send(1, 0, arrive)
	o.Run(30 * time.Second)
	if !o.Send(0, 1, arrive) {
		t.Error("an answer does not pass")
	}
	o.Run(31 * time.Second)
	if o.Send(0, 1, arrive) || got != 2 {
		t.Errorf("%d packets came; after a minute the way is closed again", got)
	}
}

func TestSwappedNodes(t *testing.T) {
	o := NewOverlay(OverlayConfig{Layout: Line(30, 30, 2*ms), Seed: 1, Idle: true})
	before := o.RTT(0, 5)
	o.Swap(5, 29)
	if o.RTT(0, 29) != before || o.RTT(0, 5) < 50*ms {
		t.Errorf("round trips of %v and %v, were %v", o.RTT(0, 29), o.RTT(0, 5), before)
	}
}

func TestHomeLayout(t *testing.T) {
	l := Home(100, 1)
	if l.Sizes[0] != 15 || l.Sizes[1] != 15 || len(l.Sizes) != 72 || l.RTT[0][1] != 200*time.Microsecond {
		t.Errorf("%d sites, of %d and %d hosts", len(l.Sizes), l.Sizes[0], l.Sizes[1])
	}
}
