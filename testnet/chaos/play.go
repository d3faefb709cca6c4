package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"zorilla/node/api"
	"zorilla/testnet/hosts/lab"
)

const (
	joinTime   = 60 * time.Second
	settleTime = 100 * time.Second // for all jobs to end once the network is healed
	emptyTime  = 30 * time.Second  // for all that is left to go
	lookEvery  = 500 * time.Millisecond
)

// play is a story in a lab.
type play struct {
	*record
	o     options
	dir   string   // of the lab
	self  string   // this program as workers start it
	args  []string // of each node
	nodes []*lab.Node
	away  *absences
}

// perform is the lab's script.
func perform(ctx context.Context, o options) error {
	plan, err := lab.PlanOf(o.plan())
	if err != nil {
		return err
	}
	p, err := newPlay(o, plan)
	switch {
	case err != nil:
		return err
	case o.story == storyLinger:
		return p.linger(ctx)
	case o.story == storySixSites:
		err = (&sixSites{play: p, plan: plan}).acts(ctx)
	default:
		p.story = orders(o, plan.Names(), p.self)
		err = p.acts(ctx, torments(o, plan.Names()))
	}
	p.summary()
	if err != nil {
		p.blame("%v", err)
	}
	if len(p.wrong) == 0 {
		fmt.Printf("%s: all %d jobs ended as they must; nothing is left\n", o.name(), len(p.story))
		return nil
	}
	return p.report()
}

func newPlay(o options, plan *lab.Plan) (*play, error) {
	dir, err := lab.Enter()
	if err != nil {
		return nil, err
	}
	p := &play{record: newRecord(), o: o, dir: dir, self: filepath.Join(dir, "bin", "chaos"), away: newAbsences()}
	p.args = []string{"--slots", "6", "--join", lab.Address(0, 1).String() + ":5444"}
	if o.story != storyChance {
		p.args = []string{"--slots", fmt.Sprint(siteSlots)}
	}
	p.args = append(p.args, "--expose", filepath.Dir(p.self))
	if err := lab.Copy("/proc/self/exe", p.self, 0o755); err != nil {
		return nil, err
	}
	for _, name := range plan.Names() {
		n, err := lab.NewNode(dir, name)
		if err != nil {
			return nil, err
		}
		p.nodes = append(p.nodes, n)
	}
	if o.story == storyChance && isRoot() { // one of them is an ordinary user's
		return p, p.nodes[len(p.nodes)-1].Give(ordinaryUser)
	}
	return p, nil
}

// ordinaryUser owns nothing but a node.
const ordinaryUser = 65534

// isRoot reports whether this is the machine's root, who may become others.
func isRoot() bool {
	var inside, outside, count int
	b, err := os.ReadFile("/proc/self/uid_map")
	if err == nil {
		_, err = fmt.Sscan(string(b), &inside, &outside, &count)
	}
	return err == nil && os.Geteuid() == 0 && count > ordinaryUser
}

// linger runs a node until it is killed.
func (p *play) linger(ctx context.Context) error {
	if err := p.nodes[0].Start(ctx, p.args...); err != nil {
		return err
	}
	fmt.Println("kill me")
	<-ctx.Done()
	return ctx.Err()
}

// acts plays a story of chance from its beginning to its end.
func (p *play) acts(ctx context.Context, list []torment) error {
	p.log("-", "seed %d: %d jobs and %d torments in %v", p.o.seed, len(p.story), len(list), p.o.length)
	// Somebody must be there to be joined.
	if err := errors.Join(p.nodes[0].Start(ctx, p.args...), p.each(p.nodes[1:], func(n *lab.Node) error { return n.Start(ctx, p.args...) })); err != nil {
		return err
	}
	if _, err := lab.Until(ctx, joinTime, "all nodes know all", lab.All(p.nodes, func(_ *lab.Node, members []api.NodeInfo) string {
		if len(members) != len(p.nodes) {
			return fmt.Sprintf("knows %d nodes", len(members))
		}
		return ""
	})); err != nil {
		return err
	}
	p.begin = time.Now()
	return p.watched(ctx, func() error {
		var actors sync.WaitGroup
		for _, t := range list {
			actors.Go(func() {
				if p.pause(ctx, t.at) {
					p.torment(ctx, t)
				}
			})
		}
		for _, j := range p.story {
			actors.Go(func() {
				if p.pause(ctx, j.at) {
					p.submit(ctx, j)
				}
			})
		}
		actors.Wait()
		p.log("-", "no more torments; the jobs come to their ends")
		return nil
	})
}

// watched plays with watchers of all nodes, lets the jobs come to their ends and
// judges them.
func (p *play) watched(ctx context.Context, act func() error) error {
	watching, stop := context.WithCancel(ctx)
	var watchers sync.WaitGroup
	defer watchers.Wait()
	defer stop()
	for _, n := range p.nodes {
		watchers.Go(func() { p.watch(watching, n) })
	}
	watchers.Go(func() { p.feelStalls(watching) })
	if err := act(); err != nil {
		return err
	}
	if err := p.awaitEnds(ctx); err != nil {
		return err
	}
	stop()
	watchers.Wait()
	return p.finale(ctx)
}

// each does something to nodes at the same time.
func (p *play) each(nodes []*lab.Node, do func(*lab.Node) error) error {
	var wait sync.WaitGroup
	errs := make([]error, len(nodes))
	for i, n := range nodes {
		wait.Go(func() { errs[i] = do(n) })
	}
	wait.Wait()
	return errors.Join(errs...)
}

// pause waits for a time of the story.
func (p *play) pause(ctx context.Context, at time.Duration) bool {
	select {
	case <-time.After(time.Until(p.begin.Add(at))):
		return true
	case <-ctx.Done():
		return false
	}
}

func (p *play) node(name string) *lab.Node {
	return p.nodes[slices.IndexFunc(p.nodes, func(n *lab.Node) bool { return n.Name == name })]
}

// watch looks how the jobs of an origin are, and that its node does not end by
// itself.
func (p *play) watch(ctx context.Context, n *lab.Node) {
	seen := seenJobs{}
	for ctx.Err() == nil {
		try, cancel := context.WithTimeout(ctx, 3*time.Second)
		list, err := n.Client.Jobs(try, false)
		cancel()
		if n.Gone() {
			p.blame("the node of %s ended by itself: %s", n.Name, n.LastWords(8))
			return
		}
		if err == nil {
			p.note(n, list, seen)
		}
		time.Sleep(lookEvery)
	}
}

// feelStalls notes when this machine was too busy to run anything: then all
// nodes were away.
func (p *play) feelStalls(ctx context.Context) {
	last := time.Now()
	for ctx.Err() == nil {
		time.Sleep(lookEvery / 5)
		now := time.Now()
		if now.Sub(last) > 2*time.Second {
			p.log("-", "this machine stood still for %s", seconds(now.Sub(last)))
			for _, n := range p.nodes {
				p.away.begin(n.Name, "the machine stood still", last)(now)
			}
		}
		last = now
	}
}
