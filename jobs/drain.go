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
	s.call(func() { s.claims.drain() })
	if now {
		s.evict(reasonDraining)
	}
	s.notify()
}

// Undrain makes the node take workers again.
func (s *Service) Undrain() {
	s.call(func() {
		if s.claims.closed == reasonDraining {
			s.claims.closed = ""
			s.offerQueued()
		}
	})
	s.notify()
}

// Drained tells how far the node is.
func (s *Service) Drained() Drained {
	var d Drained
	s.call(func() {
		d.Draining = s.claims.closed == reasonDraining
		for _, j := range s.jobs {
			if !j.core.rec.state.Final() {
				d.Jobs++
			}
		}
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.works {
		w.mu.Lock()
		silent := s.now().Sub(w.heard) > partLease
		for _, k := range w.workers {
			if !k.declined || !silent { // a stopped node tells that in its next life, if anybody asks
				d.Workers++
			}
		}
		w.mu.Unlock()
	}
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
