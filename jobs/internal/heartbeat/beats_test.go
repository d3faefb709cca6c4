package heartbeat

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// A barrier takes a node two beats, the one that is overtaken and the one that says that its
// ranks wait, however many ranks it has and whatever they put.
func TestBeatsOfABarrier(t *testing.T) {
	const barriers = 10
	for _, each := range []int{1, 8} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1, 3, each)
			beats := make([]atomic.Int64, len(w.nodes))
			for n, k := range w.keepers {
				send := k.Send
				k.Send = func(ctx context.Context, to vicinity.ID, b *wire.Beat) (wire.BeatAnswer, error) {
					beats[n].Add(1)
					return send(ctx, to, b)
				}
			}
			w.run(w.meetings(barriers))
			for n := range beats {
				switch sent := beats[n].Load(); {
				case n == 0 && sent != 0:
					t.Errorf("the hub sends itself %d beats", sent)
				case n > 0 && (sent < barriers || sent > 2*barriers+4):
					t.Errorf("%d ranks at each node, %d barriers: node %d sends %d beats", each, barriers, n, sent)
				}
			}
			w.idle()
		})
	}
}
