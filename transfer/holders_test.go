package transfer

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"zorilla/vicinity"
)

// TestHolderThatMissedIsAskedAgainSoon: nodes that fetch the same tree at the
// same time share it only if one that has not got a blob yet is not given up.
func TestHolderThatMissedIsAskedAgainSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const origin, peer = vicinity.ID("zorigin"), vicinity.ID("zpeer")
		keep := func(int, func(i, j int)) {}
		first := func(r *roster) vicinity.ID { return r.order(keep)[0] }
		r := newRoster([]vicinity.ID{peer, origin})
		r.failed(peer, fmt.Errorf("chunk: %w", ErrNotFound))
		if got := first(r); got != origin {
			t.Errorf("right after a miss %s is asked first, want the origin", got)
		}
		time.Sleep(missPause)
		if got := first(r); got != peer {
			t.Errorf("after the pause %s is asked first, want the order of chance", got)
		}
		r.failed(peer, errors.New("connection refused"))
		time.Sleep(time.Hour)
		if got := first(r); got != origin {
			t.Errorf("after a failure %s is asked first, want the origin", got)
		}
		r.worked(peer)
		if got := first(r); got != peer {
			t.Errorf("a holder that works again is not asked in its turn")
		}
		r.failed(peer, ErrMismatch)
		if got := r.order(keep); len(got) != 1 || got[0] != origin {
			t.Errorf("a holder that lied is still among %v", got)
		}
	})
}
