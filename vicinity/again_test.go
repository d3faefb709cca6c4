package vicinity

import (
	"testing"
	"time"

	"zorilla/internal/seeds"
)

// A node that dies and comes back under its old identity, before others have missed it, is
// linked again soon: what is said to its earlier life, and of it, may come late or get lost.
func TestNodeComesBack(t *testing.T) {
	seeds.Random(t, func(t *testing.T, seed uint64) {
		w := newNetwork(t, seed)
		w.slow = time.Duration(w.rnd.Int64N(int64(2 * time.Second)))
		w.loss = w.rnd.IntN(4) * 100
		a, b := w.add(0, 0, 0), w.add(0, 0, 0)
		w.run(time.Minute)
		b.down = true
		w.run(time.Duration(w.rnd.Int64N(int64(12 * time.Second))))
		b.down = false
		roster := new(Roster)
		b.core = NewCore(CoreConfig{Self: b.id, Peers: 256, Rand: seeded(seed, 9), Roster: roster}, w.now)
		w.wind(b)
		w.run(time.Duration(w.rnd.Int64N(int64(6 * time.Second))))
		roster.Add(a.id)
		w.sent(b, b.core.Join(w.now, a.id))
		var worst, gap time.Duration
		const step = 100 * time.Millisecond
		for range 2 * time.Minute / step {
			if w.run(step); len(a.core.Neighbours()) == 1 {
				gap = 0
			} else if gap += step; gap > worst {
				worst = gap
			}
		}
		if worst > 5*time.Second {
			t.Errorf("it had no link for %v (loss %d of 1000, late by up to %v)", worst, w.loss, w.slow)
		}
	})
}
