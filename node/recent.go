package node

import (
	"context"
	"sync"
	"time"

	"zorilla/node/api"
)

const (
	recently    = 10 * time.Minute
	sampleEvery = time.Minute
)

// recent remembers what was counted until some time ago, so that bad messages
// can be told that come now from those that came once.
type recent struct {
	mu      sync.Mutex // guards samples
	samples []sample   // the oldest first
}

// sample is what all counters were at some time.
type sample struct {
	at     time.Time
	values []int64
}

// note takes a sample, and drops those that are not needed any more: of those
// that are old enough to be compared with, the last one is.
func (r *recent) note(now time.Time, t api.Traffic) {
	s := sample{at: now, values: make([]int64, len(t))}
	for i := range t {
		s.values[i] = t[i].Value
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.samples = append(r.samples, s)
	for len(r.samples) > 1 && now.Sub(r.samples[1].at) >= recently {
		r.samples = r.samples[1:]
	}
}

// fill writes down how many bad messages have come recently, or since the node
// started if that was less long ago.
func (r *recent) fill(now time.Time, t api.Traffic) api.Traffic {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := make([]int64, len(t))
	for _, s := range r.samples {
		if now.Sub(s.at) >= recently {
			before = s.values
		}
	}
	for i := range t {
		if t[i].Bad {
			t[i].Recent = t[i].Value - before[i]
		}
	}
	return t
}

// watch takes samples until ctx ends.
func (r *recent) watch(ctx context.Context, traffic func() api.Traffic) error {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for {
		r.note(time.Now(), traffic())
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}
