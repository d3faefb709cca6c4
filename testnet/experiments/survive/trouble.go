package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"zorilla/jobs"
	"zorilla/testnet/hosts/lab"
)

// locate takes what runs by now.
func (r *runner) locate(where []jobs.WorkerStatus) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.where = where
	for _, w := range where {
		for i := range r.trial.Kills {
			for k := range r.trial.Kills[i].Ranks {
				if l := &r.trial.Kills[i].Ranks[k]; l.Back == 0 && l.Rank == w.Rank && l.Attempt < w.Attempt {
					l.Back = time.Since(r.begun).Seconds() - r.trial.Kills[i].At
				}
			}
		}
	}
}

// lose notes that a host dies, and what it has.
func (r *runner) lose(host, successor string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := loss{At: time.Since(r.begun).Seconds(), Host: host, Successor: successor}
	for _, w := range r.where {
		if w.Name == host {
			k.Ranks = append(k.Ranks, lostRank{Rank: w.Rank, Attempt: w.Attempt})
		}
	}
	r.trial.Kills = append(r.trial.Kills, k)
}

// trouble has a host die every so often, and another come in its place, from when all ranks are there
// until the run ends.
func (r *runner) trouble(ctx context.Context) error {
	if _, err := lab.Until(ctx, r.o.limit, "all ranks run", func(context.Context) string {
		r.mu.Lock()
		defer r.mu.Unlock()
		if want := r.ranks(); len(r.where) < want {
			return fmt.Sprintf("%d of %d do", len(r.where), want)
		}
		return ""
	}); err != nil {
		if ctx.Err() != nil {
			return nil // the run has ended
		}
		return err
	}
	tick := time.NewTicker(r.o.every)
	defer tick.Stop()
	var all sync.WaitGroup
	defer all.Wait()
	failed := make(chan error, 1)
	for kills := 0; r.o.most == 0 || kills < r.o.most; kills++ {
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			return err
		case <-tick.C:
		}
		lost, successor, err := r.fleet.victim()
		if err != nil {
			return err
		}
		r.lose(lost.Name, successor)
		all.Go(func() {
			err := lost.Crash()
			if err == nil {
				err = r.fleet.start(ctx, successor)
			}
			if err != nil && ctx.Err() == nil {
				select {
				case failed <- err:
				default:
				}
			}
		})
	}
	return nil
}
