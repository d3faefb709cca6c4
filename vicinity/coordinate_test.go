package vicinity

import (
	"math"
	"testing"
	"time"
)

func TestCoordinateSurvivesTheWire(t *testing.T) {
	in := Coordinate{Vec: [dimensions]float32{1, 2, 3, 4, -5, 0.5, 0, 1e-9}, Error: 0.25, Adjustment: -0.5, Height: 0.125}
	out, ok := coordinateFromWire(in.wire())
	if !ok || out != in {
		t.Errorf("got %v, %v", out, ok)
	}
}

func TestDistanceAndPosition(t *testing.T) {
	a := Coordinate{Vec: [dimensions]float32{0.003}}
	b := Coordinate{Vec: [dimensions]float32{0, 0.004}}
	if d := a.Distance(b); d < 4999*time.Microsecond || d > 5001*time.Microsecond {
		t.Errorf("distance %v, want 5ms", d)
	}
	if p := b.Position(); len(p) != dimensions || math.Abs(p[1]-4) > 1e-6 {
		t.Errorf("position %v", p)
	}
}

// Liars at the edge of what is accepted must not make the own place invalid.
func TestPlaceStaysValidAmongLiars(t *testing.T) {
	p := newPlace(seeded(1, 1))
	for i := range 2000 {
		c := Coordinate{Error: 0, Height: maxPlace, Adjustment: -maxPlace}
		for d := range c.Vec {
			c.Vec[d] = maxPlace * float32(1-2*((i>>d)&1))
		}
		p.move(c, time.Duration(i%3)*maxRTT/2)
		if !p.here.Valid() {
			t.Fatalf("after %d lies: %+v", i, p.here)
		}
	}
}

func TestSmallestSamplesCount(t *testing.T) {
	ms := func(f float64) time.Duration { return time.Duration(f * float64(time.Millisecond)) }
	var p peer
	for _, x := range []struct{ sample, want float64 }{
		{20, 20}, {1, 10.5}, {30, 10.5}, {3, 2}, {1, 1}, {50, 1}, {50, 1}, {50, 1}, {50, 1}, // 20 is out of the window
		{50, 2}, {50, 2}, {50, 25.5}, {50, 50}, // so are both of 1, and 3
	} {
		p.sample(0, ms(x.sample))
		if p.rtt != ms(x.want) {
			t.Fatalf("after sample %d, %v ms: %v, want %v ms", p.count, x.sample, p.rtt, x.want)
		}
	}
}

func TestRoster(t *testing.T) {
	var r Roster
	if r.Has(testID(0)) || r.Remove(testID(0)) || r.Len() != 0 {
		t.Fatal("the zero roster is not empty")
	}
	for i := range 4 {
		if !r.Add(testID(i)) || r.Add(testID(i)) {
			t.Fatal("Add does not tell new from known")
		}
	}
	if !r.Remove(testID(1)) || r.Has(testID(1)) || r.Len() != 3 {
		t.Fatal("Remove does not remove")
	}
	seen := make(map[ID]bool)
	for i := range r.Len() {
		seen[r.At(i)] = true
	}
	if len(seen) != 3 || !seen[testID(0)] || !seen[testID(2)] || !seen[testID(3)] {
		t.Fatalf("left are %v", seen)
	}
}
