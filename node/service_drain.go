package node

import (
	"context"
	"time"

	"zorilla/jobs"
	"zorilla/node/api"
)

// Drain makes the node empty, or takes that back.
func (s *service) Drain(_ context.Context, d api.Drain) (jobs.Drained, error) {
	if err := d.Check(); err != nil {
		return jobs.Drained{}, err
	}
	s.n.exits.Store(d.Exit && !d.Undo)
	if d.Undo {
		s.n.jobs.Undrain()
	} else {
		s.n.jobs.Drain(d.Now)
	}
	return s.n.jobs.Drained(), nil
}

// stateDraining is what a node says of itself while it takes no new workers.
const stateDraining = "draining"

// lastWord is the time for whoever asked a node to stop to get an answer.
const lastWord = 200 * time.Millisecond

// awaitDrained closes empty when the node was told to stop once it has no
// worker any more, and has none.
func (n *Node) awaitDrained(ctx context.Context, empty chan<- struct{}) error {
	isEmpty := func() bool {
		d := n.jobs.Drained()
		return n.exits.Load() && d.Draining && d.Workers == 0
	}
	var pause <-chan time.Time
	for {
		changed := n.jobs.Changes()
		switch empty := isEmpty(); {
		case !empty:
			pause = nil
		case pause == nil:
			pause = time.After(lastWord)
		}
		select {
		case <-pause:
			close(empty)
			return nil
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}
