package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"zorilla/flood"
	"zorilla/jobs"
	"zorilla/jobs/model"
	"zorilla/vicinity"
)

// GridConfig describes a Grid. Overlay is required.
type GridConfig struct {
	Overlay *Overlay
	// Graph tells neighbours and measured distances; nil = those of the
	// overlay's own cores, as they change.
	Graph Graph
	Seed  uint64
	Slots func(node int) int // capacity; nil = 2
	Busy  func(node int) int // slots that are used for good from the start; nil = 0
	// Fate reports what becomes of a worker that was granted; nil = it is ready after
	// a millisecond and runs for ever.
	Fate func(job jobs.ID, spec *jobs.Spec, ra jobs.RankAttempt) model.Fate
	// Clock is how far a node's clock is ahead at first; nil = not at all.
	Clock func(node int) time.Duration
	// Unable reports why a node cannot start workers now; nil, or "" = it can.
	Unable func(node int) string
	// Hangs reports whether a node's disk hangs; nil = none does.
	Hangs func(node int) bool
	Watch Watcher // nil = nobody looks
	// Lose sees each message when it is sent, and reports whether it is lost: a packet on its
	// way, a request or reply with its connection. Of a copy of a flood it sees a packet to
	// the node about the job. Nil = none is.
	Lose func(from, to int, m model.Message) bool
}

// Lasting is the fate of workers that need some time to get ready and then run for
// another; 0 = for ever.
func Lasting(prepare, run time.Duration) func(jobs.ID, *jobs.Spec, jobs.RankAttempt) model.Fate {
	return func(jobs.ID, *jobs.Spec, jobs.RankAttempt) model.Fate { return model.Fate{Prepare: prepare, Run: run} }
}

// Grid runs jobs on an overlay: a flood.Core and a model.Model at every node. A
// node's cores are made when it first has something to do, so that many grids
// of thousands of nodes can be made in turn.
//
// Packets are lost, doubled and reordered as the overlay's noise has it.
// Requests and replies arrive, though later where a packet would have been lost,
// if Faults do not break their connections; the first request of a node to another
// waits for two round trips, those of the handshakes of TCP and TLS 1.3, unless it is
// a packet that is not lost (package fastrpc).
type Grid struct {
	Faults   Faults // may be changed at any time
	cfg      GridConfig
	changing bool // the neighbours
	o        *Overlay
	nodes    []*gridNode
	links    map[[2]int]time.Duration // connections: when they are open
	probed   map[[2]int]time.Duration // distances that were measured for a search
	costs    map[jobs.ID]*Cost
	members  []vicinity.Member
}

type gridNode struct {
	jobs       *model.Model // nil = it was killed
	flood      *flood.Core
	neighbours []vicinity.ID // where they do not change
	timer      time.Duration // when the jobs core is woken
	spins      int           // without time passing
	spun       time.Duration
	clock      time.Duration // that it is ahead
	leaving    bool
	remains    model.Remains // when it was killed
	owes       []owed
}

// advertisementLife is how long copies of a flood are passed on, as in a node.
const advertisementLife = 30 * time.Second

// resend is how long a connection waits before it sends again what was lost.
const resend = 200 * time.Millisecond

// NewGrid returns a grid without jobs.
func NewGrid(cfg GridConfig) *Grid {
	if cfg.Slots == nil {
		cfg.Slots = func(int) int { return 2 }
	}
	if cfg.Busy == nil {
		cfg.Busy = func(int) int { return 0 }
	}
	if cfg.Fate == nil {
		cfg.Fate = Lasting(time.Millisecond, 0)
	}
	if cfg.Lose == nil {
		cfg.Lose = func(int, int, model.Message) bool { return false }
	}
	changing := cfg.Graph == nil
	if changing {
		cfg.Graph = Known(cfg.Overlay)
	}
	g := &Grid{
		cfg: cfg, changing: changing, o: cfg.Overlay, nodes: make([]*gridNode, cfg.Overlay.Len()), links: map[[2]int]time.Duration{},
		probed: map[[2]int]time.Duration{}, costs: map[jobs.ID]*Cost{},
	}
	g.o.listeners = append(g.o.listeners, g.membership)
	return g
}

// node returns a node's cores.
func (g *Grid) node(i int) *gridNode {
	for len(g.nodes) <= i {
		g.nodes = append(g.nodes, nil)
	}
	if n := g.nodes[i]; n != nil {
		return n
	}
	n := &gridNode{timer: forever}
	if g.cfg.Clock != nil {
		n.clock = g.cfg.Clock(i)
	}
	g.nodes[i] = n
	n.jobs = model.New(g.begin(i))
	return n
}

// begin gives a node that starts a flood core, and returns what its jobs core needs.
func (g *Grid) begin(i int) model.Config {
	g.nodes[i].flood = flood.NewCore(flood.Config{
		Self:       g.o.ID(i),
		Neighbours: func() []vicinity.ID { return g.neighbours(i) },
		Check:      func(vicinity.ID, []byte) error { return nil },
		Rand:       g.rand(i, 1),
	})
	return model.Config{
		Self: g.member(i), Busy: g.cfg.Busy(i), Rand: g.rand(i, 2), Fate: g.cfg.Fate,
		Flood:   func(now time.Time, ad model.Advert) flood.Flood { return g.startFlood(i, now, ad) },
		Members: func() int { return g.o.roster[g.o.Site(i)].Len() },
		Nearer: func(than time.Duration, limit int) []vicinity.Measured {
			return g.cfg.Graph.Nearer(i, than, limit)
		},
		Distance: func(a, b vicinity.ID) time.Duration {
			rtt, _ := g.cfg.Graph.Distance(i, a, b)
			return rtt
		},
		Fresh: func(id vicinity.ID, within time.Duration) time.Duration {
			if g.changing {
				rtt, _ := g.o.Core(i).Fresh(g.o.Now(), id, within)
				return rtt
			}
			_, rtt, _ := g.known(i, id)
			return rtt
		},
		Member: func(id vicinity.ID) (vicinity.Member, time.Duration, bool) { return g.known(i, id) },
		Disk:   g.sync,
		Hangs:  func() bool { return g.cfg.Hangs != nil && g.cfg.Hangs(i) },
		Unable: func() string {
			if g.cfg.Unable == nil {
				return ""
			}
			return g.cfg.Unable(i)
		},
	}
}

// rand is another source of chance in each life of a node.
func (g *Grid) rand(i int, what uint64) *rand.Rand {
	return rand.New(rand.NewPCG(hash(g.cfg.Seed), hash(uint64(g.o.hosts[i].life)<<40+uint64(i)<<8+what)))
}

func (g *Grid) neighbours(i int) []vicinity.ID {
	if g.changing {
		return g.cfg.Graph.Neighbours(i)
	}
	n := g.nodes[i]
	if n.neighbours == nil {
		n.neighbours = g.cfg.Graph.Neighbours(i)
	}
	return n.neighbours
}

func (g *Grid) member(i int) vicinity.Member {
	for k := len(g.members); k <= i; k++ {
		g.members = append(g.members, vicinity.Member{
			ID: g.o.ID(k), Name: fmt.Sprintf("node-%d", k), Slots: g.cfg.Slots(k), Version: jobs.CurrentVersion,
			Addrs: []string{fmt.Sprintf("10.%d.%d.%d:5444", g.o.Site(k)%250, k/250, k%250+1)},
		})
	}
	return g.members[i]
}

// known is what a node knows of another.
func (g *Grid) known(i int, id vicinity.ID) (vicinity.Member, time.Duration, bool) {
	k, ok := g.o.Index(id)
	if !ok {
		return vicinity.Member{}, 0, false
	}
	rtt, ok := g.cfg.Graph.RTT(i, id)
	if probed, too := g.probed[[2]int{i, k}]; too && (!ok || probed < rtt) {
		rtt = probed
	}
	return g.member(k), rtt, true
}

// Submit submits a job at a node.
func (g *Grid) Submit(node int, spec jobs.Spec) (jobs.ID, error) {
	id, out, err := g.node(node).jobs.Submit(g.Local(node), spec)
	g.perform(node, out)
	return id, err
}

// Do gives the jobs core of a node that runs an input, and does what it wants done
// then.
func (g *Grid) Do(node int, input func(m *model.Model, now time.Time) model.Actions) {
	g.perform(node, input(g.node(node).jobs, g.Local(node)))
}

// Local is the time by a node's own clock.
func (g *Grid) Local(node int) time.Time { return g.o.Now().Add(g.node(node).clock) }

// Jobs returns a node's jobs core, to ask it; nil = it was killed.
func (g *Grid) Jobs(node int) *model.Model { return g.node(node).jobs }

// Workers returns the nodes of a job's workers that were granted and not lost
// since, in the order of their ranks.
func (g *Grid) Workers(node int, id jobs.ID) []int {
	var list []int
	st, _ := g.node(node).jobs.Status(id)
	for _, w := range st.Workers {
		if k, ok := g.o.Index(w.Node); ok && w.State != jobs.WorkerLost {
			list = append(list, k)
		}
	}
	return list
}

// Run lets time pass until a condition holds, which is looked at after each
// event, and reports whether it does.
func (g *Grid) Run(limit time.Duration, until func() bool) bool {
	end := g.o.at + limit
	for !until() {
		if len(g.o.queue.heap) == 0 || g.o.queue.heap[0].at > end {
			g.o.Run(end - g.o.at)
			return until()
		}
		g.o.Run(g.o.queue.heap[0].at - g.o.at)
	}
	return true
}

// perform does what a jobs model wants done, and sets its timer.
func (g *Grid) perform(i int, out model.Actions) {
	for _, e := range out.Extends {
		for _, copies := range g.nodes[i].flood.Extend(g.Local(i), e.Flood, e.Rim) {
			g.carry(i, copies, g.last(e.Job))
		}
	}
	for _, m := range out.Messages {
		g.post(i, m)
	}
	for _, id := range out.Probes {
		g.probe(i, id)
	}
	for _, id := range out.Connects {
		if to, ok := g.o.Index(id); ok {
			g.connect(i, to)
		}
	}
	n := g.nodes[i]
	if next := n.jobs.Next(); !next.IsZero() {
		if at := max(g.o.at, next.Sub(time.Unix(0, 0))-n.clock); at < n.timer {
			n.timer = at
			g.o.Schedule(at-g.o.at, func() { g.tick(i, at) })
		}
	}
	if g.cfg.Watch != nil {
		g.cfg.Watch.Acted(i)
	}
}

// tick wakes a jobs model, unless the timer was set anew since.
func (g *Grid) tick(i int, set time.Duration) {
	n := g.nodes[i]
	if n.timer != set || !g.o.Up(i) {
		return
	}
	n.timer = forever
	if n.spun != g.o.at {
		n.spun, n.spins = g.o.at, 0
	}
	if n.spins++; n.spins > 10_000 {
		panic(fmt.Sprintf("seed %d: node %d wants to be woken without end at %v", g.cfg.Seed, i, g.o.at))
	}
	g.Do(i, (*model.Model).Tick)
}

// probe has a node measure another one, twice. In a network that does not run the
// smallest sample counts.
func (g *Grid) probe(i int, id vicinity.ID) {
	if g.changing {
		g.o.Feed(i, g.o.Core(i).Probe(g.o.Now(), id))
		return
	}
	k, ok := g.o.Index(id)
	if !ok {
		return
	}
	sent, first := g.o.at, time.Duration(0)
	for range 2 {
		g.o.Send(i, k, func() {
			g.o.Send(k, i, func() {
				rtt := g.o.at - sent
				if first == 0 {
					first = rtt
					return
				}
				g.probed[[2]int{i, k}] = min(first, rtt)
			})
		})
	}
}
