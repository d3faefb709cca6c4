package web

import (
	"fmt"
	"strings"

	"zorilla/internal/units"
	"zorilla/node/api"
	"zorilla/node/usage"
)

// The drawing area of a chart, in units of its SVG: ten for each minute.
const (
	chartWidth  = 10 * usage.Minutes
	chartHeight = 100
)

// networkView is the members together, as far as they have told how they are.
type networkView struct {
	Busy   string    `json:"busy"`
	Free   string    `json:"free"`
	Shut   string    `json:"shut"` // "" = none
	All    string    `json:"all"`
	Shares shares    `json:"shares"`
	Memory string    `json:"memory"` // "" = not known
	Load   string    `json:"load"`
	Note   string    `json:"note"`
	Hour   chartView `json:"hour"`
}

// shares are the parts of a bar of 1000 units.
type shares struct {
	Busy  float64 `json:"busy"`
	Shut  float64 `json:"shut"`
	ShutX float64 `json:"shutX"`
}

// chartView draws the last hour: two areas, the second on top of the first, and a line of what
// there is.
type chartView struct {
	None bool   `json:"none"`
	Busy string `json:"busy"`
	Shut string `json:"shut"`
	All  string `json:"all"`
	Top  string `json:"top"` // what the upper edge means
	Alt  string `json:"alt"`
}

// together sums the members up.
func together(nodes []api.NodeInfo) networkView {
	t := api.Sum(nodes)
	v := networkView{Busy: count(int64(t.Busy)), Free: count(int64(t.Slots - t.Busy - t.Shut)), All: plural(t.Slots, "slot", "slots"), Hour: hourChart(nodes)}
	if t.Slots > 0 {
		v.Shares = shares{Busy: num(1000 * float64(t.Busy) / float64(t.Slots)), Shut: num(1000 * float64(t.Shut) / float64(t.Slots))}
		v.Shares.ShutX = v.Shares.Busy
	}
	if t.Shut > 0 {
		v.Shut = count(int64(t.Shut))
	}
	if t.Measured > 0 {
		v.Memory = fmt.Sprintf("%s of %s", units.Bytes(t.Free), units.Bytes(t.Memory))
		v.Load = fmt.Sprintf("%.1f", t.Load)
	}
	if t.Known < t.Nodes {
		v.Note = fmt.Sprintf("Of %s of %s: the others have not reported yet, or are farther away.", plural(t.Known, "node", "nodes"), count(int64(t.Nodes)))
	}
	return v
}

// hourChart draws how the slots of nodes were used.
func hourChart(nodes []api.NodeInfo) chartView {
	var parts []usage.Part
	for _, n := range nodes {
		if n.Loaded() {
			parts = append(parts, usage.Part{Slots: n.Slots, Lately: n.Lately})
		}
	}
	t := usage.Sum(parts)
	top, first := 0.0, usage.Minutes
	for i, m := range t {
		if m.All > 0 {
			first = min(first, i)
		}
		top = max(top, m.All)
	}
	if top == 0 {
		return chartView{None: true, Alt: "nothing is known of the last hour"}
	}
	y := func(v float64) float64 { return num(chartHeight * (1 - v/top)) }
	var busy, shut, all strings.Builder
	for i := first; i < usage.Minutes; i++ {
		m := t[i]
		x, next := 10*i, 10*(i+1)
		fmt.Fprintf(&busy, "L%d %g L%d %g", x, y(m.Busy), next, y(m.Busy))
		fmt.Fprintf(&shut, "L%d %g L%d %g", x, y(m.Busy+m.Shut), next, y(m.Busy+m.Shut))
		letter := "L"
		if i == first {
			letter = "M"
		}
		fmt.Fprintf(&all, "%s%d %g L%d %g", letter, x, y(m.All), next, y(m.All))
	}
	area := func(upper string) string {
		return fmt.Sprintf("M%d %d%sL%d %dZ", 10*first, chartHeight, upper, chartWidth, chartHeight)
	}
	last, mean := t[usage.Minutes-1], 0.0
	for _, m := range t[first:] {
		mean += m.Busy / float64(usage.Minutes-first)
	}
	return chartView{Busy: area(busy.String()), Shut: area(shut.String()), All: all.String(), Top: "upper edge: " + plural(int(top+.5), "slot", "slots"),
		Alt: fmt.Sprintf("In the last %s on average %.1f slots were busy; now %.1f of %.0f are.",
			plural(usage.Minutes-first, "minute", "minutes"), mean, last.Busy, last.All)}
}
