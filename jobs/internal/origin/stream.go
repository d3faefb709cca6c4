package origin

import (
	"context"
	"slices"
	"sync"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/output"
	"zorilla/jobs/internal/wire"
)

// heldEvery is the least time between two messages of what has come.
const heldEvery = 5 * time.Millisecond

// inflow is a stream of output as it comes in.
type inflow struct {
	out  *output.File
	keep func(jobs.Output) error // if its worker still counts
	more chan struct{}           // capacity 1: there is something to tell

	mu    sync.Mutex         // guards what follows
	fresh []jobs.RankAttempt // of which there is more than was told
	all   []jobs.RankAttempt // that were told of
}

// notify wakes the goroutine that sends to the node what is here.
func (in *inflow) notify() {
	select {
	case in.more <- struct{}{}:
	default:
	}
}

// held waits until there is something to tell, not too often.
func (in *inflow) held(ctx context.Context) ([]wire.Held, error) {
	select {
	case <-in.more:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	in.mu.Lock()
	first := in.all == nil
	in.mu.Unlock()
	if !first {
		select {
		case <-time.After(heldEvery):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	in.mu.Lock()
	ras := in.fresh
	in.fresh = nil
	for _, ra := range ras {
		if !slices.Contains(in.all, ra) {
			in.all = append(in.all, ra)
		}
	}
	if ras == nil { // more of it is durable
		ras = slices.Clone(in.all)
	}
	in.mu.Unlock()
	return in.out.Held(ras), nil
}

// take keeps a piece.
func (in *inflow) take(p jobs.Output) error {
	if err := in.keep(p); err != nil {
		return err
	}
	ra := jobs.RankAttempt{Rank: p.Rank, Attempt: p.Attempt}
	in.mu.Lock()
	if !slices.Contains(in.fresh, ra) {
		in.fresh = append(in.fresh, ra)
	}
	in.mu.Unlock()
	in.notify()
	return nil
}
