// Package groups says how the parts of a job hang together: groups of ranks with commands and needs of
// their own, and links, which bound how far apart groups may run. The words and the constraints are
// those of the request topology of Bar et al., Topology-aware job mapping (QosCosGrid), section 2.
// Everything is plain data; all functions may be called from any goroutine.
package groups

import (
	"fmt"
	"slices"
	"strings"

	"zorilla/internal/codec"
)

// Topology is the groups of a job in the order of its file, and their links. Without groups a job is
// one group of equal ranks.
type Topology struct {
	Groups  []Group `json:"groups,omitempty"`
	Links   []Link  `json:"links,omitempty"`
	Utility Utility `json:"utility,omitempty,omitzero"`
}

// Group is ranks that are alike. Groups have consecutive ranks, in the order of the file.
type Group struct {
	Name string            `json:"name"`
	Args []string          `json:"args,omitempty"` // command and arguments; none = those of the job
	Env  map[string]string `json:"env,omitempty"`  // besides that of the job, which it goes before

	Min int `json:"min"` // workers; how many there are is chosen with the nodes
	Max int `json:"max"`

	// What a worker takes, and the most that its node may have. A lower bound of 0 is that of the job.
	Slots  Range `json:"slots,omitempty,omitzero"`
	Memory Range `json:"memory,omitempty,omitzero"` // bytes
	Disk   Range `json:"disk,omitempty,omitzero"`   // bytes
	GPUs   Range `json:"gpus,omitempty,omitzero"`
	// What the node of a worker has to have.
	Clock Range  `json:"clock,omitempty,omitzero"` // MHz
	Power Range  `json:"power,omitempty,omitzero"` // of a core, 1000 = one of a server of 2.4 GHz
	Where string `json:"where,omitempty"`

	// Homogeneous asks for nodes as alike as possible in this, the strongest of them: Clock, Power; "" =
	// no matter. It is a wish, not a condition.
	Homogeneous string `json:"homogeneous,omitempty"`
	// Clusters is in how many clusters the group may be at most; 0 = no bound, 1 = it is not split.
	Clusters int `json:"clusters,omitempty"`
	// Prefer is for how long the job waits for nodes that keep to Clusters; after that the group may be
	// anywhere. 0 = for ever.
	Prefer codec.Duration `json:"prefer,omitempty"`
	// Restart is what runs again when a rank of the group is lost: RestartRank, RestartGroup or
	// RestartJob; "" = RestartJob.
	Restart string `json:"restart,omitempty"`
}

// Condition is what the node of a worker has to fulfil, as an expression of --where. What a
// worker takes is no part of it.
func (g *Group) Condition() string {
	var terms []string
	bound := func(name string, r Range) {
		if r.Min > 0 {
			terms = append(terms, fmt.Sprintf("%s >= %d", name, r.Min))
		}
		if r.Max > 0 {
			terms = append(terms, fmt.Sprintf("%s <= %d", name, r.Max))
		}
	}
	most := func(name string, r Range) { bound(name, Range{Max: r.Max}) }
	most("slots", g.Slots)
	most("mem", g.Memory)
	most("disk", g.Disk)
	most("gpus", g.GPUs)
	bound("clock", g.Clock)
	bound("power", g.Power)
	if g.Where != "" && len(terms) > 0 {
		terms = append(terms, "("+g.Where+")")
	} else if g.Where != "" {
		terms = append(terms, g.Where)
	}
	return strings.Join(terms, " && ")
}

// Range is bounds, both included. 0 = no bound.
type Range struct {
	Min int64 `json:"min,omitempty"`
	Max int64 `json:"max,omitempty"`
}

// IsZero reports whether there is no bound.
func (r Range) IsZero() bool { return r == Range{} }

// Values of Group.Homogeneous.
const (
	Clock = "clock"
	Power = "power"
)

// Values of Group.Restart.
const (
	RestartRank  = "rank"
	RestartGroup = "group"
	RestartJob   = "job"
)

// Link is a set of groups. Of two processes the smallest set that has both says how far apart they
// may be.
type Link struct {
	Name   string   `json:"name"`
	Groups []string `json:"groups"`

	MinRTT codec.Duration `json:"min_rtt,omitempty"` // 0 = no bound
	MaxRTT codec.Duration `json:"max_rtt,omitempty"`
	// Bandwidth is between the networks of the nodes, the smaller of what both say of theirs.
	Bandwidth Range `json:"bandwidth,omitempty,omitzero"` // Mbit/s
}

// Utility says what makes one choice of nodes better than another: the sum of both, weighted. All
// zero = satisfaction alone.
type Utility struct {
	Satisfaction float64 `json:"satisfaction,omitempty"` // for each group the share of its Max that it gets
	Utilisation  float64 `json:"utilisation,omitempty"`  // the share of all offered slots that are used
}

// IsZero reports whether nothing is said.
func (u Utility) IsZero() bool { return u == Utility{} }

// Index returns the place of a group in the file, from 0; -1 = there is none of this name.
func (t *Topology) Index(name string) int {
	return slices.IndexFunc(t.Groups, func(g Group) bool { return g.Name == name })
}

// GroupOf returns the group of a rank, and its number in it; -1 without groups. Of groups whose sizes are
// not chosen yet it counts the most that each may have.
func (t *Topology) GroupOf(rank int) (group, number int) {
	for i := range t.Groups {
		if n := t.Groups[i].Max; rank >= n {
			rank -= n
			continue
		}
		return i, rank
	}
	return -1, rank
}

// Least returns how many workers all groups together have at least, and Most at most.
func (t *Topology) Least() (n int) {
	for i := range t.Groups {
		n += t.Groups[i].Min
	}
	return n
}

// Most is the counterpart of Least.
func (t *Topology) Most() (n int) {
	for i := range t.Groups {
		n += t.Groups[i].Max
	}
	return n
}

// Sized returns the topology with so many workers in each group, neither more nor less.
func (t *Topology) Sized(sizes []int) Topology {
	s := *t
	s.Groups = slices.Clone(t.Groups)
	for i := range s.Groups {
		s.Groups[i].Min, s.Groups[i].Max = sizes[i], sizes[i]
	}
	return s
}

// Has returns whether a link's set has the group.
func (l *Link) Has(group string) bool { return slices.Contains(l.Groups, group) }

// Chain lists the links that have a group, the widest first, as places in the file: the circles that
// its processes are in.
func (t *Topology) Chain(group int) (chain []int) {
	name := t.Groups[group].Name
	for i := range t.Links {
		if t.Links[i].Has(name) {
			chain = append(chain, i)
		}
	}
	slices.SortStableFunc(chain, func(a, b int) int { return len(t.Links[b].Groups) - len(t.Links[a].Groups) })
	return chain
}

// Ruling returns the link that bounds processes of two groups, or of one: the smallest that has both;
// -1 = none has.
func (t *Topology) Ruling(a, b int) (link int) {
	link = -1
	for i := range t.Links {
		l := &t.Links[i]
		if l.Has(t.Groups[a].Name) && l.Has(t.Groups[b].Name) && (link < 0 || len(l.Groups) < len(t.Links[link].Groups)) {
			link = i
		}
	}
	return link
}

// Near reports whether the round trips between nodes count: a link bounds them, or a group is to be in few
// clusters.
func (t *Topology) Near() bool {
	return slices.ContainsFunc(t.Links, func(l Link) bool { return l.MinRTT > 0 || l.MaxRTT > 0 }) ||
		slices.ContainsFunc(t.Groups, func(g Group) bool { return g.Clusters > 0 })
}

// powerStep is by how much the power of machines has to differ that are not alike: it is measured.
const powerStep = 100

// Strength is what the allocator is to know of how fast a node is: what some group wants to be alike, or
// machines that are as good as each other would not be the same to it.
func (t *Topology) Strength(clock, power int64) (hostClock, hostPower int64) {
	for i := range t.Groups {
		switch t.Groups[i].Homogeneous {
		case Clock:
			hostClock = clock
		case Power:
			hostPower = (power + powerStep/2) / powerStep * powerStep
		}
	}
	return hostClock, hostPower
}
