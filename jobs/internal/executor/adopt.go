package executor

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"zorilla/jobs/internal/participant"
	"zorilla/jobs/process"
	"zorilla/jobs/remover"
	"zorilla/transfer"
)

// Adopt finds the workers of an earlier life of this node, and removes what is not
// theirs; their inputs are pinned. It must be called before the loop runs, so that
// nothing is offered of what they use.
func (x *Executor) Adopt(adopt func(participant.ClaimRecord)) error {
	roots, err := rootsIn(x.cfg.Dir, x.cfg.Self.ID)
	if err != nil {
		return err
	}
	for root := range roots { // before anything is removed, which may fail
		x.cfg.Users.Known(jobOf(root), root, process.UserOf(root))
	}
	pace := remover.Budget(atStart)
	for _, shared := range []bool{false, true} { // of which those stay that a worker has
		for _, root := range slices.Sorted(maps.Keys(roots)) {
			if isSharedName(filepath.Base(root)) != shared || x.sharing.has(root) {
				continue
			}
			if err := x.adoptRoot(root, roots[root], pace, adopt); err != nil {
				x.cfg.Log.Error().Err(err).Msg(failedToRemove)
			}
		}
	}
	return nil
}

const (
	// atStart is how many files are removed before a node begins: it has no time for more.
	atStart        = 2000
	failedToRemove = "remove an old work directory"
)

// adoptRoot goes on with the worker of a root, or removes what is left of it.
func (x *Executor) adoptRoot(root string, kind rootKind, pace remover.Pace, adopt func(participant.ClaimRecord)) error {
	log := x.cfg.Log.With().Str("dir", filepath.Base(root)).Logger()
	switch kind {
	case bare:
		return os.Remove(root) // nothing else, should there be something by now
	case copied:
		log.Warn().Msg("the copy of a worker's directory is removed: the worker is where the original is")
		return x.discard(root, pace)
	}
	c, err := participant.LoadClaim(root)
	switch {
	case err == nil:
		if _, err := transfer.PinManifest(x.cfg.Store, inputsPin(c.Job), c.Spec.Inputs); err != nil { // until DoForgetWork
			log.Debug().Err(err).Msg("what the inputs of a worker were is not here")
		}
		if shared := x.sharing.adopt(&c, root); shared != "" && c.Start != nil { // it has files of the job's user
			_, _ = x.cfg.Users.Number(string(c.Job), shared) // which there is
		}
		adopt(c)
		return nil
	case !errors.Is(err, os.ErrNotExist):
		log.Warn().Err(err).Msg("a worker of before cannot be followed: it is ended")
	}
	return x.discard(root, pace)
}

// discard ends what runs in a root, and removes what the pace allows; the rest later.
func (x *Executor) discard(root string, pace remover.Pace) error {
	leave := x.bin.Enter(root)
	takeBack(x.cfg.Store, root)
	err := x.cfg.CleanRoot(root, pace)
	if !remover.IsOverBudget(err) {
		defer leave()
		if err == nil {
			x.cfg.Users.Left(root)
		}
		return err
	}
	x.loop.Go(func() {
		defer leave()
		if x.loop.Ready(x.loop.Leaving) != nil {
			return
		}
		if err := x.clean(x.loop.Leaving, root); err != nil && !errors.Is(err, context.Canceled) {
			x.cfg.Log.Error().Err(err).Msg(failedToRemove)
		}
	})
	return nil
}

// clean removes a root, which must be had, and gives the job's user back if it was the
// last one. When ctx ends what is large is left to the next life of the node.
func (x *Executor) clean(ctx context.Context, root string) error {
	err := x.bin.Run(ctx, func(pace remover.Pace) error { return x.cfg.CleanRoot(root, pace) })
	if err == nil {
		x.cfg.Users.Left(root)
	}
	return err
}

// jobOf returns the name of a root's job.
func jobOf(root string) string {
	job, _, _ := strings.Cut(filepath.Base(root), "-")
	return job
}
