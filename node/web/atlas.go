package web

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"time"

	"zorilla/node/api"
	"zorilla/vicinity"
)

const (
	// keepMap is how long a drawing is good enough, as long as the members are
	// the same: placing hundreds of dots takes some milliseconds.
	keepMap = 2 * time.Second
	// shift is how far off, in units of the drawing, a dot may be.
	shift = 2
	// noise is how much coordinates of nodes that are near to each other wander, in milliseconds.
	noise = 0.1
)

// atlas keeps the map as it was, so that it does not turn over, or shake, when
// coordinates move a little.
type atlas struct {
	mu     sync.Mutex // guards what follows
	at     time.Time
	sheet  sheet
	plane  map[vicinity.ID]point // in milliseconds
	aims   map[vicinity.ID]point // where the nodes belong
	points map[vicinity.ID]point // as drawn, that is, moved apart
}

// sheet is where the nodes are on the map.
type sheet struct {
	points map[vicinity.ID]point
	perMS  float64 // length of a millisecond; 0 = a target around nodes[0], no true map
}

// place gives every node that can be placed a point in the drawing area. With
// network coordinates (of this node and at least half of the others) distances
// on the map are round trips; nodes without a coordinate are left out. Else the
// map is a target around this node. nodes[0] is this node.
func (a *atlas) place(nodes []api.NodeInfo, now time.Time) sheet {
	nodes = nodes[:min(len(nodes), maxDots)]
	a.mu.Lock()
	defer a.mu.Unlock()
	if now.Sub(a.at) < keepMap && a.covers(nodes) {
		return a.sheet
	}
	known := placed(nodes)
	if known == nil {
		a.sheet, a.at, a.plane, a.aims, a.points = sheet{points: rings(nodes)}, now, nil, nil, nil
		return a.sheet
	}
	// In the order of their IDs, since that of round trips changes.
	slices.SortFunc(known, func(x, y api.NodeInfo) int { return cmp.Compare(x.ID, y.ID) })
	positions := make([][]float64, len(known))
	for k, n := range known {
		positions[k] = n.Position
	}
	plane := flatten(positions)
	a.turn(known, plane)
	a.plane = byID(known, plane)
	targets := slices.Clone(plane)
	pullIn(targets)
	perMS := fit(targets)
	a.at = now
	if a.still(known, targets, max(shift, noise*perMS)) {
		return a.sheet
	}
	points := slices.Clone(targets)
	steps := 30
	for k, n := range known {
		if old, ok := a.points[n.ID]; ok && old.to(targets[k]) < mapWidth/4 {
			points[k] = old
		} else {
			steps = 90
		}
	}
	relax(points, targets, steps)
	a.aims, a.points = byID(known, targets), byID(known, points)
	a.sheet = sheet{points: a.points, perMS: perMS}
	return a.sheet
}

// still reports whether the last drawing is as good as a new one.
func (a *atlas) still(nodes []api.NodeInfo, targets []point, shift float64) bool {
	for k, n := range nodes {
		if aim, ok := a.aims[n.ID]; !ok || aim.to(targets[k]) > shift {
			return false
		}
	}
	return len(nodes) == len(a.aims)
}

func byID(nodes []api.NodeInfo, points []point) map[vicinity.ID]point {
	m := make(map[vicinity.ID]point, len(nodes))
	for k, n := range nodes {
		m[n.ID] = points[k]
	}
	return m
}

// covers reports whether the last drawing shows these nodes.
func (a *atlas) covers(nodes []api.NodeInfo) bool {
	shown := 0
	for _, n := range nodes {
		if _, ok := a.sheet.points[n.ID]; ok {
			shown++
		}
	}
	if a.sheet.perMS == 0 {
		return shown == len(nodes) && shown == len(a.sheet.points) && placed(nodes) == nil
	}
	return shown == len(a.sheet.points) && shown == len(placed(nodes))
}

// turn turns and mirrors the plane so that the nodes lie as near as can be to
// where they were: what the coordinates mean are distances only.
func (a *atlas) turn(nodes []api.NodeInfo, plane []point) {
	var was, is []point
	for k, n := range nodes {
		if p, ok := a.plane[n.ID]; ok {
			was, is = append(was, p), append(is, plane[k])
		}
	}
	if len(was) < 2 {
		return
	}
	from, to := middle(is), middle(was)
	var straight, mirrored point // sums whose direction is the angle and whose length says how well it fits
	for k := range was {
		p, q := was[k].minus(to), is[k].minus(from)
		straight.x += q.x*p.x + q.y*p.y
		straight.y += q.x*p.y - q.y*p.x
		mirrored.x += q.x*p.x - q.y*p.y
		mirrored.y += q.x*p.y + q.y*p.x
	}
	best, flip := straight, 1.0
	if math.Hypot(mirrored.x, mirrored.y) > math.Hypot(straight.x, straight.y) {
		best, flip = mirrored, -1.0
	}
	sin, cos := math.Sincos(math.Atan2(best.y, best.x))
	for k, p := range plane {
		q := p.minus(from)
		q.y *= flip
		plane[k] = point{to.x + q.x*cos - q.y*sin, to.y + q.x*sin + q.y*cos}
	}
}

func middle(points []point) point {
	var m point
	for _, p := range points {
		m.x += p.x / float64(len(points))
		m.y += p.y / float64(len(points))
	}
	return m
}
