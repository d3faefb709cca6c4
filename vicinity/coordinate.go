package vicinity

import (
	"math"
	"slices"
	"time"
)

const dimensions = 4

// Coordinate is a place in network space: the predicted round trip between two
// nodes is the distance of their vectors and both heights, which stand for the
// way from each into the network. All lengths are in seconds.
type Coordinate struct {
	Vec    [dimensions]float64
	Height float64
}

// Distance returns the predicted round trip between two places.
func (c Coordinate) Distance(d Coordinate) time.Duration {
	return min(max(time.Duration((c.flat(d)+c.Height+d.Height)*float64(time.Second)), minRTT), maxRTT)
}

func (c Coordinate) flat(d Coordinate) float64 {
	sum := 0.0
	for i := range c.Vec {
		x := c.Vec[i] - d.Vec[i]
		sum += x * x
	}
	return math.Sqrt(sum)
}

// Position returns the vector in milliseconds, for maps.
func (c Coordinate) Position() []float64 {
	p := make([]float64, dimensions)
	for i, v := range c.Vec {
		p[i] = v * 1000
	}
	return p
}

// witness is a known place, with the round trip that was measured to it.
type witness struct {
	at  Coordinate
	rtt float64 // seconds
}

// weight makes near witnesses count more: they know the place more exactly.
func (w *witness) weight() float64 { return 1 / (w.rtt + 0.002) }

// pull returns the place to which the witnesses would have c moved: the mean
// of where each of them sees it, in its direction at the measured distance. If
// strict, a witness that is much farther off than most counts little.
func (c Coordinate) pull(list []witness, strict bool) Coordinate {
	off := make([]float64, len(list)) // too near by
	for i := range list {
		off[i] = list[i].rtt - c.flat(list[i].at) - c.Height - list[i].at.Height
	}
	bound := 3*medianOf(off) + 1e-4
	var move [dimensions]float64
	all := 0.0
	for i := range list {
		w := &list[i]
		weight := w.weight()
		if far := math.Abs(off[i]); strict && far > bound {
			weight *= bound / far * bound / far
		}
		all += weight
		flat := c.flat(w.at)
		for d := range move {
			if flat > 1e-9 {
				move[d] += weight * off[i] * (c.Vec[d] - w.at.Vec[d]) / flat
			} else if d == 0 { // at the very place: any direction will do
				move[d] += weight * off[i]
			}
		}
	}
	for d := range move {
		c.Vec[d] += 1.5 * move[d] / all // farther than to the mean: that is faster
	}
	return c
}

// locate returns the place that meets the round trips to the witnesses best,
// begun near those that are nearest.
func locate(list []witness) Coordinate {
	var c Coordinate
	all := 0.0
	for i := range list {
		w := list[i].weight() * list[i].weight()
		for d := range c.Vec {
			c.Vec[d] += w * list[i].at.Vec[d]
		}
		all += w
	}
	for d := range c.Vec {
		c.Vec[d] /= all
	}
	for i := range 60 {
		c = c.pull(list, i >= 20)
	}
	return c
}

// medianOf returns the median of the absolute values of a short list.
func medianOf(list []float64) float64 {
	var room [maxLandmarks]float64
	abs := room[:0]
	for _, x := range list {
		abs = append(abs, math.Abs(x))
	}
	slices.Sort(abs)
	return abs[len(abs)/2]
}
