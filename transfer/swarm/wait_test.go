package swarm

import (
	"testing"
	"time"
)

// A holder that says that what was asked of it will come keeps a fetch from being given up.
func TestWhoWaitsIsNotLost(t *testing.T) {
	s := newStage(t, 2, 1)
	s.p.Add("a")
	patience := s.p.cfg.Patience
	s.now = s.now.Add(patience - time.Second)
	s.p.Waits(s.now)
	for after, want := range map[time.Duration]bool{2 * time.Second: false, patience - time.Second: false, patience: true} {
		if got := s.p.Lost(s.now.Add(after)); got != want {
			t.Errorf("%v after it said so the fetch is lost: %v", after, got)
		}
	}
}
