package jobs

// Drained is how far a node is with becoming empty.
type Drained struct {
	Draining bool `json:"draining"`
	Workers  int  `json:"workers"` // that are here still, or of which something is to be told
	Jobs     int  `json:"jobs"`    // that were submitted here and have not ended
}

// Drain makes the node take no new workers. Those that it has go on; with now
// they are ended, and their origins told at once that they are lost here.
func (s *Service) Drain(now bool) {
	s.call(func() {
		s.core.claims.drain()
		if now {
			s.core.part.evictAll(s.now(), reasonDraining)
		}
	})
	s.notify()
}

// Undrain makes the node take workers again.
func (s *Service) Undrain() {
	s.call(s.core.undrain)
	s.notify()
}

// Drained tells how far the node is.
func (s *Service) Drained() Drained {
	var d Drained
	s.call(func() {
		d.Draining = s.core.claims.closed == reasonDraining
		for _, j := range s.core.live.list {
			if !j.core.rec.state.Final() {
				d.Jobs++
			}
		}
		for _, w := range s.core.part.works {
			silent := s.now().Sub(w.heard) > partLease
			for _, k := range w.workers {
				if !k.declined || !silent { // a stopped node tells that in its next life, if anybody asks
					d.Workers++
				}
			}
		}
	})
	return d
}

// drain takes all offers back and makes no new ones. Origins learn of it when
// their grants are refused.
func (c *claims) drain() {
	if c.closed == "" {
		c.closed = reasonDraining
	}
	clear(c.holds)
}
