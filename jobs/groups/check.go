package groups

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Bounds of a topology.
const (
	MaxGroups = 32
	MaxLinks  = 64
	MaxName   = 32 // bytes of a name of a group or link
	// MaxRTT bounds the round trips that links speak of.
	MaxRTT    = 10 * time.Second
	maxPrefer = 366 * 24 * time.Hour
)

// CheckName returns what is wrong with the name of a group or link, or "".
func CheckName(name string) string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
	if name == "" || len(name) > MaxName || strings.Trim(name, letters) != "" {
		return fmt.Sprintf("want 1 to %d letters, digits and -_. in it", MaxName)
	}
	return ""
}

// Check returns what is wrong, as a user sees it, or "". Commands, texts and conditions on nodes are
// checked with the job.
func (t *Topology) Check() string {
	if len(t.Groups) == 0 {
		if len(t.Links) > 0 || !t.Utility.IsZero() {
			return "links and utility want groups"
		}
		return ""
	}
	if len(t.Groups) > MaxGroups {
		return fmt.Sprintf("%d groups, at most %d", len(t.Groups), MaxGroups)
	}
	for i := range t.Groups {
		g := &t.Groups[i]
		if t.Index(g.Name) != i {
			return fmt.Sprintf("two groups are called %s", g.Name)
		}
		if text := g.check(); text != "" {
			return fmt.Sprintf("group %.40s: %s", g.Name, text)
		}
	}
	if text := t.checkLinks(); text != "" {
		return text
	}
	for _, w := range []float64{t.Utility.Satisfaction, t.Utility.Utilisation} {
		if !(w >= 0 && w <= 1e6) {
			return fmt.Sprintf("utility: a weight of %v, want 0 to 1000000", w)
		}
	}
	return ""
}

func (g *Group) check() string {
	if text := CheckName(g.Name); text != "" {
		return text
	}
	if g.Min < 1 || g.Max < g.Min {
		return fmt.Sprintf("n %d..%d: want at least 1, and MIN at most MAX", g.Min, g.Max)
	}
	for _, r := range []struct {
		name string
		Range
	}{{"slots", g.Slots}, {"mem", g.Memory}, {"disk", g.Disk}, {"gpus", g.GPUs}, {"clock", g.Clock}, {"power", g.Power}} {
		if r.Min < 0 || r.Max < 0 || r.Max > 0 && r.Max < r.Min || r.Max > math.MaxInt64/4 || r.Min > math.MaxInt64/4 {
			return fmt.Sprintf("%s %d..%d: want 0 or more, and MIN at most MAX", r.name, r.Min, r.Max)
		}
	}
	switch {
	case g.Homogeneous != "" && g.Homogeneous != Clock && g.Homogeneous != Power:
		return fmt.Sprintf("homogeneous %.40q: want %s or %s", g.Homogeneous, Clock, Power)
	case g.Clusters < 0 || g.Clusters > math.MaxInt32:
		return fmt.Sprintf("clusters %d: want 1 or more", g.Clusters)
	case g.Prefer < 0 || time.Duration(g.Prefer) > maxPrefer:
		return fmt.Sprintf("prefer %v: want up to %v", g.Prefer, maxPrefer)
	case g.Prefer > 0 && g.Clusters == 0:
		return "prefer wants unsplit or clusters"
	case !slices.Contains([]string{"", RestartRank, RestartGroup, RestartJob}, g.Restart):
		return fmt.Sprintf("restart %.40q: want %s, %s or %s", g.Restart, RestartRank, RestartGroup, RestartJob)
	}
	return ""
}

func (t *Topology) checkLinks() string {
	if len(t.Links) > MaxLinks {
		return fmt.Sprintf("%d links, at most %d", len(t.Links), MaxLinks)
	}
	for i := range t.Links {
		l := &t.Links[i]
		if text := CheckName(l.Name); text != "" {
			return fmt.Sprintf("link %.40q: %s", l.Name, text)
		}
		if text := l.check(t); text != "" {
			return fmt.Sprintf("link %s: %s", l.Name, text)
		}
		for k := range t.Links[:i] {
			m := &t.Links[k]
			if l.Name == m.Name {
				return fmt.Sprintf("two links are called %s", l.Name)
			}
			if text := apart(m, l); text != "" {
				return fmt.Sprintf("links %s and %s: %s", m.Name, l.Name, text)
			}
		}
	}
	return ""
}

func (l *Link) check(t *Topology) string {
	if len(l.Groups) == 0 {
		return "want groups"
	}
	for i, name := range l.Groups {
		if t.Index(name) < 0 {
			return fmt.Sprintf("there is no group %.40q", name)
		}
		if slices.Contains(l.Groups[:i], name) {
			return fmt.Sprintf("group %s is named twice", name)
		}
	}
	low, high := time.Duration(l.MinRTT), time.Duration(l.MaxRTT)
	switch b := l.Bandwidth; {
	case low < 0 || high < 0 || low > MaxRTT || high > MaxRTT || high > 0 && high < low:
		return fmt.Sprintf("rtt %v..%v: want up to %v, and MIN at most MAX", low, high, MaxRTT)
	case b.Min < 0 || b.Max < 0 || b.Max > 0 && b.Max < b.Min || b.Min > maxBandwidth || b.Max > maxBandwidth:
		return fmt.Sprintf("bandwidth %d..%d: want up to %d Mbit/s, and MIN at most MAX", b.Min, b.Max, maxBandwidth)
	}
	return ""
}

const maxBandwidth = 1_000_000_000 // Mbit/s

// apart returns what is wrong with two sets that are neither nested nor disjoint, or are the same.
func apart(a, b *Link) string {
	common := 0
	for _, name := range a.Groups {
		if b.Has(name) {
			common++
		}
	}
	switch {
	case common == len(a.Groups) && common == len(b.Groups):
		return "both are of the same groups"
	case common > 0 && common < len(a.Groups) && common < len(b.Groups):
		return "they share groups, but neither has all of the other's: links are nested or disjoint"
	}
	return ""
}
