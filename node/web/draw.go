package web

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"zorilla/node/api"
	"zorilla/vicinity"
)

// mapView is the picture of the members. Numbers are ready for SVG attributes.
type mapView struct {
	Dots    []dot     `json:"dots"`
	Lines   []line    `json:"lines"`
	Circles []circle  `json:"circles"` // circles of equal round trip, when there are no coordinates
	Halos   []circle  `json:"halos"`   // clusters, when there are
	Places  []legend  `json:"places"`
	Ruler   rulerView `json:"ruler"`
	Note    string    `json:"note"`
}

type dot struct {
	Key   string  `json:"key"`
	X     float64 `json:"x"`
	Y     float64 `json:"y"`
	R     float64 `json:"r"`
	Tone  string  `json:"tone"` // of its cluster
	Kind  string  `json:"kind"` // "self" or "other"; on a job's map "origin", "offer", "decline" or "silent"
	Load  string  `json:"load"` // "unknown", "free", "some", "most" or "full"
	Wave  int     `json:"wave"` // on a job's map: the shown flood that reached it first, from 1; 0 = none
	Hop   int     `json:"hop"`  // and how many links it went
	Name  string  `json:"name"` // written below the dot, if there is room
	NameY float64 `json:"nameY"`
	Title string  `json:"title"`
}

type line struct {
	Key   string  `json:"key"`
	X1    float64 `json:"x1"`
	Y1    float64 `json:"y1"`
	X2    float64 `json:"x2"`
	Y2    float64 `json:"y2"`
	Kind  string  `json:"kind"`  // "near", "far"
	Whose string  `json:"whose"` // "own", "other"
}

type circle struct {
	Key   string  `json:"key"`
	X     float64 `json:"x"`
	Y     float64 `json:"y"`
	R     float64 `json:"r"`
	Tone  string  `json:"tone"`
	Wave  int     `json:"wave"`
	Text  string  `json:"text"`
	TextY float64 `json:"textY"`
}

type legend struct {
	Key   string `json:"key"`
	Name  string `json:"name"`
	Tone  string `json:"tone"`
	Nodes string `json:"nodes"`
	Sites string `json:"sites"` // the site labels in it, if they are not its name
	count int
}

type rulerView struct {
	X2   float64 `json:"x2"`
	Text string  `json:"text"`
	None bool    `json:"none"`
}

// Limits of the map.
const (
	maxLines   = 800
	maxLabels  = 14 // names of clusters
	maxLegends = 12
)

// num is v for an attribute: a tenth of a unit is enough.
func num(v float64) float64 { return math.Round(v*10) / 10 }

// drawMap draws the nearest members at their places; nodes[0] is this node.
func drawMap(nodes []api.NodeInfo, tones map[string]string, at sheet) mapView {
	left := len(nodes) - maxDots
	nodes = nodes[:min(len(nodes), maxDots)]
	v := mapView{Ruler: rulerView{None: at.perMS == 0}}
	if at.perMS > 0 {
		length, text := ruler(at.perMS)
		v.Ruler = rulerView{X2: num(16 + length), Text: text}
		v.Halos = halos(nodes, at, tones)
		v.Note = "Distance is round-trip time, from network coordinates."
		if mapWidth < at.perMS { // what is pushed apart is not to scale any more
			v.Ruler.None, v.Note = true, "All of them are within a millisecond of each other."
		}
	} else {
		for _, rtt := range ringRTT {
			v.Circles = append(v.Circles, circle{Key: rtt.String(), X: num(mapWidth / 2), Y: num(mapHeight / 2), R: num(ringRadius(rtt)),
				Text: fmt.Sprintf("%d ms", rtt.Milliseconds()), TextY: num(mapHeight/2 - ringRadius(rtt) - 3)})
		}
		v.Note = "Distance from the centre is round-trip time; directions mean nothing."
	}
	for _, n := range nodes {
		if p, ok := at.points[n.ID]; ok {
			v.Dots = append(v.Dots, drawDot(n, p, tones[groupOf(n)], len(nodes)))
		}
	}
	v.Lines = drawLines(nodes, at)
	v.Places = legends(nodes, tones)
	if missing := len(nodes) - len(v.Dots); missing > 0 {
		v.Note += fmt.Sprintf(" %s no coordinate yet.", plural(missing, "node has", "nodes have"))
	}
	if left > 0 {
		v.Note += fmt.Sprintf(" The nearest %d nodes are drawn.", maxDots)
	}
	return v
}

func drawDot(n api.NodeInfo, p point, tone string, nodes int) dot {
	d := dot{Key: string(n.ID), X: num(p.x), Y: num(p.y), R: num(max(3.4, 7.5-float64(nodes)/40)), Tone: tone, Kind: "other", Load: load(n),
		NameY: num(p.y + 19), Title: fmt.Sprintf("%s · %s · %s · %s", nodeName(n), siteName(n.Site), latency(time.Duration(n.RTT)), busy(n))}
	if n.Self {
		d.NameY, d.R = num(p.y+25), max(d.R, 5)
		d.Kind, d.Title = "self", fmt.Sprintf("%s · %s · this node · %s", nodeName(n), siteName(n.Site), busy(n))
	}
	if n.Self || nodes <= 14 {
		d.Name = label(nodeName(n), 12)
	}
	return d
}

// load is the class of a node's load.
func load(n api.NodeInfo) string {
	switch {
	case !n.Loaded() || n.Slots <= 0:
		return "unknown"
	case n.Busy <= 0:
		return "free"
	case n.Busy >= n.Slots:
		return "full"
	case 2*n.Busy <= n.Slots:
		return "some"
	}
	return "most"
}

// busy tells a node's load in words, and if it takes no new workers.
func busy(n api.NodeInfo) string {
	if !n.Loaded() {
		return plural(n.Slots, "slot", "slots")
	}
	text := fmt.Sprintf("%d of %s busy", n.Busy, plural(n.Slots, "slot", "slots"))
	if n.State != "" {
		text += ", " + label(n.State, 20)
	}
	return text + n.Because(label(n.Why, textLimit))
}

// drawLines draws the links that are known, this node's own last, that is, on
// top.
func drawLines(nodes []api.NodeInfo, at sheet) []line {
	var out []line
	seen := make(map[string]bool)
	add := func(a, b vicinity.ID, kind, whose string) {
		p, ok := at.points[a]
		q, ok2 := at.points[b]
		key := fmt.Sprintf("%.8s %.8s", min(a, b), max(a, b))
		if !ok || !ok2 || a == b || seen[key] || len(out) >= maxLines {
			return
		}
		seen[key] = true
		out = append(out, line{Key: key, X1: num(p.x), Y1: num(p.y), X2: num(q.x), Y2: num(q.y), Kind: kind, Whose: whose})
	}
	for _, n := range nodes {
		if n.Neighbour == "near" || n.Neighbour == "far" {
			add(nodes[0].ID, n.ID, n.Neighbour, "own")
		}
	}
	for _, n := range nodes[1:] {
		for _, l := range n.Links {
			if l.Kind == "near" || l.Kind == "far" {
				add(n.ID, l.ID, l.Kind, "other")
			}
		}
	}
	slices.Reverse(out)
	return out
}

// groupTones gives every cluster a colour: this node's own the first, the
// others by name; there are eight, then they come again.
func groupTones(nodes []api.NodeInfo) map[string]string {
	var groups []string
	for _, n := range nodes {
		groups = append(groups, groupOf(n))
	}
	own := groupOf(nodes[0])
	slices.SortFunc(groups, func(a, b string) int {
		return cmp.Or(cmp.Compare(b2i(a != own), b2i(b != own)), cmp.Compare(a, b))
	})
	tones := make(map[string]string)
	for i, group := range slices.Compact(groups) {
		tones[group] = "site" + strconv.Itoa(i%8)
	}
	return tones
}

func groupName(group string) string { return cmp.Or(label(group, nameLimit), "no site") }

// halos are soft circles around the nodes of each cluster that has several.
func halos(nodes []api.NodeInfo, at sheet, tones map[string]string) []circle {
	groups := make(map[string][]point)
	for _, n := range nodes {
		if p, ok := at.points[n.ID]; ok && groupOf(n) != "" {
			groups[groupOf(n)] = append(groups[groupOf(n)], p)
		}
	}
	if len(groups) == 1 && len(nodes) == len(groups[groupOf(nodes[0])]) {
		return nil // one circle around all tells nothing
	}
	var out []circle
	size := make(map[string]int)
	for group, points := range groups {
		if len(points) < 2 {
			continue
		}
		centre, r := middle(points), 0.0
		for _, p := range points {
			r = max(r, centre.to(p))
		}
		key := label(group, nameLimit)
		size[key] = len(points)
		out = append(out, circle{Key: key, X: num(centre.x), Y: num(centre.y), R: num(r + 20), Tone: tones[group]})
	}
	slices.SortFunc(out, func(a, b circle) int {
		return cmp.Or(cmp.Compare(size[b.Key], size[a.Key]), cmp.Compare(a.Key, b.Key))
	})
	nameHalos(out)
	return out
}

// nameHalos writes the names of the largest clusters above them, or below where
// others are above, as long as they do not hide each other.
func nameHalos(halos []circle) {
	type box struct{ x, y, w float64 }
	var taken []box
	for i := range halos {
		h := &halos[i]
		name := label(h.Key, 18)
		at := box{h.X, max(12, h.Y-h.R-5), float64(len([]rune(name)))*3.4 + 4}
		if h.Y > mapHeight/2 {
			at.y = min(mapHeight-6, h.Y+h.R+13)
		}
		hidden := slices.ContainsFunc(taken, func(b box) bool { return math.Abs(b.x-at.x) < b.w+at.w && math.Abs(b.y-at.y) < 13 })
		if !hidden && len(taken) < maxLabels {
			h.Text, h.TextY = name, num(at.y)
			taken = append(taken, at)
		}
	}
}

// legends lists the clusters with the site labels that their nodes have.
func legends(nodes []api.NodeInfo, tones map[string]string) []legend {
	counts, sites := make(map[string]int), make(map[string]map[string]int)
	for _, n := range nodes {
		group := groupOf(n)
		counts[group]++
		if sites[group] == nil {
			sites[group] = make(map[string]int)
		}
		if n.Site != "" {
			sites[group][label(n.Site, 20)]++
		}
	}
	if len(counts) == 1 && len(sites[groupOf(nodes[0])]) == 0 {
		return nil // nothing to tell apart
	}
	var out []legend
	for group, n := range counts {
		l := legend{Key: "group " + label(group, nameLimit), Name: groupName(group), Tone: tones[group], Nodes: strconv.Itoa(n), count: n}
		if within := sites[group]; len(within) > 1 || len(within) == 1 && within[label(group, 20)] == 0 {
			l.Sites = siteList(within)
		}
		out = append(out, l)
	}
	slices.SortFunc(out, func(a, b legend) int {
		return cmp.Or(cmp.Compare(b2i(a.Tone != "site0"), b2i(b.Tone != "site0")), cmp.Compare(b.count, a.count), cmp.Compare(a.Key, b.Key))
	})
	return out[:min(len(out), maxLegends)]
}

// siteList writes the most frequent site labels of a cluster.
func siteList(sites map[string]int) string {
	var names []string
	for name := range sites {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(sites[b], sites[a]), cmp.Compare(a, b)) })
	more := ""
	if len(names) > 3 {
		names, more = names[:3], ", …"
	}
	return "site " + strings.Join(names, ", ") + more
}
