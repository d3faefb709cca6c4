package heartbeat

import (
	"testing"
	"testing/synctest"
	"time"
)

// A rank that fails takes all others along though the origin hears nothing, also those that
// wait for it in no barrier.
func TestRankFails(t *testing.T) {
	for i := range 6 {
		synctest.Test(t, func(t *testing.T) {
			gone, w := i, newWorld(t, 1, 3, 2)
			w.codes[gone] = 7
			var ended time.Time
			w.run(func(rank int, say func(string) string) {
				if got := say("cmd=barrier_in"); got != "cmd=barrier_out\n" {
					t.Errorf("rank %d: %q", rank, got)
				}
				time.Sleep(time.Minute)
				if rank == gone {
					w.mu.Lock()
					ended = time.Now()
					w.mu.Unlock()
					return
				}
				for say("cmd=get kvsname=k key=none") != "" { // its connection is closed when it is ended
					time.Sleep(10 * time.Millisecond)
				}
				w.mu.Lock()
				defer w.mu.Unlock()
				if late := time.Since(ended); late > 200*time.Millisecond {
					t.Errorf("rank %d has failed, and rank %d goes on for %v", gone, rank, late)
				}
			})
			w.mu.Lock()
			for n, id := range w.nodes {
				if w.lost[id] != "it ended with 7" || !w.failed[id] {
					t.Errorf("rank %d has failed, and node %d says %q, %t", gone, n, w.lost[id], w.failed[id])
				}
			}
			w.mu.Unlock()
			w.idle()
		})
	}
}

// A node whose ranks ended well takes nobody along, and what is lost later is no failure.
func TestRanksEndOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 3, 1)
		w.run(func(rank int, say func(string) string) {
			say("cmd=barrier_in")
			time.Sleep(time.Duration(rank+1) * 10 * time.Second)
		})
		w.mu.Lock()
		if len(w.lost) > 0 {
			t.Errorf("lost: %v", w.lost)
		}
		w.mu.Unlock()
		w.idle()
	})
}
