package sim

import (
	"testing"
	"time"

	"zorilla/internal/seeds"
)

// near returns the near links of all nodes.
func near(o *Overlay) map[[2]int]bool {
	links := make(map[[2]int]bool)
	for i := range o.Len() {
		for _, nb := range o.Neighbours(i) {
			if k, _ := o.Index(nb.ID); !nb.Far && i < k {
				links[[2]int{i, k}] = true
			}
		}
	}
	return links
}

// exchanged counts the links that are gone.
func exchanged(before, now map[[2]int]bool) (n int) {
	for link := range before {
		if !now[link] {
			n++
		}
	}
	return n
}

func TestNoiseChangesNoLinksInTheCalm(t *testing.T) {
	seeds.OneGoroutine(t)
	o := start(t, SixSites(90, false), 11)
	o.Run(90 * time.Second)
	before := near(o)
	o.Run(5 * time.Minute)
	if n := exchanged(before, near(o)); n > len(before)/100 {
		t.Errorf("%d of %d near links were exchanged in five calm minutes", n, len(before))
	}
}

// A third of the hosts, always others, answer up to 40 ms late for 10 s: more
// than the sites are apart.
func TestBusyHostsKeepTheirRank(t *testing.T) {
	seeds.OneGoroutine(t)
	o := start(t, SixSites(90, false), 12)
	o.Run(60 * time.Second)
	before := near(o)
	for range 12 {
		for _, i := range o.Rand().Perm(o.Len())[:o.Len()/3] {
			o.Busy(i, 10*time.Second, 40*ms)
		}
		o.Run(10 * time.Second)
		if q := o.Quality(6); q.Right < 0.99 {
			t.Fatalf("after %v %.3f of the near links are right", o.Elapsed(), q.Right)
		}
	}
	if n := exchanged(before, near(o)); n > len(before)/20 {
		t.Errorf("%d of %d near links were exchanged because hosts were busy", n, len(before))
	}
}

func TestLostDoubledAndReorderedPackets(t *testing.T) {
	seeds.OneGoroutine(t)
	o := NewOverlay(OverlayConfig{Layout: SixSites(90, true), Seed: 13, Noise: Noise{
		Jitter: 0.2, Queue: 100 * time.Microsecond, Spikes: 0.05, Spike: 50 * ms, Loss: 0.1, Doubled: 0.1,
	}})
	o.Run(40 * time.Second)
	if q := o.Quality(6); q.Right < 0.97 || q.Reached < 1 {
		t.Errorf("seed 13: %+v", q)
	}
	for i := range o.Len() {
		if s := o.Core(i).Stats(); s.Malformed+s.Absurd+s.Strangers+s.Excess > 0 {
			t.Errorf("seed 13: node %d counts %+v", i, s)
		}
	}
}
