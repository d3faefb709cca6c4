package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"

	"zorilla/testnet/hosts/lab"
)

// fleet is the hosts of a lab, of which some have a node and the others are spare.
type fleet struct {
	dir    string
	plan   *lab.Plan
	origin *lab.Node // the first one, which is never lost
	random *rand.Rand
	slots  int // of each host

	mu    sync.Mutex
	live  []*lab.Node
	spare []string // hosts, the one that is to be used next first
}

// newFleet starts nodes on the first hosts of each site, and waits until they know each other and
// how far they are.
func newFleet(ctx context.Context, dir string, plan *lab.Plan, o *options) (*fleet, error) {
	f := &fleet{dir: dir, plan: plan, random: rand.New(rand.NewPCG(o.seed, 0)), slots: o.slots}
	first := plan.First(o.hosts)
	f.spare = slices.DeleteFunc(plan.Names(), func(host string) bool { return first.HostIndex(host) >= 0 })
	var err error
	if f.live, err = lab.Gather(ctx, dir, first, "--slots", strconv.Itoa(o.slots)); err != nil {
		return nil, err
	}
	f.origin = f.live[0]
	return f, nil
}

// start starts a node without a past on a host that has none.
func (f *fleet) start(ctx context.Context, host string) error {
	n, err := lab.NewNode(f.dir, host)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(n.State()); err != nil {
		return err
	}
	if err := n.Start(ctx, "--slots", strconv.Itoa(f.slots), "--join", lab.Address(0, 1).String()+":5444"); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.live = append(f.live, n)
	return nil
}

// victim takes a random node, but not the origin, from those that live, and the host from the spare
// ones of its site that is to be used in its place.
func (f *fleet) victim() (lost *lab.Node, successor string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	// In the order of their names: what a seed chooses may depend only on who is there.
	slices.SortFunc(f.live[1:], func(a, b *lab.Node) int { return f.plan.HostIndex(a.Name) - f.plan.HostIndex(b.Name) })
	if len(f.live) < 2 {
		return nil, "", fmt.Errorf("no node is left beside %s", f.origin.Name)
	}
	i := 1 + f.random.IntN(len(f.live)-1)
	lost = f.live[i]
	k := slices.IndexFunc(f.spare, func(host string) bool { return f.plan.SiteOf(host) == f.plan.SiteOf(lost.Name) })
	if k < 0 {
		return nil, "", fmt.Errorf("no host of the site of %s is spare", lost.Name)
	}
	successor = f.spare[k]
	f.live = slices.Delete(f.live, i, i+1)
	f.spare = append(slices.Delete(f.spare, k, k+1), lost.Name)
	return lost, successor, nil
}
