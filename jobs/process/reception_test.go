package process

import (
	"net"
	"testing"
	"testing/synctest"
	"time"
)

type guest struct{}

func (guest) serve(net.Conn, message, int) {}

// Who asks for a worker that is coming waits for it, and only then.
func TestWorkersThatAreComingAreWaitedFor(t *testing.T) {
	for name, c := range map[string]struct {
		coming int
		happen func(r *reception)
		found  bool
		took   time.Duration
	}{
		"it is not coming":     {found: false},
		"it comes":             {coming: 1, happen: func(r *reception) { r.open("key", guest{}) }, found: true, took: time.Second},
		"another one comes":    {coming: 1, happen: func(r *reception) { r.open("other", guest{}) }, took: time.Second},
		"it does not begin":    {coming: 1, happen: func(r *reception) { r.close("key") }, took: time.Second},
		"it comes as the last": {coming: 2, happen: func(r *reception) { r.open("other", guest{}); r.close("other"); r.open("key", guest{}) }, found: true, took: time.Second},
		"it never comes":       {coming: 1, happen: func(*reception) {}, took: helloWithin},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newReception()
			for range c.coming {
				r.expect()
			}
			if c.happen != nil {
				time.AfterFunc(time.Second, func() { c.happen(r) })
			}
			began := time.Now()
			if got := r.find("key"); (got != nil) != c.found || time.Since(began) != c.took {
				t.Errorf("%s: found %v after %v", name, got, time.Since(began))
			}
		})
	}
}
