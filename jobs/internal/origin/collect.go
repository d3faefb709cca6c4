package origin

import (
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"zorilla/jobs"
	"zorilla/jobs/internal/core"
	"zorilla/jobs/internal/executor"
	"zorilla/jobs/internal/loop"
	"zorilla/jobs/internal/primary"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// tellFetch is how often it is told how far files are, at most.
const tellFetch = 250 * time.Millisecond

// maxFetches bounds the memory for output files of ranks that end together.
const maxFetches = 16

// collector brings output files here.
type collector struct {
	store transfer.PinStore
	fetch executor.FetchFunc
	log   zerolog.Logger
	loop  *loop.Loop
	core  *core.Core

	places chan struct{} // for fetches at the same time
}

// collect brings a rank's output files here. It runs in the loop.
func (c *collector) collect(j *job, e primary.DoCollect) {
	job, spec := j.Primary.Rec.ID, j.Primary.Rec.Spec
	c.loop.Go(func() {
		select {
		case c.places <- struct{}{}:
			defer func() { <-c.places }()
		case <-c.loop.Stopped.Done():
			return
		}
		err := c.bring(job, &spec, e)
		if err != nil && c.loop.Stopped.Err() == nil {
			c.log.Warn().Err(err).Str("job", string(job)).Int("rank", e.Output.Rank).Msg("fetch outputs; trying again")
		}
		c.loop.Post(func() {
			c.core.Update(time.Now(), job, func(p *primary.Primary) {
				p.Collected(time.Now(), jobs.RankAttempt{Rank: e.Output.Rank, Attempt: e.Output.Attempt}, err)
			})
		})
	})
}

// bring fetches them, and sees to it that they outlive the machine. It waits
// for the network, outside the loop.
func (c *collector) bring(job jobs.ID, spec *jobs.Spec, e primary.DoCollect) error {
	ra := jobs.RankAttempt{Rank: e.Output.Rank, Attempt: e.Output.Attempt}
	told := time.Now()
	tree, _, err := c.fetch(c.loop.Stopped, outputsOwner(job), e.Output.Manifest, []vicinity.ID{e.From}, func(so transfer.Stats) {
		if now := time.Now(); now.Sub(told) >= tellFetch {
			told = now
			c.loop.Post(func() {
				c.core.Update(now, job, func(p *primary.Primary) { p.Arriving(now, ra, so.Fetched+so.Cached) })
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
	for _, k := range tree.DistinctChunks() {
		if !c.store.Keep(k.Hash, true) {
			return fmt.Errorf("%w: %s, of which an input had a copy that has changed", transfer.ErrNotFound, k.Hash)
		}
	}
	return syncTree(c.store, tree, e.Output.Manifest)
}
