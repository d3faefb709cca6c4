package lab

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"zorilla/jobs"
	"zorilla/node/api"
)

// Gather starts a node with options on each host of the lab in dir, which is that of
// the plan, and waits until all know all others and how far they are.
func Gather(ctx context.Context, dir string, p *Plan, options ...string) (nodes []*Node, err error) {
	options = append(slices.Clone(options), "--join", Address(0, 1).String()+":5444")
	for _, name := range p.Names() {
		n, err := NewNode(dir, name)
		if err != nil {
			return nil, err
		}
		if err := n.Start(ctx, options...); err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
	}
	_, err = Until(ctx, 2*time.Minute, "all nodes have measured all", All(nodes, func(_ *Node, members []api.NodeInfo) string {
		if len(members) < len(nodes) {
			return fmt.Sprintf("knows %d of %d", len(members), len(nodes))
		}
		for _, m := range members {
			if m.RTT == 0 && !m.Self {
				return "has not measured " + m.Name
			}
		}
		return ""
	}))
	return nodes, err
}

// Submitted returns the jobs that were submitted at the node, the oldest first.
func (n *Node) Submitted(ctx context.Context) ([]jobs.Status, error) {
	all, err := n.Client.Jobs(ctx, false)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", n.Name, err)
	}
	all = slices.DeleteFunc(all, func(st jobs.Status) bool { return !n.Owns(&st) })
	slices.SortFunc(all, func(a, b jobs.Status) int {
		return cmp.Or(a.Submitted.Compare(b.Submitted), cmp.Compare(a.ID, b.ID))
	})
	return all, nil
}

// Load reports how many processes have wanted a processor of this machine in the last
// one, five and fifteen minutes.
func Load() string {
	b, err := os.ReadFile("/proc/loadavg")
	fields := strings.Fields(string(b))
	if err != nil || len(fields) < 3 {
		return "not known"
	}
	return strings.Join(fields[:3], " ")
}
