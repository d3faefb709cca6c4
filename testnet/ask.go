package testnet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"zorilla/jobs"
	"zorilla/node/api"
	"zorilla/vicinity"
)

// pollEvery is how often, in the time of the bubble, the nodes are asked.
const pollEvery = 100 * time.Millisecond

// Len returns how many nodes there are, those that are down included.
func (n *Nodes) Len() int { return len(n.list) }

// Up lists the nodes that are not down.
func (n *Nodes) Up() []int {
	var up []int
	for i, m := range n.list {
		if m.node != nil {
			up = append(up, i)
		}
	}
	return up
}

// ID returns the identity of node i, the same in each of its lives.
func (n *Nodes) ID(i int) vicinity.ID { return n.list[i].id }

// Index returns the number of a node.
func (n *Nodes) Index(id vicinity.ID) (i int, ok bool) {
	i, ok = n.index[id]
	return i, ok
}

// Site lists the nodes of a site.
func (n *Nodes) Site(site int) []int {
	var list []int
	for i, m := range n.list {
		if n.cfg.Sites.Site(m.host) == site {
			list = append(list, i)
		}
	}
	return list
}

// Service returns the API for clients of node i, which must be up.
func (n *Nodes) Service(i int) api.Service { return n.list[i].node.Service() }

// Vicinity reports who is near node i, which must be up, as it sees it.
func (n *Nodes) Vicinity(i int) *vicinity.Table { return n.list[i].node.Vicinity() }

// Runner returns where the workers of node i are.
func (n *Nodes) Runner(i int) *Runner { return n.list[i].runner }

// RTT returns the true round trip between two nodes, 0 for a node to itself.
func (n *Nodes) RTT(i, j int) time.Duration {
	if i == j {
		return 0
	}
	return n.Network.RTT(n.list[i].host, n.list[j].host)
}

// AwaitKnown waits until each of the nodes knows exactly these nodes, all at
// the same time, and returns how long that took.
func (n *Nodes) AwaitKnown(ctx context.Context, nodes []int) (time.Duration, error) {
	want := make([]vicinity.ID, len(nodes))
	for k, i := range nodes {
		want[k] = n.list[i].id
	}
	slices.Sort(want)
	begun := time.Now()
	for agree, k := 0, 0; agree < len(nodes); {
		known := n.members(nodes[k])
		if slices.Equal(known, want) {
			agree++
			k = (k + 1) % len(nodes)
			continue
		}
		agree = 0
		if err := sleep(ctx, pollEvery); err != nil {
			return 0, fmt.Errorf("node %d knows %d nodes after %v, want %d: %w", nodes[k], len(known), time.Since(begun), len(want), err)
		}
	}
	return time.Since(begun), nil
}

// members returns the nodes that node i knows, itself included, sorted.
func (n *Nodes) members(i int) []vicinity.ID {
	overlay := n.list[i].watch.Overlay
	ids := []vicinity.ID{overlay.Self().ID}
	for _, m := range overlay.Members() {
		ids = append(ids, m.ID)
	}
	slices.Sort(ids)
	return ids
}

// Submit submits a job at node i.
func (n *Nodes) Submit(ctx context.Context, i int, spec jobs.Spec) (jobs.ID, error) {
	spec.Slots = cmp.Or(spec.Slots, 1)
	return n.Service(i).Submit(ctx, spec)
}

// Await waits until a job of node i is as ok wants.
func (n *Nodes) Await(ctx context.Context, i int, job jobs.ID, ok func(jobs.Status) bool) (jobs.Status, error) {
	service := n.Service(i)
	var st jobs.Status
	for since := uint64(0); ; {
		now, version, err := service.Await(ctx, string(job), since)
		if err != nil {
			return st, fmt.Errorf("job %s is %s (%s): %w", job, st.State, st.Reason, err)
		}
		if st, since = now, version; ok(st) {
			return st, nil
		}
		if st.State.Final() {
			return st, fmt.Errorf("job %s is %s (%s): %w", job, st.State, st.Reason, errNever)
		}
	}
}

// errNever: the job has ended in another state than the one waited for.
var errNever = errors.New("it will not change any more")

// Nearest returns the nodes of so many slots, the nearest to node i when all
// are idle, its own first; fewer if there are not so many.
func (n *Nodes) Nearest(i, workers int) []int {
	return NearestSlots(n.Up(), workers, func(j int) time.Duration { return n.RTT(i, j) }, func(int) int { return n.cfg.Slots })
}

// NearestSlots returns the nodes of so many slots, the nearest of some by their
// distances and the slots that each has free; fewer if there are not so many.
func NearestSlots(nodes []int, slots int, distance func(node int) time.Duration, free func(node int) int) []int {
	nodes = slices.Clone(nodes)
	slices.SortFunc(nodes, func(a, b int) int { return cmp.Or(cmp.Compare(distance(a), distance(b)), cmp.Compare(a, b)) })
	var list []int
	for _, i := range nodes {
		for range min(free(i), slots-len(list)) {
			list = append(list, i)
		}
	}
	return list
}
