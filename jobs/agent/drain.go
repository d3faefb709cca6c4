package agent

import (
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/participant"
	"zorilla/jobs/internal/wire"
)

// Drain makes the node take no new workers. Those that it has go on; with now
// they are ended, and lost here; with discard, too, their programs have no notice of that.
func (s *Service) Drain(now, discard bool) {
	how := participant.WantEvict
	if discard {
		how |= participant.WantNow
	}
	s.loop.Call(func() {
		s.core.Drain(time.Now())
		if now {
			s.core.Part.EvictAll(time.Now(), how, wire.ReasonDraining)
		}
	})
	s.loop.Notify()
}

// Undrain makes the node take workers again.
func (s *Service) Undrain() {
	s.loop.Call(s.core.Claims.Undrain)
	s.loop.Notify()
}

// Drained reports how far the node is.
func (s *Service) Drained() jobs.Drained {
	var d jobs.Drained
	s.loop.Call(func() {
		d.Draining = s.core.Claims.Closed == wire.ReasonDraining
		for _, j := range s.core.Live.List {
			if !j.Primary.Rec.State.Final() {
				d.Jobs++
			}
		}
		for _, w := range s.core.Part.Works {
			silent := time.Since(w.Heard) > wire.PartLease
			for _, k := range w.Workers {
				if !k.Declined || !silent { // a stopped node tells that in its next life, if anybody asks
					d.Workers++
				}
			}
		}
	})
	return d
}
