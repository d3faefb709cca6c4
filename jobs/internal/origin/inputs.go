package origin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"zorilla/internal/sanitize"
	"zorilla/jobs"
	"zorilla/jobs/internal/wire"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// What happens when the disk of an origin loses inputs of a job that it has
// accepted: its nodes cannot get them, and asking more nodes does not help. They are
// fetched back from nodes that have them, or the job fails.

// mendFor bounds how long inputs are fetched back.
const mendFor = 5 * time.Minute

// inputsChanged looks after the jobs that lost inputs because a file of the user
// changed. It may be called from any goroutine.
func (o *Jobs) inputsChanged(owners []string) {
	for _, owner := range owners {
		if id, ours := strings.CutPrefix(owner, inputsOwner("")); ours {
			o.loop.Post(func() {
				if j := o.table.jobs[jobs.ID(id)]; j != nil && !j.Primary.Rec.State.Final() {
					o.mendInputs(j)
				}
			})
		}
	}
}

// lacksInputs reports whether a report may say that inputs could not be had. It runs
// in the loop.
func (j *job) lacksInputs(from vicinity.ID, rep *wire.Report) bool {
	return !j.Primary.Rec.Spec.Inputs.IsZero() && slices.ContainsFunc(rep.Workers, func(w wire.WorkerReport) bool {
		return w.State == jobs.WorkerLost && j.Primary.Rec.Owned(from, w.RankAttempt) && j.Primary.Rec.Ranks[w.Rank].State == jobs.WorkerPreparing
	})
}

// mendInputs looks whether the inputs are still here, and fetches back what is not
// from nodes that worked for the job. It runs in the loop.
func (o *Jobs) mendInputs(j *job) {
	if j.mending {
		return
	}
	j.mending = true
	id, inputs := j.Primary.Rec.ID, j.Primary.Rec.Spec.Inputs
	holders := slices.DeleteFunc(slices.Sorted(maps.Keys(j.Primary.Parts)), func(id vicinity.ID) bool { return id == o.self.ID })
	o.loop.Go(func() {
		lost := lostInput(o.store, inputs)
		if lost != "" {
			ctx, cancel := context.WithTimeout(o.loop.Stopped, mendFor)
			_, _, err := o.cfg.Fetch(ctx, inputsOwner(id), inputs, holders, nil)
			cancel()
			if o.loop.Stopped.Err() != nil {
				return
			}
			o.log.Error().Err(err).Msgf("job %s: %s; %d nodes were asked for it", id.Short(), lost, len(holders))
			if err == nil {
				lost = ""
			}
		}
		o.loop.Post(func() {
			if j.mending = false; j.Primary.Rec.State.Final() {
				o.store.Unpin(inputsOwner(id)) // which the fetch has pinned again, perhaps
			} else if lost != "" {
				j.Primary.InputLost(time.Now(), lost)
				o.core.Flush(time.Now(), j.Job)
			}
		})
	})
}

// lostInput reports which input file is not all here, and why, or returns "".
func lostInput(store transfer.PinStore, inputs transfer.Hash) string {
	const damaged = " is damaged: the disk of its origin lost some of it"
	tree, err := transfer.LoadManifest(store, inputs)
	if errors.Is(err, transfer.ErrNotFound) {
		return "the list of its input files" + damaged
	}
	for _, e := range tree.Entries {
		for _, h := range e.Blobs() {
			if store.Has(h) {
				continue
			}
			what := fmt.Sprintf("its input %.200q", e.Path)
			if why := store.Lost(h); why != nil {
				return sanitize.OneLine(fmt.Sprintf("%s is not what was submitted: %v", what, why))
			}
			return what + damaged
		}
	}
	return ""
}
