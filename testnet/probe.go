package testnet

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"zorilla/flood"
	"zorilla/vicinity"
)

// FloodReport reports how one flood went.
type FloodReport struct {
	Reached  int           // nodes, the origin not counted
	Last     time.Duration // from the start until the last of them had it
	sum      time.Duration // of these times
	Hops     int           // links to the one with the most
	Messages int64         // copies sent
}

// Arrived counts a node that has the flood, so long after its start.
func (r *FloodReport) Arrived(m flood.Message, after time.Duration) {
	r.Reached++
	r.Last, r.Hops, r.sum = max(r.Last, after), max(r.Hops, int(m.Hops)), r.sum+after
}

// Add adds what a node has sent.
func (r *FloodReport) Add(s flood.Stats) { r.Messages += int64(s.Sent + s.Forwarded) }

// Mean is how long a node waited for the flood on average.
func (r *FloodReport) Mean() time.Duration { return r.sum / time.Duration(max(1, r.Reached)) }

// probe is a node's second flooder, beside that of its jobs.
type probe struct {
	flooder *flood.Flooder
	cancel  context.CancelFunc
}

// probeQuiet is longer than any flood is on its way.
const probeQuiet = 2 * time.Second

// Flood floods a payload of no use from node i over the neighbour sets as they
// are now, and returns when all copies have arrived. It uses flooders of its
// own, so that jobs notice nothing.
func (n *Nodes) Flood(ctx context.Context, i, radius int) (FloodReport, error) {
	var (
		mu     sync.Mutex // guards report and begun
		report FloodReport
		begun  time.Time
		done   sync.WaitGroup
	)
	deliver := func(m flood.Message) {
		mu.Lock()
		defer mu.Unlock()
		report.Arrived(m, time.Since(begun))
	}
	probes := map[int]*probe{}
	for _, k := range n.Up() {
		probes[k] = n.startProbe(ctx, k, &done, deliver)
	}
	begun = time.Now()
	_, err := probes[i].flooder.Start(radius, flood.MaxLife, []byte("probe"))
	if err == nil {
		err = sleep(ctx, probeQuiet)
	}
	for k, p := range probes {
		n.list[k].watch.probe.Store(nil)
		p.cancel()
	}
	done.Wait()
	for _, p := range probes {
		report.Add(p.flooder.Stats())
	}
	if err != nil {
		return report, fmt.Errorf("flood from node %d: %w", i, err)
	}
	return report, nil
}

func (n *Nodes) startProbe(ctx context.Context, k int, done *sync.WaitGroup, deliver func(flood.Message)) *probe {
	m := n.list[k]
	table, out := m.node.Vicinity(), m.watch
	f := flood.New(flood.Config{
		Self: m.id, Rand: rand.New(rand.NewPCG(m.seed, uint64(time.Now().UnixNano()))),
		Neighbours: func() (ids []vicinity.ID) {
			for _, nb := range table.Neighbours() {
				ids = append(ids, nb.ID)
			}
			return ids
		},
		Send:    func(to vicinity.ID, p []byte) { _ = out.Send(to, kindProbe, p) }, // as well as it can
		Check:   func(vicinity.ID, []byte) error { return nil },
		Deliver: deliver,
	})
	ctx, cancel := context.WithCancel(ctx)
	p := &probe{f, cancel}
	out.probe.Store(p)
	done.Go(func() { _ = f.Run(ctx) }) // it returns nil
	return p
}
