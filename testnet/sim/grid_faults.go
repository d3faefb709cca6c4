package sim

import (
	"maps"
	"slices"
	"time"

	"zorilla/jobs/model"
	"zorilla/vicinity"
)

// Faults is what goes wrong beside the noise of the overlay and its cuts.
type Faults struct {
	Broken  float64       // share of requests whose connection breaks, before they arrive or after
	Stalled float64       // share of requests and replies that come up to 20 s later
	Disk    time.Duration // below which it takes until something is durable
}

// Watcher sees what happens in a Grid, while it happens.
type Watcher interface {
	Acted(node int) // had an input and did what it wanted done
	// Arrives and Arrived are called before and after a node takes a message.
	Arrives(from, to int, m model.Message)
	Arrived(from, to int, m model.Message)
	Killed(node int, machine bool, left *model.Remains)
}

// owed is a request that has arrived and is not answered: its connection breaks
// with the node.
type owed struct {
	from, to int
	model.Message
}

// answers notes that a node sends a message, and returns the request that it answers, if it is a reply.
func (n *gridNode) answers(to int, m model.Message) (o owed, ok bool) {
	i := slices.IndexFunc(n.owes, func(o owed) bool { return o.from == to && o.Asks() == m.Answers() })
	if i < 0 {
		return o, false
	}
	o = n.owes[i]
	n.owes = slices.Delete(n.owes, i, i+1)
	return o, true
}

// fails reports who asks that its connection is broken, if it lives and waits.
func (g *Grid) fails(o owed, after time.Duration) {
	if o.Asks() == 0 {
		return
	}
	life := g.o.hosts[o.from].life
	g.o.Schedule(after, func() {
		if n := g.nodes[o.from]; g.o.Up(o.from) && g.o.hosts[o.from].life == life {
			g.perform(o.from, n.jobs.Receive(g.Local(o.from), g.o.ID(o.to), o.Broken()))
		}
	})
}

// knock has the machine of a node say whether that runs, unless a packet is lost.
func (g *Grid) knock(from, to int, m model.Message) {
	there, back := g.o.delay(from, to), g.o.delay(to, from)
	life := g.o.hosts[from].life
	goes, comes := !g.chance(g.o.cfg.Noise.Loss), !g.chance(g.o.cfg.Noise.Loss)
	g.o.Schedule(there+back, func() {
		n := g.nodes[from]
		switch {
		case !goes || !comes || g.o.severed(from, to) || !g.o.Up(from) || g.o.hosts[from].life != life:
		case g.o.Up(to):
			g.perform(from, n.jobs.Receive(g.Local(from), g.o.ID(to), m.Answered()))
		default:
			g.perform(from, n.jobs.Receive(g.Local(from), g.o.ID(to), m.Broken()))
		}
	})
}

// chance is true with a probability.
func (g *Grid) chance(p float64) bool { return p > 0 && g.o.rnd.Float64() < p }

// sync is how long a disk takes.
func (g *Grid) sync() time.Duration {
	if g.Faults.Disk <= 0 {
		return 0
	}
	return time.Duration(g.o.rnd.Int64N(int64(g.Faults.Disk)))
}

// Crash ends nodes with their machines.
func (g *Grid) Crash(nodes ...int) {
	for _, i := range nodes {
		g.Kill(i, true)
	}
}

// Kill ends a node, perhaps in the middle of what it does; with machine its
// workers too. The others hear of it when the overlay has noticed.
func (g *Grid) Kill(i int, machine bool) {
	n := g.node(i)
	n.remains = n.jobs.Kill(g.Local(i), machine)
	g.o.Crash(i)
	maps.DeleteFunc(g.links, func(pair [2]int, _ time.Duration) bool { return pair[0] == i || pair[1] == i })
	if !machine { // which says nothing when it fails
		for _, o := range n.owes {
			g.fails(o, g.o.delay(i, o.from))
		}
	}
	n.jobs, n.flood, n.timer, n.leaving, n.owes = nil, nil, forever, false, nil
	if g.cfg.Watch != nil {
		g.cfg.Watch.Killed(i, machine, &n.remains)
	}
}

// Revive starts a node again that was killed, with its clock so much ahead: that
// the clock is set while the node is down must not matter.
func (g *Grid) Revive(i int, clock time.Duration) {
	n := g.nodes[i]
	n.remains.Shift(clock - n.clock) // processes do not look at the clock
	n.clock = clock
	g.o.Revive(i)
	var out model.Actions
	n.jobs, out = model.Revive(g.Local(i), g.begin(i), n.remains)
	g.perform(i, out)
}

// Clock returns how far a node's clock is ahead.
func (g *Grid) Clock(i int) time.Duration { return g.node(i).clock }

// Stop ends a node as SIGTERM does, within a time.
func (g *Grid) Stop(i int, within time.Duration) {
	g.node(i).leaving = true
	life := g.o.hosts[i].life
	g.Do(i, (*model.Model).Leave)
	g.o.Schedule(g.o.upTo(within), func() {
		if g.o.Up(i) && g.o.hosts[i].life == life {
			g.Kill(i, false)
		}
	})
}

// Leaving reports whether a node is being stopped.
func (g *Grid) Leaving(i int) bool { return g.node(i).leaving }

// membership is called when a node hears that another one is a member, or is gone.
func (g *Grid) membership(i int, id vicinity.ID, member bool) {
	if i < len(g.nodes) && g.nodes[i] != nil {
		g.perform(i, g.nodes[i].jobs.Membership(g.Local(i), id, member))
	}
}

// Alive lists the nodes that run and are not being stopped.
func (g *Grid) Alive() []int {
	return slices.DeleteFunc(g.o.Live(), g.Leaving)
}
