// Package plan says where a job with groups would run now, by what a node tells a client of its network.
package plan

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"zorilla/internal/units"
	"zorilla/jobs"
	"zorilla/jobs/placement/topology"
	"zorilla/node/api"
)

// network is members as they are known to a client. Round trips between two others are estimated: by what
// is known of their clusters, else by their coordinates.
type network struct {
	nodes     []api.NodeInfo
	distances map[[2]string]time.Duration
}

// Of returns lines that say on which nodes each group of a job would run now, or why it would wait. The node
// that was asked may know better by the time that it chooses: distances are estimates.
func Of(spec *jobs.Spec, nodes []api.NodeInfo) []string {
	n := network{distances: map[[2]string]time.Duration{}}
	for _, m := range nodes {
		for _, d := range m.Distances {
			n.distances[[2]string{d.From, d.To}], n.distances[[2]string{d.To, d.From}] = time.Duration(d.RTT), time.Duration(d.RTT)
		}
		if !m.Told.IsZero() && m.State == "" {
			n.nodes = append(n.nodes, m)
		}
	}
	slices.SortStableFunc(n.nodes, func(a, b api.NodeInfo) int {
		return cmp.Or(compareBool(b.Self, a.Self), cmp.Compare(a.RTT, b.RTT), cmp.Compare(a.ID, b.ID))
	})
	p := n.problem(spec)
	r := p.Solve()
	switch r.Verdict {
	case topology.Found:
		return append([]string{"now it would run, as far as distances are known:"}, n.placed(spec, r.Counts)...)
	case topology.Infeasible:
		return []string{"now it would wait: " + r.Why}
	}
	return []string{"whether it would run now is not known: " + r.Why}
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

func (n *network) problem(spec *jobs.Spec) *topology.Problem {
	var least, most []int
	for _, g := range spec.Groups {
		least, most = append(least, g.Min), append(most, g.Max)
	}
	p := spec.Request(least, most, make([]bool, len(spec.Groups)))
	clusters := map[string]int{}
	for i := range n.nodes {
		m := &n.nodes[i]
		name := cmp.Or(m.Cluster, string(m.ID))
		if _, ok := clusters[name]; !ok {
			clusters[name] = len(clusters)
		}
		h := topology.Host{Name: jobs.Label(m.Name, m.ID), Cluster: clusters[name], Near: time.Duration(m.RTT),
			Free: topology.Amounts{int64(max(0, m.Slots-m.Busy)), cmp.Or(m.Memory, 1<<60), 1 << 60, int64(m.GPUs)}}
		if m.Self {
			h.Near = 1
		}
		h.Clock, h.Power = spec.Strength(m.Speeds.Clock, m.Speeds.Power)
		for g := range spec.Groups {
			if spec.Suits(g, m.Member) {
				h.Fits |= 1 << g
			}
		}
		p.Hosts = append(p.Hosts, h)
	}
	p.RTT = n.rtt
	p.Bandwidth = func(a, b int) int64 { return min(n.nodes[a].Speeds.Bandwidth, n.nodes[b].Speeds.Bandwidth) }
	return p
}

func (n *network) rtt(i, k int) time.Duration {
	a, b := &n.nodes[i], &n.nodes[k]
	switch {
	case i == k:
		return 0
	case a.Self && b.RTT > 0:
		return time.Duration(b.RTT)
	case b.Self && a.RTT > 0:
		return time.Duration(a.RTT)
	}
	if rtt := n.distances[[2]string{a.Cluster, b.Cluster}]; rtt > 0 && a.Cluster != "" && b.Cluster != "" {
		return rtt
	}
	if len(a.Position) != len(b.Position) || len(a.Position) == 0 { // not farther than by way of this node
		if a.RTT == 0 || b.RTT == 0 {
			return jobs.MaxApart
		}
		return time.Duration(a.RTT + b.RTT)
	}
	sum := 0.0
	for i := range a.Position {
		sum += math.Pow(a.Position[i]-b.Position[i], 2)
	}
	return max(1, time.Duration(math.Sqrt(sum)*float64(time.Millisecond)))
}

// placed lists the nodes of each group.
func (n *network) placed(spec *jobs.Spec, counts [][]int) (lines []string) {
	for g := range spec.Groups {
		total := 0
		var on []string
		for i := range n.nodes {
			if c := counts[i][g]; c > 0 {
				total += c
				if len(on) < shown {
					on = append(on, fmt.Sprintf("%d at %s", c, jobs.Label(n.nodes[i].Name, n.nodes[i].ID)))
				} else if len(on) == shown {
					on = append(on, "...")
				}
			}
		}
		lines = append(lines, fmt.Sprintf("  %s: %s: %s", spec.Groups[g].Name, units.Count(total, "worker", "workers"), strings.Join(on, ", ")))
	}
	return lines
}

// shown is how many nodes of a group are named.
const shown = 8
