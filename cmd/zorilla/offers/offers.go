// Package offers writes what the nodes of a network offer in the words of job files: TOML,
// with like nodes of a cluster as one offer.
package offers

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"zorilla/cmd/zorilla/columns"
	"zorilla/internal/units"
	"zorilla/node/api"
)

// How much more than the least of an offer its nodes may have, and still be alike: two machines
// of one model do not measure the same, nor have they the same bytes.
const (
	alikePower  = 1.05
	alikeMemory = 1.02
)

// offer is some nodes of a cluster that are alike; its words are true of each of them.
type offer struct {
	cluster          string
	slots, gpus      int
	clock, bandwidth int64
	power, memory    int64 // the least
	nodes            []api.NodeInfo
}

// Write writes what nodes offer, those of near clusters first. The first of the nodes is the one
// that was asked, which has the distances.
func Write(w io.Writer, nodes []api.NodeInfo) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s: %s.\n", units.Count(len(nodes), "node", "nodes"), free(nodes))
	if len(nodes) > 0 {
		far := distances(nodes[0].Distances)
		for _, o := range group(nodes) {
			o.write(&b, far)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// group puts like nodes together, in the order of their clusters, the strongest first.
func group(nodes []api.NodeInfo) (list []*offer) {
	rank := map[string]int{} // of clusters, in order
	for i := range nodes {
		if _, ok := rank[nodes[i].Cluster]; !ok {
			rank[nodes[i].Cluster] = len(rank)
		}
	}
	nodes = slices.Clone(nodes)
	slices.SortStableFunc(nodes, func(a, b api.NodeInfo) int { // of each offer the least come first
		return cmp.Or(cmp.Compare(rank[a.Cluster], rank[b.Cluster]), cmp.Compare(a.Speeds.Power, b.Speeds.Power), cmp.Compare(a.Memory, b.Memory))
	})
	for i := range nodes {
		n := &nodes[i]
		at := slices.IndexFunc(list, func(o *offer) bool { return o.like(n) })
		if at < 0 {
			at = len(list)
			list = append(list, &offer{
				cluster: n.Cluster, slots: n.Slots, gpus: n.GPUs, clock: n.Speeds.Clock, bandwidth: n.Speeds.Bandwidth,
				power: n.Speeds.Power, memory: n.Memory,
			})
		}
		o := list[at]
		o.memory = min(o.memory, n.Memory)
		o.nodes = append(o.nodes, *n)
	}
	slices.SortStableFunc(list, func(a, b *offer) int {
		return cmp.Or(cmp.Compare(rank[a.cluster], rank[b.cluster]), cmp.Compare(b.gpus, a.gpus), cmp.Compare(b.slots, a.slots),
			cmp.Compare(b.clock, a.clock), cmp.Compare(b.power, a.power), cmp.Compare(b.memory, a.memory))
	})
	return list
}

// like reports whether a node, which has no less power, can be described by the same words.
func (o *offer) like(n *api.NodeInfo) bool {
	if o.cluster != n.Cluster || o.slots != n.Slots || o.gpus != n.GPUs || o.clock != n.Speeds.Clock || o.bandwidth != n.Speeds.Bandwidth {
		return false
	}
	if (o.power == 0) != (n.Speeds.Power == 0) || float64(n.Speeds.Power) > float64(o.power)*alikePower {
		return false
	}
	low, high := min(o.memory, n.Memory), n.Memory
	for i := range o.nodes {
		high = max(high, o.nodes[i].Memory)
	}
	return float64(high) <= float64(low)*alikeMemory
}

func (o *offer) write(b *strings.Builder, far map[string][]api.Distance) {
	where := "of no known cluster"
	if o.cluster != "" {
		where = "of cluster " + quote(o.cluster)
	}
	fmt.Fprintf(b, "\n[[offer]]  # %s %s, %s\n", units.Count(len(o.nodes), "node", "nodes"), where, free(o.nodes))
	line := func(name, value, comment string) {
		text := name + " = " + value
		if comment != "" {
			text = fmt.Sprintf("%-20s # %s", text, comment)
		}
		b.WriteString(text + "\n")
	}
	if o.cluster != "" {
		line("cluster", quote(o.cluster), "")
	}
	line("nodes", fmt.Sprint(len(o.nodes)), "")
	line("slots", fmt.Sprint(o.slots), "of each node")
	if o.memory > 0 {
		line("mem", quote(memory(o.memory)), "")
	}
	if o.gpus > 0 {
		line("gpus", fmt.Sprint(o.gpus), "")
	}
	if o.clock > 0 {
		line("clock", quote(units.Clock(o.clock)), "")
	}
	if o.power > 0 {
		line("power", fmt.Sprint(o.power), "")
	}
	if o.bandwidth > 0 {
		line("bandwidth", quote(units.Bandwidth(o.bandwidth)), "")
	}
	var rtts []string
	for _, d := range far[o.cluster] {
		if ms, known := units.Millis(time.Duration(d.RTT)); known {
			rtts = append(rtts, fmt.Sprintf("%s = %q", key(d.To), ms+"ms"))
		}
	}
	if len(rtts) > 0 {
		line("rtt", "{"+strings.Join(rtts, ", ")+"}", "to its own nodes, and those of other clusters")
	}
}

// free says how many slots new workers would find.
func free(nodes []api.NodeInfo) string {
	t := api.Sum(nodes)
	text := fmt.Sprintf("%d of %s free", t.Slots-t.Busy-t.Shut, units.Count(t.Slots, "slot", "slots"))
	switch unknown := t.Nodes - t.Known; {
	case unknown == 0:
		return text
	case t.Known == 0:
		return "how many slots are free is not known"
	default:
		return text + "; not known of " + units.Count(unknown, "node", "nodes")
	}
}

// distances sorts what is known of each cluster, its own first, then the nearest.
func distances(all []api.Distance) map[string][]api.Distance {
	of := map[string][]api.Distance{}
	for _, d := range all {
		of[d.From] = append(of[d.From], d)
		if d.From != d.To {
			of[d.To] = append(of[d.To], api.Distance{From: d.To, To: d.From, RTT: d.RTT})
		}
	}
	for name, list := range of {
		slices.SortFunc(list, func(a, b api.Distance) int {
			if (a.To == name) != (b.To == name) {
				if a.To == name {
					return -1
				}
				return 1
			}
			return cmp.Or(cmp.Compare(a.RTT, b.RTT), cmp.Compare(a.To, b.To))
		})
		of[name] = slices.CompactFunc(list, func(a, b api.Distance) bool { return a.To == b.To })
	}
	return of
}

// memory writes bytes as --mem reads them, and not more than there are.
func memory(n int64) string {
	unit, name := int64(1<<30), "GiB"
	if n < unit {
		unit, name = 1<<20, "MiB"
	}
	tenths := n/unit*10 + n%unit*10/unit
	text := fmt.Sprintf("%d.%d", tenths/10, tenths%10)
	return strings.TrimSuffix(text, ".0") + name
}

// quote writes a string of TOML; what comes from other nodes must not steer the terminal.
func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(columns.Clean(s)) + `"`
}

// key writes a key of TOML, bare if it can be.
func key(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == "" {
		return s
	}
	return quote(s)
}
