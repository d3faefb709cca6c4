package sim

import (
	"testing"
	"time"

	"zorilla/internal/seeds"
)

// Where a few hosts are nearest to many, not all can have links with them: they know whom
// they would want, ask ever more rarely, and send no more than others in the calm.
func TestHubsComeToRest(t *testing.T) {
	seeds.OneGoroutine(t)
	o := start(t, Home(100, 21), 21)
	o.Run(2 * time.Minute)
	before := o.Traffic().Bytes
	o.Run(2 * time.Minute)
	q, bytes := o.Quality(6), float64(o.Traffic().Bytes-before)/120/float64(o.Len())
	if bytes > 250 || q.Known < 0.99 || q.Right < 0.85 || q.Right == 1 || q.Reached < 1 {
		t.Errorf("%.0f bytes a second and node, %+v", bytes, q)
	}
}

func TestNodesThatChangePlacesAreFound(t *testing.T) {
	seeds.OneGoroutine(t)
	o := start(t, Line(90, 30, 2*ms), 22)
	o.Run(time.Minute)
	moved := o.Rand().Perm(o.Len())[:10]
	for i := 0; i < len(moved); i += 2 {
		o.Swap(moved[i], moved[i+1])
	}
	if q := o.Quality(6, moved...); q.Right > 0.5 || q.Known > 0.5 || q.Strict > q.Right || q.KnownStrict > q.Known {
		t.Errorf("nodes that have just moved: %+v", q)
	}
	o.Run(time.Minute)
	if q, all := o.Quality(6, moved...), o.Quality(6); q.Right < 0.98 || q.Known < 0.98 || all.Known < 0.99 {
		t.Errorf("a minute later: %+v, of all %+v", q, all)
	}
}
