package origin

import (
	"fmt"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/primary"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// tellFetch is how often it is told how far files are, at most.
const tellFetch = 250 * time.Millisecond

// maxFetches bounds the memory for output files of ranks that end together.
const maxFetches = 16

// collect brings a rank's output files here.
func (o *Jobs) collect(job jobs.ID, e primary.DoCollect) {
	j := o.table.jobs[job]
	if j == nil {
		return
	}
	spec := j.Primary.Rec.Spec
	o.loop.Go(func() {
		select {
		case o.fetches <- struct{}{}:
			defer func() { <-o.fetches }()
		case <-o.loop.Stopped.Done():
			return
		}
		err := o.fetchOutputs(job, &spec, e)
		if err != nil && o.loop.Stopped.Err() == nil {
			o.log.Warn().Err(err).Str("job", string(job)).Int("rank", e.Output.Rank).Msg("fetch outputs; trying again")
		}
		o.loop.Post(func() {
			o.core.Update(time.Now(), job, func(p *primary.Primary) {
				p.Collected(time.Now(), jobs.RankAttempt{Rank: e.Output.Rank, Attempt: e.Output.Attempt}, err)
			})
		})
	})
}

// fetchOutputs fetches them, and sees to it that they outlive the machine. It waits
// for the network, outside the loop.
func (o *Jobs) fetchOutputs(job jobs.ID, spec *jobs.Spec, e primary.DoCollect) error {
	ra := jobs.RankAttempt{Rank: e.Output.Rank, Attempt: e.Output.Attempt}
	told := time.Now()
	tree, _, err := o.cfg.Fetch(o.loop.Stopped, outputsOwner(job), e.Output.Manifest, []vicinity.ID{e.From}, func(so transfer.Stats) {
		if now := time.Now(); now.Sub(told) >= tellFetch {
			told = now
			o.loop.Post(func() {
				o.core.Update(now, job, func(p *primary.Primary) { p.Arriving(now, ra, so.Fetched+so.Cached) })
			})
		}
	})
	if err != nil {
		return err
	}
	for _, f := range tree.Entries {
		if !spec.Wants(f.Path) {
			return fmt.Errorf("%w: %.80q", primary.ErrNotAsked, f.Path)
		}
	}
	if len(spec.Outputs) == 0 && (tree.Files() > jobs.MaxLeftFiles || tree.Size() > jobs.MaxLeftBytes) {
		return fmt.Errorf("%w: %d files, %d bytes", primary.ErrNotAsked, tree.Files(), tree.Size())
	}
	// What an output has in common with an input is read where that is, which its owner may
	// change now.
	for _, c := range tree.DistinctChunks() {
		if !o.store.Keep(c.Hash, true) {
			return fmt.Errorf("%w: %s, of which an input had a copy that has changed", transfer.ErrNotFound, c.Hash)
		}
	}
	return syncTree(o.store, tree, e.Output.Manifest)
}
