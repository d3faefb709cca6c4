package web

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"zorilla/node/api"
	"zorilla/vicinity"
)

// The map's drawing area, in units of its SVG.
const (
	mapWidth  = 480.0
	mapHeight = 340.0
	mapMargin = 34.0 // for dots that were pushed apart
	fitMargin = 62.0 // for the places themselves: there are circles around them
)

const (
	maxDots     = 400     // nodes on the map
	noSpread    = 0.01    // milliseconds: nodes nearer than that are at one place
	maxDistance = 5_000.0 // milliseconds; a coordinate beyond it is nonsense
)

type point struct{ x, y float64 }

func (p point) to(q point) float64 { return math.Hypot(q.x-p.x, q.y-p.y) }

func (p point) minus(q point) point { return point{p.x - q.x, p.y - q.y} }

// placed returns the nodes with a place of their own, or nil if these are too
// few for a map. nodes[0] is this node.
func placed(nodes []api.NodeInfo) []api.NodeInfo {
	if len(nodes) == 0 {
		return nil
	}
	dims := len(nodes[0].Position)
	var known []api.NodeInfo
	for _, n := range nodes {
		if sane(n.Position, dims) {
			known = append(known, n)
		}
	}
	if dims < 2 || !sane(nodes[0].Position, dims) || len(known) < 2 || 2*len(known) < len(nodes) {
		return nil
	}
	return known
}

func sane(position []float64, dims int) bool {
	if len(position) != dims || dims == 0 || dims > 16 {
		return false
	}
	for _, v := range position {
		if math.IsNaN(v) || math.Abs(v) > maxDistance {
			return false
		}
	}
	return true
}

// flatten projects positions onto the plane in which they differ most (their
// two principal components), so that the plane's distances are as near to the
// true ones as a plane's can be.
func flatten(positions [][]float64) []point {
	dims := len(positions[0])
	mean := make([]float64, dims)
	for _, p := range positions {
		for d, v := range p {
			mean[d] += v / float64(len(positions))
		}
	}
	cov := make([][]float64, dims)
	for a := range cov {
		cov[a] = make([]float64, dims)
		for b := range cov[a] {
			for _, p := range positions {
				cov[a][b] += (p[a] - mean[a]) * (p[b] - mean[b])
			}
		}
	}
	first := principal(cov, nil)
	second := principal(cov, first)
	points := make([]point, len(positions))
	for i, p := range positions {
		for d, v := range p {
			points[i].x += (v - mean[d]) * first[d]
			points[i].y += (v - mean[d]) * second[d]
		}
	}
	return points
}

// principal returns the direction of the largest spread at a right angle to
// avoid, by power iteration. Its sign is fixed, so that the map does not flip.
func principal(cov [][]float64, avoid []float64) []float64 {
	v := make([]float64, len(cov))
	for d := range v {
		v[d] = 1 / float64(d+1)
	}
	for range 60 {
		next := make([]float64, len(v))
		for a := range cov {
			for b := range cov[a] {
				next[a] += cov[a][b] * v[b]
			}
			next[a] += 1e-9 * v[a] // no spread at all: keep the direction
		}
		v = unit(next, avoid)
	}
	big := 0
	for d := range v {
		if math.Abs(v[d]) > math.Abs(v[big])+1e-9 {
			big = d
		}
	}
	if v[big] < 0 {
		for d := range v {
			v[d] = -v[d]
		}
	}
	return v
}

func unit(v, avoid []float64) []float64 {
	dot, length := 0.0, 0.0
	for d := range avoid {
		dot += v[d] * avoid[d]
	}
	for d := range v {
		if avoid != nil {
			v[d] -= dot * avoid[d]
		}
		length += v[d] * v[d]
	}
	if length = math.Sqrt(length); length > 0 {
		for d := range v {
			v[d] /= length
		}
	}
	return v
}

// fit scales points, in milliseconds, so that they fill the drawing area, and returns the
// length of a millisecond.
func fit(points []point) float64 {
	low, high := points[0], points[0]
	for _, p := range points {
		low = point{min(low.x, p.x), min(low.y, p.y)}
		high = point{max(high.x, p.x), max(high.y, p.y)}
	}
	scale := min((mapWidth-2*fitMargin)/max(noSpread, high.x-low.x), (mapHeight-2*fitMargin)/max(noSpread, high.y-low.y))
	for i, p := range points {
		points[i] = point{mapWidth/2 + (p.x-(low.x+high.x)/2)*scale, mapHeight/2 + (p.y-(low.y+high.y)/2)*scale}
	}
	return scale
}

// pullIn brings those that are far out of all proportion nearer, so that one
// with a nonsensical place does not make all others one dot.
func pullIn(points []point) {
	if len(points) < 8 {
		return
	}
	centre := point{median(points, func(p point) float64 { return p.x }), median(points, func(p point) float64 { return p.y })}
	limit := 0.0
	distances := make([]float64, len(points))
	for i, p := range points {
		distances[i] = centre.to(p)
	}
	slices.Sort(distances)
	limit = 3 * max(1, distances[len(distances)*9/10])
	for i, p := range points {
		if d := centre.to(p); d > limit {
			points[i] = point{centre.x + (p.x-centre.x)*limit/d, centre.y + (p.y-centre.y)*limit/d}
		}
	}
}

func median(points []point, of func(point) float64) float64 {
	values := make([]float64, len(points))
	for i, p := range points {
		values[i] = of(p)
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// relax moves dots towards their targets and pushes them away from each other
// until none hides another. The result depends on the order of the points only.
func relax(points, targets []point, steps int) {
	gap := min(110, max(13, 190/math.Sqrt(float64(len(points)))))
	for step := range steps {
		pull := .02
		if step > steps-10 { // the last word is that they do not hide each other
			pull = 0
		}
		for i := range points {
			points[i] = point{points[i].x + pull*(targets[i].x-points[i].x), points[i].y + pull*(targets[i].y-points[i].y)}
			for j := range i {
				d := points[i].to(points[j])
				if d >= gap {
					continue
				}
				angle := math.Atan2(points[i].y-points[j].y, points[i].x-points[j].x)
				if d < 0.01 {
					angle = float64(i) * 2.39996 // the golden angle spreads any number
				}
				push := (gap - d) / 2
				dx, dy := push*math.Cos(angle), push*math.Sin(angle)
				points[i] = inside(point{points[i].x + dx, points[i].y + dy})
				points[j] = inside(point{points[j].x - dx, points[j].y - dy})
			}
		}
	}
}

func inside(p point) point {
	return point{min(mapWidth-mapMargin, max(mapMargin, p.x)), min(mapHeight-mapMargin, max(mapMargin, p.y))}
}

// ringRTT are the round trips whose circles a target shows.
var ringRTT = [3]time.Duration{time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond}

// ringRadius is the distance from the centre for a round trip: logarithmic, as
// the latency bars.
func ringRadius(rtt time.Duration) float64 {
	if rtt <= 0 {
		return mapHeight/2 - 14
	}
	return 22 + float64(far(rtt))/100*(mapHeight/2-36)
}

// rings puts this node into the centre and the others around it, group by
// group, as far as their round trip is long.
func rings(nodes []api.NodeInfo) map[vicinity.ID]point {
	if len(nodes) == 0 {
		return nil
	}
	order := slices.Clone(nodes[1:])
	slices.SortFunc(order, func(a, b api.NodeInfo) int {
		return cmp.Or(cmp.Compare(groupOf(a), groupOf(b)), cmp.Compare(a.ID, b.ID))
	})
	at := map[vicinity.ID]point{nodes[0].ID: {mapWidth / 2, mapHeight / 2}}
	for k, n := range order {
		angle := 2*math.Pi*float64(k)/float64(len(order)) - math.Pi/2
		r := ringRadius(time.Duration(n.RTT))
		at[n.ID] = point{mapWidth/2 + r*math.Cos(angle), mapHeight/2 + r*math.Sin(angle)}
	}
	return at
}

// ruler chooses a round number of milliseconds whose line is 40 to 110 long.
func ruler(perMS float64) (length float64, text string) {
	for _, ms := range []float64{0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000} {
		if ms*perMS >= 40 {
			return ms * perMS, fmt.Sprintf("%g ms", ms)
		}
	}
	return 5000 * perMS, "5000 ms"
}
