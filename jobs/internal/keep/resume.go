package keep

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"zorilla/internal/atomicfile"
	"zorilla/jobs"
	"zorilla/jobs/disk"
	"zorilla/transfer"
	"zorilla/vicinity"
)

const (
	// resumeWithin is how long the nodes that keep a checkpoint are asked for it again that a worker is to
	// begin with, and goneWithin if none of them is a member.
	resumeWithin = 30 * time.Second
	goneWithin   = 3 * time.Second
	resumePause  = time.Second
	// numberFile is in a worker's root, and has the number of its newest checkpoint.
	numberFile = "checkpoint"
)

// Resumer gives workers the checkpoints with which they begin.
type Resumer struct {
	Store  transfer.PinStore
	Fetch  FetchFunc
	Member func(vicinity.ID) (vicinity.Member, bool)
}

// Pin names what keeps the checkpoint in the store with which a worker begins.
func (id Worker) Pin() string { return fmt.Sprintf("resume/%s/%d/%d", id.Job, id.Rank, id.Attempt) }

// Resume writes a checkpoint into the work directory of a worker, in place of what is there. Moved is called when
// that gets on. Errors wrap jobs.ErrNoCheckpoint, or are those of ctx or of the disk.
func (r *Resumer) Resume(ctx context.Context, id Worker, c *jobs.Checkpoint, dir string, how transfer.How, moved func()) error {
	tree, err := r.fetch(ctx, id, c, moved)
	switch {
	case err == nil:
	case ctx.Err() != nil || disk.IsFull(err):
		return err
	default:
		return fmt.Errorf("%w: checkpoint %d: %w", jobs.ErrNoCheckpoint, c.Number, err)
	}
	if c.Dir != "." {
		if slices.ContainsFunc(tree.Entries, func(f transfer.Entry) bool { return !strings.HasPrefix(f.Path, c.Dir+"/") }) {
			return fmt.Errorf("%w: checkpoint %d has files outside of %s", jobs.ErrNoCheckpoint, c.Number, c.Dir)
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			return err
		}
		err = root.RemoveAll(c.Dir) // inputs, of which nothing may be among what the program wrote
		if err := errors.Join(err, root.Close()); err != nil {
			return err
		}
	}
	return tree.WriteTo(ctx, r.Store, dir, how)
}

// fetch brings a checkpoint into the store.
func (r *Resumer) fetch(ctx context.Context, id Worker, c *jobs.Checkpoint, moved func()) (tree transfer.Manifest, err error) {
	for begun := time.Now(); ; {
		tree, _, err = r.Fetch(ctx, id.Pin(), c.Manifest, c.Holders, func(transfer.Stats) { moved() })
		within := goneWithin
		if slices.ContainsFunc(c.Holders, func(id vicinity.ID) bool { _, member := r.Member(id); return member }) {
			within = resumeWithin
		}
		if err == nil || disk.IsFull(err) || time.Since(begun) >= within {
			return tree, err
		}
		select {
		case <-time.After(resumePause):
		case <-ctx.Done():
			return tree, ctx.Err()
		}
	}
}

// Number notes in a worker's root that a checkpoint of it has a number, unless that is 0, and returns the largest
// one before.
func Number(root string, number int) (before int, err error) {
	path := filepath.Join(root, numberFile)
	b, _ := os.ReadFile(path) // none if there is none yet, or it is damaged: then those that the origin knows count
	before, _ = strconv.Atoi(string(b))
	if number > before {
		err = atomicfile.How{Loose: true}.Write(path, strconv.AppendInt(nil, int64(number), 10))
	}
	return before, err
}
