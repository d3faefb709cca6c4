package exchange_test

import (
	"testing"
	"testing/synctest"
	"time"

	"zorilla/internal/seeds"
)

// However little the owner of an origin lets it send, all who fetch have the tree in the
// end: who waits long for its turn does not give up, and nobody is taken for broken.
func TestManyFetchOfOneThatIsLimited(t *testing.T) {
	seed := seeds.One(t)
	const size = 256 << 10
	for name, c := range map[string]struct {
		nodes, chunks int
		limit         int64
		all           bool // are limited
	}{"the least": {6, 10, 64 << 10, false}, "one for each": {12, 20, 64 << 10, true}, "with few chunks": {40, 2, 64 << 10, false}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, c.nodes+1, seed)
				w.speed = 100 << 20
				tree, m := w.treeOf(c.chunks, size)
				for i, n := range w.nodes {
					if i == 0 || c.all {
						n.limit.Limit(c.limit)
					}
				}
				took := w.fetch(tree, m)
				sent := w.nodes[0].limit.Stats().Sent
				t.Logf("seed %d: %v, the origin sent %.2f copies with %.0f bytes/s", seed, took, float64(sent)/float64(m.Size()), float64(sent)/took.Seconds())
				if rate := float64(sent) / took.Seconds(); rate > 1.05*float64(c.limit) || !c.all && rate < 0.9*float64(c.limit) {
					t.Errorf("seed %d: the origin sent %.0f bytes/s, want %d", seed, rate, c.limit)
				}
				if most := time.Duration(sent) * time.Second / time.Duration(c.limit); c.all && took > 5*most/2 {
					t.Errorf("seed %d: it took %v, the origin sent for %v", seed, took, most)
				}
			})
		})
	}
}
