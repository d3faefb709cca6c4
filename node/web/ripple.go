package web

import (
	"fmt"
	"strconv"

	"zorilla/jobs"
	"zorilla/node/api"
	"zorilla/vicinity"
)

// Limits of the picture of a job's floods. The style sheet has a delay for each
// wave and hop.
const (
	maxWaves = 6
	maxHops  = 9
)

// rippleView shows a job's last floods on the map: a ring for each around the
// origin, as far as it came, and the nodes that answered.
type rippleView struct {
	Halos   []circle  `json:"halos"`
	Circles []circle  `json:"circles"`
	Rings   []circle  `json:"rings"`
	Dots    []dot     `json:"dots"`
	Ruler   rulerView `json:"ruler"`
	State   string    `json:"state"` // "searching": the picture repeats itself; "over"
	Alt     string    `json:"alt"`
	Note    string    `json:"note"`
}

// drawRipple draws the floods of a job on the map of the members; nodes[0] is
// this node.
func drawRipple(nodes []api.NodeInfo, at sheet, st *jobs.Status, answers []jobs.NodeAnswer) rippleView {
	ground := drawMap(nodes, groupTones(nodes), at)
	v := rippleView{Halos: ground.Halos, Circles: ground.Circles, Ruler: ground.Ruler, State: "over", Alt: "no flood yet"}
	if st.State == jobs.Pending {
		v.State = "searching"
	}
	shown := st.Rounds[max(0, len(st.Rounds)-maxWaves):]
	said := make(map[vicinity.ID]jobs.NodeAnswer, len(answers))
	for _, a := range answers {
		said[a.Node] = a
	}
	reach := make([]float64, len(shown))
	origin, known := at.points[st.Origin]
	elsewhere := len(said)
	for _, d := range ground.Dots {
		id := vicinity.ID(d.Key)
		a, answered := said[id]
		d.Kind, d.Load, d.Name = "silent", "", ""
		if answered {
			elsewhere--
			d.Wave, d.Hop = wave(shown, a), min(max(a.Hops, 0), maxHops)
			d.Kind, d.Title = describeAnswer(a, d.Title)
			if d.Wave > 0 && known {
				reach[d.Wave-1] = max(reach[d.Wave-1], origin.to(at.points[id]))
			}
		}
		if id == st.Origin {
			d.Kind, d.Name, d.Wave, d.Hop = "origin", "origin", 0, 0
		}
		v.Dots = append(v.Dots, d)
	}
	for i, r := range shown {
		if i > 0 {
			reach[i] = max(reach[i], reach[i-1]+6)
		}
		if known {
			c := circle{Key: strconv.Itoa(r.Number), X: num(origin.x), Y: num(origin.y), R: num(max(reach[i], 14) + 8), Tone: "past", Wave: i + 1}
			if i == len(shown)-1 {
				c.Tone = "last"
			}
			v.Rings = append(v.Rings, c)
		}
		v.Alt = fmt.Sprintf("%s; the last one reached %s, %s far",
			plural(len(st.Rounds), "flood", "floods"), plural(r.Reached, "node", "nodes"), hops(max(r.Hops, 1)))
	}
	v.Note = ground.Note
	if !known {
		v.Note += " The job’s origin is not on the map."
	}
	if elsewhere > 0 {
		v.Note += " " + plural(elsewhere, "node that answered is not", "nodes that answered are not") + " on the map."
	}
	return v
}

func hops(n int) string { return plural(n, "hop", "hops") }

// wave returns which of the shown floods was the first to reach a node, from
// 1: what it says itself is the latest.
func wave(shown []jobs.Round, a jobs.NodeAnswer) int {
	for i, r := range shown {
		if r.Number == a.Round || a.Hops > 0 && a.Hops <= max(r.Hops, r.Radius) {
			return i + 1
		}
	}
	return min(len(shown), 1)
}

func describeAnswer(a jobs.NodeAnswer, title string) (kind, text string) {
	kind, text = "decline", title+" · declined"
	switch {
	case a.At.IsZero() && a.Hops == 0 && a.Offered == 0:
		return kind, title + " · " + label(a.Why(), nameLimit)
	case a.Offered > 0:
		kind, text = "offer", fmt.Sprintf("%s · offered %s", title, plural(a.Offered, "worker", "workers"))
	}
	if why := a.Why(); why != "" {
		text += ": " + label(why, textLimit)
	}
	if a.Hops > 0 {
		text += " · " + hops(a.Hops)
	}
	return kind, text
}
