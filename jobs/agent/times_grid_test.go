package agent_test

import (
	"testing"
	"time"

	"zorilla/jobs"
)

// Who follows tasks, or ranks, as they write knows when that came, however often it has looked
// since the file last said what time it was.
func TestTimesOfWhatIsFollowed(t *testing.T) {
	bubble(t, 2, 4, func(t *testing.T, g *grid) {
		for _, spec := range []jobs.Spec{numbered(60, "0.01"), {Args: ticking(5), Min: 2, Max: 2}} {
			spec.Slots = 1
			began := time.Now()
			id := g.submit(0, spec)
			n, last := 0, int64(0)
			err := g.node(0).service.Output(t.Context(), id, jobs.OutputQuery{Rank: -1, Follow: true}, func(o jobs.Output) error {
				n++
				if o.At < began.UnixMilli() || o.At > time.Now().UnixMilli() {
					t.Errorf("%q came at %d, between %d and %d", o.Data, o.At, began.UnixMilli(), time.Now().UnixMilli())
				}
				last = o.At
				return nil
			})
			if err != nil || n < 10 || last == began.UnixMilli() {
				t.Errorf("%d pieces, %v", n, err)
			}
			err = g.node(0).service.Output(t.Context(), id, jobs.OutputQuery{Rank: -1, Since: last}, func(o jobs.Output) error {
				if n--; o.At < last {
					t.Errorf("%q of %d is older than %d", o.Data, o.At, last)
				}
				return nil
			})
			if err != nil || n <= 0 {
				t.Errorf("%d pieces are not told, %v", n, err)
			}
		}
	})
}
