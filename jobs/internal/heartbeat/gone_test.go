package heartbeat

import (
	"testing"
	"testing/synctest"
	"time"
)

// Ranks that meet no others go on without the hub, which knows nothing of rank 0 any more
// after its node was started again, since that had ended; and when that node is off for good.
func TestHubIsGone(t *testing.T) {
	for _, waits := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1, 3, 1)
			w.run(func(rank int, say func(string) string) {
				if got := say("cmd=barrier_in"); got != "cmd=barrier_out\n" {
					t.Errorf("rank %d: %q", rank, got)
				}
				time.Sleep(time.Second)
				if rank == 0 {
					go w.forget(0)
					return
				}
				time.Sleep(time.Minute)
				if rank == 1 && waits {
					go say("cmd=barrier_in")
					time.Sleep(time.Second)
				}
			})
			w.mu.Lock()
			const want = "ranks wait for those of node 0, which have ended"
			if why := w.lost[w.nodes[1]]; len(w.lost) > 1 || waits && why != want || !waits && why != "" {
				t.Errorf("one waits %t: %q", waits, w.lost)
			}
			w.mu.Unlock()
			w.idle()
		})
	}
}

// forget has a node be started again without anything of the gang, and be gone for good later.
func (w *world) forget(n int) {
	time.Sleep(Silence / 2)
	w.mu.Lock()
	w.gone[w.nodes[n]] = true
	w.mu.Unlock()
	w.start(n)
	time.Sleep(10 * time.Second)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut[w.nodes[n]] = true
}
