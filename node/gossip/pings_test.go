package gossip

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// TestLostPingsAreSentAgain: where packets are lost a probe costs another packet
// instead of a call by TCP; and who is far is given the time that he needs.
func TestLostPingsAreSentAgain(t *testing.T) {
	for _, tc := range []struct {
		latency     time.Duration
		loss        float64
		least, most int64 // pings sent again by each of two nodes in 20 minutes
	}{
		{50 * time.Millisecond, 0, 0, 0}, {50 * time.Millisecond, 0.2, 200, 600}, {190 * time.Millisecond, 0, 1, 10}, {time.Microsecond, 0.2, 200, 600},
	} {
		synctest.Test(t, func(t *testing.T) {
			const seed = 5
			t.Logf("seed %d, %+v", seed, tc)
			f := newFabric(tc.latency)
			nodes := startMany(t, f, 2)
			for _, n := range nodes {
				n.knows(t, 1, time.Minute)
			}
			rnd := rand.New(rand.NewPCG(seed, 1))
			f.mu.Lock()
			f.lose, f.dials = func() bool { return rnd.Float64() < tc.loss }, 0
			f.mu.Unlock()
			time.Sleep(20 * time.Minute)
			f.mu.Lock()
			calls := f.dials - 2*20*2 // exchanges of state, one in 30 s
			f.lose = nil
			f.mu.Unlock()
			t.Logf("%d calls by TCP", calls)
			if calls > 100 { // each sixth probe would be 320
				t.Errorf("%d calls by TCP", calls)
			}
			for i, n := range nodes {
				again := n.Stats()["pings sent again"]
				if again < tc.least || again > tc.most {
					t.Errorf("%d pings were sent again, want %d to %d", again, tc.least, tc.most)
				}
				n.rmu.Lock()
				other := nodes[1-i].ID()
				if d := n.slowest[other]; d != 2*tc.latency || n.left[other] > 0 {
					t.Errorf("a round trip of %v is told as up to %v; %d deaths", 2*tc.latency, d, n.left[other])
				}
				n.rmu.Unlock()
			}
			endAll(t, nodes)
		})
	}
}
