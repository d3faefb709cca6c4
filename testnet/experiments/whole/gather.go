package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"zorilla/testnet"
	"zorilla/testnet/sim"
)

const (
	knownLimit = 5 * time.Minute // memberlist repairs what gossip missed within minutes
	rightLimit = 2 * time.Minute
	poll       = 100 * time.Millisecond
	enough     = 0.99
)

// wholeNodes measures a network of whole nodes.
func wholeNodes(bubble testnet.Bubble, n int, seed uint64) (row, error) {
	r := row{kind: "memberlist", nodes: n}
	real := testnet.RealTime()
	err := bubble(func() error {
		return r.gather(sim.SixSites(n, false), testnet.NodesConfig{Seed: seed}, r.rest)
	})
	r.took = testnet.RealTime() - real
	return r, err
}

// gather starts whole nodes in a layout, measures how they come together, and
// stops them after what is done in the calm.
func (r *row) gather(layout sim.Layout, config testnet.NodesConfig, inCalm func(*testnet.Nodes) error) error {
	state, err := os.MkdirTemp("", "whole")
	if err != nil {
		return err
	}
	defer os.RemoveAll(state)
	begun, cpu, empty := time.Now(), testnet.CPUTime(), heap()
	config.Sites, config.State = &layout, state
	nodes, err := testnet.StartNodes(config)
	if err != nil {
		return err
	}
	err = r.come(nodes)
	r.coming = testnet.CPUTime() - cpu
	if err == nil {
		r.heap = max(0, heap()-empty) / int64(nodes.Len())
		err = inCalm(nodes)
	}
	r.virtual = time.Since(begun)
	return errors.Join(err, nodes.Stop())
}

// come watches how the nodes get to know each other, and waits for the calm.
func (r *row) come(nodes *testnet.Nodes) error {
	started := time.Now()
	var known, right time.Time // when 99 % were
	for all := false; !all || right.IsZero(); time.Sleep(poll) {
		now := time.Now()
		share := nodes.Known()
		if known.IsZero() && share >= enough {
			known = now
			r.most = now.Sub(started)
		}
		if !all && share == 1 {
			all = true
			r.all = now.Sub(started)
		}
		// To look at all neighbours is expensive: once a second will do.
		if !known.IsZero() && right.IsZero() && now.Sub(known)%time.Second < poll && nodes.Right() >= enough {
			right = now
			r.right = now.Sub(known)
		}
		switch {
		case now.Sub(started) > knownLimit:
			return fmt.Errorf("%.4f of all pairs known, %.4f of the neighbours right after %v", share, nodes.Right(), knownLimit)
		case right.IsZero() && !known.IsZero() && now.Sub(known) > rightLimit:
			return fmt.Errorf("%.4f of the neighbours right %v after 99 %% were known", nodes.Right(), rightLimit)
		}
	}
	time.Sleep(time.Until(started.Add(warmUp)))
	return nil
}

// rest measures the calm, and one flood in it.
func (r *row) rest(nodes *testnet.Nodes) error {
	cpu, sent := testnet.CPUTime(), nodes.Traffic()
	time.Sleep(calm)
	r.cpu = testnet.CPUTime() - cpu
	d := nodes.Traffic().Minus(sent)
	per := float64(r.nodes) * calm.Seconds()
	r.calm = rates{
		bytes:    float64(d.Packets.Bytes+d.Streams.Bytes) / per,
		packets:  float64(d.Packets.Count) / per,
		vicinity: float64(d.Vicinity.Bytes) / per,
	}
	r.final = nodes.Right()
	var err error
	r.flood, err = nodes.Flood(context.Background(), 0, floodRadius)
	if err == nil && r.flood.Reached != r.nodes-1 {
		err = fmt.Errorf("a flood reached %d of %d nodes", r.flood.Reached, r.nodes-1)
	}
	return err
}

// heap is what is in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
