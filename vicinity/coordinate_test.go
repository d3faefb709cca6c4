package vicinity

import (
	"math"
	"testing"
	"time"
)

func TestDistanceAndPosition(t *testing.T) {
	a := Coordinate{Vec: [dimensions]float64{0.003}, Height: 0.001}
	b := Coordinate{Vec: [dimensions]float64{0, 0.004}}
	if d := a.Distance(b); d < 5999*time.Microsecond || d > 6001*time.Microsecond {
		t.Errorf("distance %v, want 6ms", d)
	}
	if p := b.Position(); len(p) != dimensions || math.Abs(p[1]-4) > 1e-6 {
		t.Errorf("position %v", p)
	}
	if d := a.Distance(Coordinate{Vec: [dimensions]float64{1e9}}); d != maxRTT {
		t.Errorf("distance %v, want no more than %v", d, maxRTT)
	}
}

// A place found by round trips alone may be a mirror image of the true one, or
// be drawn away by a wrong witness; mostly it is not.
func TestLocateFindsThePlace(t *testing.T) {
	const seeds = 200
	right, rightBeside := 0, 0
	for seed := range uint64(seeds) {
		rnd := seeded(seed, 9)
		somewhere := func() (c Coordinate) {
			for d := range c.Vec {
				c.Vec[d] = 0.03 * rnd.Float64()
			}
			return c
		}
		truth := somewhere()
		list := make([]witness, maxLandmarks)
		for i := range list {
			at := somewhere()
			list[i] = witness{at: at, rtt: truth.flat(at)}
		}
		if locate(list).flat(truth) < 0.001 {
			right++
		}
		list[rnd.IntN(maxLandmarks)].rtt += 0.02 // one of them was slow
		if locate(list).flat(truth) < 0.005 {
			rightBeside++
		}
	}
	t.Logf("of %d places %d are found, %d beside a wrong witness", seeds, right, rightBeside)
	if right < seeds*8/10 || rightBeside < seeds*6/10 {
		t.Errorf("of %d places only %d are found, %d beside a wrong witness", seeds, right, rightBeside)
	}
}

// All at one place, or at none: no division by zero, nothing infinite.
func TestLocateStaysFinite(t *testing.T) {
	for _, rtt := range []float64{0, 1e-6, 10} {
		list := make([]witness, maxLandmarks)
		for i := range list {
			list[i].rtt = rtt
		}
		for d, v := range locate(list).Vec {
			if math.IsNaN(v) || math.Abs(v) > 20 {
				t.Errorf("round trips of %v s: axis %d is %v", rtt, d, v)
			}
		}
	}
}
