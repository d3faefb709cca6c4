package agent_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"zorilla/flood"
	"zorilla/jobs"
	"zorilla/vicinity"
)

// Whoever has recorded all packets of a job, and sends them again, changes
// nothing: neither at a node that saw them nor at one that was restarted.
func TestRecordedPacketsHoldNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGrid(t, 3, 2)
		type packet struct {
			from    vicinity.ID
			flooded bool
			payload []byte
		}
		var mu sync.Mutex
		var recorded []packet
		g.tap = func(from vicinity.ID, flooded bool, payload []byte) {
			mu.Lock()
			defer mu.Unlock()
			recorded = append(recorded, packet{from, flooded, payload})
		}
		id := g.submit(0, jobs.Spec{Args: []string{"tick", "2"}, Min: 4, Max: 4})
		g.await(0, id, time.Minute, func(st jobs.Status) bool { return st.State == jobs.Completed })
		mu.Lock()
		record := recorded
		mu.Unlock()
		replay := func(to *gridNode) {
			before := to.service.Busy()
			for _, p := range record {
				switch {
				case p.from == to.self.ID:
				case !p.flooded:
					to.service.Receive(p.from, p.payload)
				case to.service.CheckAdvertisement(p.from, p.payload) == nil:
					to.service.Advertised(flood.Message{Payload: p.payload, TTL: 1, Hops: 1})
				}
				synctest.Wait()
				if busy := to.service.Busy(); busy > before {
					t.Errorf("node %s holds %d slots, %d before", to.self.Name, busy, before)
				}
			}
			if q := to.service.Queue(); len(q) > 0 {
				t.Errorf("node %s queues %v", to.self.Name, q)
			}
		}
		time.Sleep(5 * time.Second)
		g.node(1).stop()
		g.node(1).start()
		replay(g.node(1)) // at once
		time.Sleep(16 * time.Minute)
		for i := range 3 {
			replay(g.node(i))
		}
		floods := 0
		for _, p := range record {
			if p.flooded {
				floods++
			}
		}
		if floods == 0 || floods == len(record) {
			t.Errorf("recorded %d packets, %d of them advertisements", len(record), floods)
		}
		for i := range 3 {
			g.node(i).stop()
		}
	})
}
