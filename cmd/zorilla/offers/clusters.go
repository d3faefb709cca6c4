package offers

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"zorilla/cmd/zorilla/columns"
	"zorilla/internal/codec"
	"zorilla/internal/units"
	"zorilla/jobs/placement/mapping"
	"zorilla/node/api"
	"zorilla/vicinity"
)

// Clusters are the nodes of a network by clusters, the nearest first.
type Clusters struct {
	// HD is how unlike the powers of all nodes are, see mapping.Heterogeneity. A node whose power is not known
	// counts as one of 1000.
	HD       float64   `json:"hd"`
	Unknown  int       `json:"unknown,omitempty"` // nodes of which it is not known
	Clusters []Cluster `json:"clusters"`
}

// Cluster is some nodes that are near each other. Round trips are 0 where they are not known.
type Cluster struct {
	Name   string         `json:"name,omitempty"` // "" = those of which it is not known where they are
	Nodes  int            `json:"nodes"`
	Slots  int            `json:"slots"`
	Free   int            `json:"free"`             // of the slots, as far as is known
	Power  int64          `json:"power"`            // of a core, the mean
	Least  codec.Duration `json:"least,omitempty"`  // from the node that was asked to the nearest of its other nodes
	Most   codec.Duration `json:"most,omitempty"`   // and to the farthest
	Inside codec.Duration `json:"inside,omitempty"` // between two of its nodes, the median of some pairs
	Near   api.Distance   `json:"near,omitzero"`    // the nearest other cluster
	Far    api.Distance   `json:"far,omitzero"`     // the farthest
}

// ByCluster sums up nodes. The first of them is the one that was asked.
func ByCluster(nodes []api.NodeInfo) Clusters {
	c := Clusters{Clusters: []Cluster{}}
	var powers []float64
	members := map[string][]api.NodeInfo{}
	var names []string
	for _, n := range nodes {
		if n.Speeds.Power == 0 {
			c.Unknown++
		}
		powers = append(powers, float64(powerOf(n.Speeds)))
		if members[n.Cluster] == nil {
			names = append(names, n.Cluster)
		}
		members[n.Cluster] = append(members[n.Cluster], n)
	}
	c.HD = mapping.Heterogeneity(powers)
	var far map[string][]api.Distance
	if len(nodes) > 0 {
		far = distances(nodes[0].Distances)
	}
	for _, name := range names {
		c.Clusters = append(c.Clusters, sum(name, members[name], far[name]))
	}
	slices.SortStableFunc(c.Clusters, func(a, b Cluster) int { return compareUnknown(a.Name == "", b.Name == "") })
	return c
}

func compareUnknown(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// powerOf is the power of a core, that of a common one if it is not known.
func powerOf(s vicinity.Speeds) int64 { return cmp.Or(s.Power, vicinity.UsualPower) }

// sum adds up the nodes of a cluster; far is how far other clusters are, its own first.
func sum(name string, nodes []api.NodeInfo, far []api.Distance) Cluster {
	t := api.Sum(nodes)
	c := Cluster{Name: name, Nodes: len(nodes), Free: t.Slots - t.Busy - t.Shut}
	for _, n := range nodes {
		c.Slots += n.Slots
		c.Power += powerOf(n.Speeds)
		if n.RTT > 0 && !n.Self {
			c.Most = max(c.Most, n.RTT)
			c.Least = min(cmp.Or(c.Least, n.RTT), n.RTT)
		}
	}
	c.Power /= int64(len(nodes))
	if name == "" {
		return c
	}
	for _, d := range far {
		switch {
		case d.To == name:
			c.Inside = d.RTT
		case c.Near == (api.Distance{}):
			c.Near, c.Far = d, d
		default:
			c.Far = d
		}
	}
	return c
}

// Table has a row for each cluster.
func (c *Clusters) Table() [][]string {
	rows := [][]string{{"CLUSTER", "NODES", "FREE", "POWER", "RTT", "INSIDE", "NEAREST", "FARTHEST"}}
	for _, k := range c.Clusters {
		name := k.Name
		if name == "" {
			name = "not known"
		}
		rows = append(rows, []string{
			columns.Cut(columns.Clean(name), nameWidth), strconv.Itoa(k.Nodes), fmt.Sprintf("%d/%d", k.Free, k.Slots), strconv.FormatInt(k.Power, 10),
			span(k.Least, k.Most), columns.RTT(time.Duration(k.Inside)), other(k.Near), other(k.Far),
		})
	}
	return rows
}

// nameWidth is how much of the name of a cluster there is room for.
const nameWidth = 16

// span is the shortest and the longest of some round trips.
func span(least, most codec.Duration) string {
	from, to := columns.RTT(time.Duration(least)), columns.RTT(time.Duration(most))
	if from == to {
		return from
	}
	return from + ".." + to
}

// other is how far another cluster is.
func other(d api.Distance) string {
	if d == (api.Distance{}) {
		return columns.None
	}
	return columns.RTT(time.Duration(d.RTT)) + " " + columns.Cut(columns.Clean(d.To), nameWidth)
}

// WriteText writes what is to stand below the table, after an empty line.
func (c *Clusters) WriteText(w io.Writer) error {
	_, err := fmt.Fprintf(w, "\n%s\n", c.Text())
	return err
}

// Text says how unlike the nodes are.
func (c *Clusters) Text() string {
	nodes := 0
	for _, k := range c.Clusters {
		nodes += k.Nodes
	}
	text := fmt.Sprintf("hd %.2f of %s: standard deviation by mean of the power of their cores, at most 1", c.HD, units.Count(nodes, "node", "nodes"))
	if c.Unknown > 0 {
		text += fmt.Sprintf("; %d where it is not known count as %d", c.Unknown, vicinity.UsualPower)
	}
	return text
}
