package web

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"zorilla/jobs"
	"zorilla/node/api"
)

// mapView is the picture of the members. Numbers are ready for SVG attributes.
type mapView struct {
	Dots    []dot     `json:"dots"`
	Lines   []line    `json:"lines"`
	Circles []circle  `json:"circles"` // circles of equal round trip, when there are no coordinates
	Halos   []circle  `json:"halos"`   // sites, when there are
	Places  []legend  `json:"places"`
	Ruler   rulerView `json:"ruler"`
	Note    string    `json:"note"`
}

type dot struct {
	Key   string  `json:"key"`
	X     float64 `json:"x"`
	Y     float64 `json:"y"`
	R     float64 `json:"r"`
	Tone  string  `json:"tone"`
	Kind  string  `json:"kind"` // "self" or "other"; for a flood's dots "offer" or "decline"
	Name  string  `json:"name"` // written below the dot, if there is room
	NameY float64 `json:"nameY"`
	Title string  `json:"title"`
}

type line struct {
	Key  string  `json:"key"`
	X1   float64 `json:"x1"`
	Y1   float64 `json:"y1"`
	X2   float64 `json:"x2"`
	Y2   float64 `json:"y2"`
	Kind string  `json:"kind"` // "near", "far"
}

type circle struct {
	Key   string  `json:"key"`
	X     float64 `json:"x"`
	Y     float64 `json:"y"`
	R     float64 `json:"r"`
	Tone  string  `json:"tone"`
	Text  string  `json:"text"`
	TextY float64 `json:"textY"`
}

type legend struct {
	Key   string `json:"key"`
	Name  string `json:"name"`
	Tone  string `json:"tone"`
	Nodes string `json:"nodes"`
}

type rulerView struct {
	X2   float64 `json:"x2"`
	Text string  `json:"text"`
	None bool    `json:"none"`
}

// num is v for an attribute: a tenth of a unit is enough.
func num(v float64) float64 { return math.Round(v*10) / 10 }

// drawMap draws the nearest members; nodes[0] is this node.
func drawMap(nodes []api.NodeInfo, tones map[string]string) mapView {
	left := len(nodes) - maxDots
	nodes = nodes[:min(len(nodes), maxDots)]
	at, perMS := place(nodes)
	v := mapView{Ruler: rulerView{None: perMS == 0}}
	if perMS > 0 {
		length, text := ruler(perMS)
		v.Ruler = rulerView{X2: num(16 + length), Text: text}
		v.Halos = halos(nodes, at, tones)
		v.Note = "Distance is round-trip time, from network coordinates."
	} else {
		for _, rtt := range ringRTT {
			v.Circles = append(v.Circles, circle{Key: rtt.String(), X: num(mapWidth / 2), Y: num(mapHeight / 2), R: num(ringRadius(rtt)),
				Text: fmt.Sprintf("%d ms", rtt.Milliseconds()), TextY: num(mapHeight/2 - ringRadius(rtt) - 3)})
		}
		v.Note = "Distance from the centre is round-trip time; directions mean nothing."
	}
	for i, n := range nodes {
		p, ok := at[i]
		if !ok {
			continue
		}
		d := dot{Key: string(n.ID), X: num(p.x), Y: num(p.y), R: num(max(4, 7.5-float64(len(nodes))/40)), Tone: tones[n.Site], Kind: "other",
			NameY: num(p.y + 19), Title: fmt.Sprintf("%s · %s · %s", nodeName(n), siteName(n.Site), latency(time.Duration(n.RTT)))}
		if i == 0 {
			d.NameY += 6
			d.Kind, d.Title = "self", nodeName(n)+" · "+siteName(n.Site)+" · this node"
		}
		if i == 0 || len(nodes) <= 14 {
			d.Name = label(nodeName(n), 12)
		}
		v.Dots = append(v.Dots, d)
		if me, ok := at[0]; ok && (n.Neighbour == "near" || n.Neighbour == "far") {
			v.Lines = append(v.Lines, line{Key: string(n.ID), X1: num(me.x), Y1: num(me.y), X2: num(p.x), Y2: num(p.y), Kind: n.Neighbour})
		}
	}
	v.Places = legends(nodes, tones)
	if missing := len(nodes) - len(v.Dots); missing > 0 {
		v.Note += fmt.Sprintf(" %s no coordinate yet.", plural(missing, "node has", "nodes have"))
	}
	if left > 0 {
		v.Note += fmt.Sprintf(" The nearest %d nodes are drawn.", maxDots)
	}
	return v
}

// halos are soft circles around the nodes of each site that has several.
func halos(nodes []api.NodeInfo, at map[int]point, tones map[string]string) []circle {
	bySite := make(map[string][]point)
	for i, p := range at {
		bySite[nodes[i].Site] = append(bySite[nodes[i].Site], p)
	}
	var out []circle
	for site, points := range bySite {
		if site == "" || len(points) < 2 {
			continue
		}
		var centre point
		for _, p := range points {
			centre.x += p.x / float64(len(points))
			centre.y += p.y / float64(len(points))
		}
		r := 0.0
		for _, p := range points {
			r = max(r, centre.to(p))
		}
		out = append(out, circle{Key: label(site, nameLimit), X: num(centre.x), Y: num(centre.y), R: num(r + 24), Tone: tones[site]})
	}
	slices.SortFunc(out, func(a, b circle) int { return cmp.Compare(a.Key, b.Key) })
	return out
}

func legends(nodes []api.NodeInfo, tones map[string]string) []legend {
	counts := make(map[string]int)
	for _, n := range nodes {
		counts[n.Site]++
	}
	var out []legend
	for site, n := range counts {
		out = append(out, legend{Key: "site " + label(site, nameLimit), Name: siteName(site), Tone: tones[site], Nodes: strconv.Itoa(n)})
	}
	slices.SortFunc(out, func(a, b legend) int { return cmp.Or(cmp.Compare(a.Tone, b.Tone), cmp.Compare(a.Key, b.Key)) })
	return out[:min(len(out), 12)]
}

// Limits of the picture of a job's floods.
const (
	rippleSize  = 300.0
	rippleRings = 6
	rippleDots  = 48 // of one flood
)

// rippleView shows a job's last floods as rings around its origin, and the
// nodes that answered each as dots on its ring.
type rippleView struct {
	Rings []circle `json:"rings"`
	Dots  []dot    `json:"dots"`
	Alt   string   `json:"alt"`
}

func drawRipple(rounds []jobs.Round, searching bool) rippleView {
	first := max(0, len(rounds)-rippleRings)
	shown := rounds[first:]
	v := rippleView{Alt: "no flood yet"}
	for i, r := range shown {
		radius := 40 + (rippleSize/2-20-40)*float64(i+1)/float64(len(shown))
		c := circle{Key: strconv.Itoa(r.Number), R: num(radius), Tone: "past", Text: hops(r.Radius), TextY: num(rippleSize/2 - radius - 4)}
		if i == len(shown)-1 && searching {
			c.Tone = "now"
		}
		v.Rings = append(v.Rings, c)
		v.Dots = append(v.Dots, answers(r, radius)...)
		v.Alt = fmt.Sprintf("%s; the last one reached %s within %s", plural(len(rounds), "flood", "floods"), plural(r.Reached, "node", "nodes"), hops(r.Radius))
	}
	return v
}

func hops(n int) string { return plural(n, "hop", "hops") }

// answers spreads the answers to one flood over its ring; with more answers
// than dots each dot stands for an equal share.
func answers(r jobs.Round, radius float64) []dot {
	total := max(0, r.Offers) + max(0, r.Declines)
	n := min(total, rippleDots)
	var out []dot
	for i := range n {
		// A gap at the top leaves room for the ring's name.
		gap := math.Asin(min(1, 24/radius))
		angle := gap + (2*math.Pi-2*gap)*(float64(i)+0.5)/float64(n) - math.Pi/2
		kind := "decline"
		if i*total < r.Offers*n {
			kind = "offer"
		}
		out = append(out, dot{
			Key: fmt.Sprintf("%d.%d", r.Number, i), Kind: kind, R: 4.5,
			X: num(rippleSize/2 + radius*math.Cos(angle)), Y: num(rippleSize/2 + radius*math.Sin(angle)),
		})
	}
	return out
}
