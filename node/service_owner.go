package node

import (
	"context"
	"sync/atomic"
	"time"

	"zorilla/internal/uplink"
	"zorilla/jobs"
	"zorilla/jobs/agent"
	"zorilla/node/api"
)

// ownerService is what the machine's owner asks of the node.
type ownerService struct {
	owner *owner
	jobs  *agent.Service
	up    *uplink.Uplink
	exits atomic.Bool // the node is to stop once it is drained
}

// Limits returns what the owner allows.
func (s *ownerService) Limits(context.Context) (jobs.Limits, error) { return s.owner.get(), nil }

// SetLimits changes what the owner allows.
func (s *ownerService) SetLimits(_ context.Context, changes []string) (jobs.Limits, error) {
	err := s.owner.change(changes, func(l jobs.Limits) {
		s.jobs.SetLimits(l)
		s.up.Limit(l.UploadLimit)
	})
	if err != nil {
		return jobs.Limits{}, err
	}
	return s.owner.get(), nil
}

// Queue lists what waits here.
func (s *ownerService) Queue(context.Context) ([]jobs.Waiting, error) { return s.jobs.Queue(), nil }

// Drain makes the node empty, or takes that back.
func (s *ownerService) Drain(_ context.Context, d api.Drain) (jobs.Drained, error) {
	if err := d.Check(); err != nil {
		return jobs.Drained{}, err
	}
	s.exits.Store(d.Exit && !d.Undo)
	if d.Undo {
		s.jobs.Undrain()
	} else {
		s.jobs.Drain(d.Now, d.Discard)
	}
	return s.jobs.Drained(), nil
}

// lastWord is the time for whoever asked a node to stop to get an answer.
const lastWord = 200 * time.Millisecond

// awaitDrained closes empty when the node was told to stop once it has no
// worker any more, and has none.
func (s *ownerService) awaitDrained(ctx context.Context, empty chan<- struct{}) error {
	isEmpty := func() bool {
		if !s.exits.Load() { // the rest is dear where there are many jobs
			return false
		}
		d := s.jobs.Drained()
		return d.Draining && d.Workers == 0
	}
	var pause <-chan time.Time
	for {
		changed := s.jobs.Changes()
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

// What a node says of itself while it takes no new workers: it is to become
// empty, its owner lets none in, now or at all, or it cannot start any.
const (
	stateDraining = "draining"
	statePaused   = "paused"
	stateBroken   = "broken"
	stateHours    = api.StateHours
)

// state is how the node is, in a word or two; "" = as usual. why says more of one
// that is broken, and until when one is outside of its owner's hours.
func (s *ownerService) state() (state, why string) {
	switch why := s.jobs.Broken(); {
	case s.jobs.Drained().Draining:
		return stateDraining, ""
	case why != "":
		return stateBroken, why
	case s.owner.get().Paused:
		return statePaused, ""
	}
	if shut, until := s.jobs.Shut(); shut {
		return stateHours, "until " + until.Format("Mon 15:04 MST")
	}
	return "", ""
}
