package agent

import (
	"context"
	"sync"
	"time"

	"zorilla/jobs/internal/peer"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

const (
	// signedWithin is how far from now a node's advertisements may be signed,
	// by its own clock: what was recorded earlier calls for nobody any more.
	// While it lasts, and for longer, package flood knows them again.
	signedWithin = time.Minute
	// clockAgain is how often the same node is asked for its clock at most.
	clockAgain   = time.Minute
	clockTimeout = 5 * time.Second
	maxClocks    = 4096
)

// clocks knows what other nodes' clocks show: as much as this one's, unless they
// were asked. It is a core, and guarded by its mutex.
type clocks struct {
	mu     sync.Mutex
	began  time.Time // of this node; what was signed before is not for this life of it
	asking int
	known  map[vicinity.ID]farClock
}

type farClock struct {
	ahead time.Duration
	asked time.Time
}

func newClocks(began time.Time) *clocks {
	return &clocks{began: began, known: map[vicinity.ID]farClock{}}
}

// fresh reports whether what a node has signed, in milliseconds since 1970 by
// its own clock, was signed just now.
func (c *clocks) fresh(now time.Time, from vicinity.ID, signed int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := time.UnixMilli(signed).Add(-c.known[from].ahead)
	// How long this life lasts does not hang on the wall clock, which may have
	// been wrong when it began.
	since := min(signedWithin, now.Sub(c.began)+time.Millisecond)
	return !at.Before(now.Add(-since)) && !at.After(now.Add(signedWithin))
}

// ask reports whether the node should be asked for its clock now; told, or
// silent, has to be called then.
func (c *clocks) ask(now time.Time, id vicinity.ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	f, known := c.known[id]
	if known && now.Sub(f.asked) < clockAgain || c.asking >= wire.MaxClockAsked {
		return false
	}
	for other := range c.known {
		if known || len(c.known) < maxClocks {
			break
		}
		delete(c.known, other)
	}
	c.asking++
	f.asked = now
	c.known[id] = f
	return true
}

// answered takes the answer, which came at now to a question of so long before.
func (c *clocks) answered(now time.Time, took time.Duration, id vicinity.ID, clock int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asking--
	f := c.known[id]
	f.ahead = time.UnixMilli(clock).Sub(now.Add(-took / 2).Round(0))
	c.known[id] = f
}

// silent says that there is no answer.
func (c *clocks) silent() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asking--
}

func (s *Service) clockAsked(vicinity.ID, *wire.AskClock) (any, error) {
	return wire.Clock{Now: time.Now().UnixMilli()}, nil
}

// askClock asks the origin of an advertisement for its clock.
func (s *Service) askClock(ad wire.Advertisement) {
	s.overlay.Learn(ad.Origin(), ad.Addrs)
	s.loop.Go(func() {
		ctx, cancel := context.WithTimeout(s.loop.Stopped, clockTimeout)
		defer cancel()
		began := time.Now()
		var c wire.Clock
		if err := s.peers.Send(ctx, ad.Origin(), peer.PathClock, wire.AskClock{}, &c); err != nil {
			s.clocks.silent()
			return
		}
		now := time.Now()
		s.clocks.answered(now, now.Sub(began), ad.Origin(), c.Now)
	})
}

// tooLate asks for the clock of an origin whose advertisement was not signed
// just now as far as its clock is known. The next one finds it known.
func (s *Service) tooLate(ad wire.Advertisement) {
	if s.clocks.ask(time.Now(), ad.Origin()) && !s.loop.TryPost(func() { s.askClock(ad) }) {
		s.clocks.silent()
	}
}
