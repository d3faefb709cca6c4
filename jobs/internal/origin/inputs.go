package origin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"zorilla/internal/sanitize"
	"zorilla/jobs"
	"zorilla/jobs/internal/core"
	"zorilla/jobs/internal/executor"
	"zorilla/jobs/internal/loop"
	"zorilla/jobs/internal/wire"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// What happens when the disk of an origin loses inputs of a job that it has
// accepted: its nodes cannot get them, and asking more nodes does not help. They are
// fetched back from nodes that have them, or the job fails.

// mendFor bounds how long inputs are fetched back.
const mendFor = 5 * time.Minute

// inputs are the input files of the jobs that have not ended. The store keeps them, and what it
// lost is fetched back.
type inputs struct {
	self  vicinity.ID
	store transfer.PinStore
	fetch executor.FetchFunc
	log   zerolog.Logger
	loop  *loop.Loop
	core  *core.Core
	table *table

	mending map[jobs.ID]bool // jobs whose inputs are looked for
}

// load reads the list of input files, which is empty if there is none, and makes all of them
// durable.
func (in *inputs) load(list transfer.Hash) (tree transfer.Manifest, err error) {
	if list.IsZero() {
		return tree, nil
	}
	if tree, err = transfer.LoadManifest(in.store, list); err == nil {
		err = syncTree(in.store, tree, list)
	}
	if err != nil {
		return tree, fmt.Errorf("%w: inputs: %w", jobs.ErrInvalid, err)
	}
	return tree, nil
}

// keep has the store keep inputs for a job, until drop.
func (in *inputs) keep(id jobs.ID, tree transfer.Manifest, list transfer.Hash) error {
	if list.IsZero() {
		return nil
	}
	needed := append(tree.Chunks(), list)
	in.store.Pin(inputsOwner(id), needed...)
	for _, h := range needed { // not evicted before they were pinned
		if !in.store.Has(h) {
			in.drop(id)
			return fmt.Errorf("%w: inputs: chunk %s: %w", jobs.ErrInvalid, h, transfer.ErrNotFound)
		}
	}
	return nil
}

// keepLeft is keep for a job of an earlier life of the node: what is missing is looked for later.
func (in *inputs) keepLeft(j *job) {
	if tree, err := transfer.PinManifest(in.store, inputsOwner(j.Primary.Rec.ID), j.Primary.Rec.Spec.Inputs); err == nil {
		j.SetInputs(tree.Distinct())
	}
}

// drop lets go of the inputs of a job.
func (in *inputs) drop(id jobs.ID) { in.store.Unpin(inputsOwner(id)) }

// of returns what is kept for a job.
func (in *inputs) of(id jobs.ID) []transfer.Hash { return in.store.Pinned(inputsOwner(id)) }

// changed looks after the jobs that lost inputs because a file of the user
// changed. It may be called from any goroutine.
func (in *inputs) changed(owners []string) {
	for _, owner := range owners {
		if id, ours := strings.CutPrefix(owner, inputsOwner("")); ours {
			in.loop.Post(func() {
				if j := in.table.get(jobs.ID(id)); j != nil && !j.Primary.Rec.State.Final() {
					in.mend(j)
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

// mend looks whether the inputs are still here, and fetches back what is not
// from nodes that worked for the job. It runs in the loop.
func (in *inputs) mend(j *job) {
	id, list := j.Primary.Rec.ID, j.Primary.Rec.Spec.Inputs
	if in.mending[id] {
		return
	}
	in.mending[id] = true
	holders := slices.DeleteFunc(slices.Sorted(maps.Keys(j.Primary.Parts)), func(id vicinity.ID) bool { return id == in.self })
	in.loop.Go(func() {
		lost := lostInput(in.store, list)
		if lost != "" {
			ctx, cancel := context.WithTimeout(in.loop.Stopped, mendFor)
			_, _, err := in.fetch(ctx, inputsOwner(id), list, holders, nil)
			cancel()
			if in.loop.Stopped.Err() != nil {
				return
			}
			in.log.Error().Err(err).Msgf("job %s: %s; %d nodes were asked for it", id.Short(), lost, len(holders))
			if err == nil {
				lost = ""
			}
		}
		in.loop.Post(func() {
			if delete(in.mending, id); j.Primary.Rec.State.Final() {
				in.drop(id) // which the fetch has pinned again, perhaps
			} else if lost != "" {
				j.Primary.InputLost(time.Now(), lost)
				in.core.Flush(time.Now(), j.Job)
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
