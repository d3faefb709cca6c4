package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"zorilla/flood"
	"zorilla/testnet"
	"zorilla/testnet/sim"
	"zorilla/vicinity"
)

// nearWanted is how many near neighbours a node wants.
const nearWanted = 6

// bareCores measures a network of vicinity cores, which have all known each
// other since the start, and one of flood cores on their neighbours.
func bareCores(n int, seed uint64) (row, error) {
	r := row{kind: "cores", nodes: n}
	empty, real, cpu := heap(), testnet.RealTime(), testnet.CPUTime()
	o := sim.NewOverlay(sim.OverlayConfig{Layout: sim.SixSites(n, false), Seed: seed, Noise: sim.Usual()})
	for r.right = 0; r.right == 0; {
		o.Run(time.Second)
		switch {
		case o.Quality(nearWanted).Right >= enough:
			r.right = o.Elapsed()
		case o.Elapsed() > rightLimit:
			return r, fmt.Errorf("%.4f of the neighbours right after %v", o.Quality(nearWanted).Right, rightLimit)
		}
	}
	o.Run(warmUp - o.Elapsed())
	r.coming = testnet.CPUTime() - cpu
	r.heap = max(0, heap()-empty) / int64(n)

	cpu = testnet.CPUTime()
	before := o.Traffic()
	o.Run(calm)
	r.cpu = testnet.CPUTime() - cpu
	per := float64(n) * calm.Seconds()
	sent := float64(o.Traffic().Bytes-before.Bytes) / per
	r.calm = rates{bytes: sent, packets: float64(o.Traffic().Packets-before.Packets) / per, vicinity: sent}
	r.final = o.Quality(nearWanted).Right
	var err error
	r.flood, err = floodCores(o, seed)
	r.virtual, r.took = o.Elapsed(), testnet.RealTime()-real
	return r, err
}

// floodCores floods from the first node over the neighbour sets as they are.
func floodCores(o *sim.Overlay, seed uint64) (testnet.FloodReport, error) {
	var report testnet.FloodReport
	begun := o.Now()
	cores := make([]*flood.Core, o.Len())
	for i := range cores {
		links := o.Neighbours(i)
		ids := make([]vicinity.ID, len(links))
		for k, nb := range links {
			ids[k] = nb.ID
		}
		cores[i] = flood.NewCore(flood.Config{
			Self: o.ID(i), Rand: rand.New(rand.NewPCG(seed, uint64(i))),
			Neighbours: func() []vicinity.ID { return ids },
			Check:      func(vicinity.ID, []byte) error { return nil },
		})
	}
	var carry func(from int, out flood.Out)
	carry = func(from int, out flood.Out) {
		for _, id := range out.To {
			to, ok := o.Index(id)
			if !ok {
				continue
			}
			o.Send(from, to, func() {
				got := cores[to].Receive(o.Now(), 0, o.ID(from), out.Packet)
				if m := got.Deliver; m != nil {
					report.Arrived(*m, o.Now().Sub(begun))
				}
				carry(to, got)
			})
		}
	}
	_, out, err := cores[0].Start(o.Now(), floodRadius, flood.MaxLife, []byte("probe"))
	if err != nil {
		return report, err
	}
	carry(0, out)
	o.Run(2 * time.Second) // longer than any copy is on its way
	for _, c := range cores {
		report.Add(c.Stats())
	}
	if report.Reached != o.Len()-1 {
		return report, fmt.Errorf("a flood reached %d of %d nodes", report.Reached, o.Len()-1)
	}
	return report, nil
}
