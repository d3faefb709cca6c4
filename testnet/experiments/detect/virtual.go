package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/placement"
	"zorilla/testnet"
	"zorilla/testnet/chart"
	"zorilla/testnet/sim"
	"zorilla/vicinity"
)

const (
	virtualNodes = 24
	virtualRanks = 24 // with two slots at each node there is room for those that are lost
	crashes      = 6
	virtualCalm  = 10 * time.Minute
)

// network is one of whole nodes in virtual time, and what is found there.
type network struct {
	patience time.Duration
	noise    testnet.Noise
	// Seconds after a machine has failed until the origin's overlay gives its node up, its ranks are
	// lost, and all run elsewhere.
	dead, lost, again []float64
	alarms            int // in the calm
}

// virtual plays the part in virtual time.
func virtual(r *chart.Results, bubble testnet.Bubble, seed uint64) error {
	fmt.Fprintf(r, "Virtual time, %d whole nodes at six sites, %d ranks; machines fail: seconds after that. False alarms: in %v without failures.\n\n",
		virtualNodes, virtualRanks, virtualCalm)
	w := tabwriter.NewWriter(r, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "--lost-after\tpackets lost\tdead\tits ranks are lost\trun elsewhere\tfalse alarms")
	for _, loss := range []float64{0, 0.05, 0.1} {
		for _, patience := range []time.Duration{0, 5 * time.Second, jobs.LeastPatience} {
			n := network{patience: patience, noise: testnet.Noise{Loss: loss}}
			if err := bubble(func() error { return n.play(seed) }); err != nil {
				return err
			}
			fmt.Fprintln(w, strings.Join([]string{name(patience), fmt.Sprintf("%.0f %%", 100*loss),
				span(n.dead, crashes), span(n.lost, crashes), span(n.again, crashes), fmt.Sprint(n.alarms)}, "\t"))
		}
	}
	return w.Flush()
}

// play gathers the network, waits, and has machines fail, one after the other.
func (n *network) play(seed uint64) (err error) {
	ctx := context.Background() // one of outside would stop the time
	state, err := os.MkdirTemp("", "detect")
	if err != nil {
		return err
	}
	defer os.RemoveAll(state)
	layout := sim.SixSites(virtualNodes, false)
	nodes, err := testnet.StartNodes(testnet.NodesConfig{Sites: &layout, State: state, Seed: seed, Noise: n.noise})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, nodes.Stop()) }()
	time.Sleep(30 * time.Second)
	id, err := nodes.Submit(ctx, 0, jobs.Spec{Args: []string{"sleep", "100h"}, Min: 1, Max: virtualRanks, Slots: 1,
		Strategy: string(placement.Spread), Failing: jobs.Failing{LostAfter: codec.Duration(n.patience)}})
	if err != nil {
		return err
	}
	full := func(st jobs.Status) bool { return len(at(&st, "")) == virtualRanks }
	if _, err := nodes.Await(ctx, 0, id, full); err != nil {
		return err
	}
	time.Sleep(virtualCalm)
	st, err := nodes.Await(ctx, 0, id, full)
	if err != nil {
		return err
	}
	for _, w := range st.Workers {
		n.alarms += w.Attempt - 1
	}
	rnd := rand.New(rand.NewPCG(seed, 1))
	for range crashes {
		time.Sleep(time.Minute + time.Duration(rnd.Int64N(int64(2*time.Second))))
		st, err := nodes.Await(ctx, 0, id, full)
		if err != nil {
			return err
		}
		victim := 0
		for len(at(&st, nodes.ID(victim))) == 0 || victim == 0 {
			victim = 1 + rnd.IntN(virtualNodes-1)
		}
		if err := n.crash(ctx, nodes, id, victim); err != nil {
			return err
		}
	}
	if err := nodes.Service(0).Cancel(ctx, string(id), true); err != nil {
		return err
	}
	time.Sleep(time.Minute) // the processes of workers end before the bubble
	return nil
}

// crash has a machine fail, and starts it again.
func (n *network) crash(ctx context.Context, nodes *testnet.Nodes, job jobs.ID, victim int) error {
	begun, id := time.Now(), nodes.ID(victim)
	nodes.Crash(victim)
	gone := make(chan float64, 1)
	go func() {
		for time.Since(begun) < time.Minute && knows(ctx, nodes, id) {
			time.Sleep(10 * time.Millisecond)
		}
		gone <- time.Since(begun).Seconds()
	}()
	for _, step := range []struct {
		at *[]float64
		ok func(jobs.Status) bool
	}{
		{&n.lost, func(st jobs.Status) bool { return len(at(&st, id)) == 0 }},
		{&n.again, func(st jobs.Status) bool { return len(at(&st, "")) == virtualRanks }},
	} {
		if _, err := nodes.Await(ctx, 0, job, step.ok); err != nil {
			return err
		}
		*step.at = append(*step.at, time.Since(begun).Seconds())
	}
	n.dead = append(n.dead, <-gone)
	return nodes.Restart(victim)
}

// knows reports whether the first node knows another one.
func knows(ctx context.Context, nodes *testnet.Nodes, id vicinity.ID) bool {
	list, err := nodes.Service(0).Nodes(ctx)
	if err != nil {
		return false
	}
	for _, m := range list {
		if m.ID == id {
			return true
		}
	}
	return false
}
