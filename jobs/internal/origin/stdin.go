package origin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	jobsdisk "zorilla/jobs/disk"
	"zorilla/jobs/internal/output"
	"zorilla/vicinity"
)

// restoreStdin ends the standard input of a job: who fed it went away with the
// node. A program cannot tell that from the end that it waits for, but its user
// shall. It reports whether the input is not what it was.
func (d *disk) restoreStdin(j *job, id jobs.ID) (damaged bool, err error) {
	if j.Primary.Rec.Spec.Stdin {
		end, err := os.ReadFile(d.stdinEnd(id))
		switch {
		case errors.Is(err, os.ErrNotExist):
			j.Primary.Warn(time.Now(), stdinCut)
		case err != nil:
			return false, err
		default:
			damaged = !endsStdin(end, j.stdin)
		}
	}
	return damaged, j.stdin.Close()
}

const (
	stdinCut     = "its standard input may be incomplete: the node that took it died meanwhile"
	stdinDamaged = "its standard input is damaged: the disk of its origin lost some of it"
)

// endsStdin reports whether the input is what the end of it says.
func endsStdin(end []byte, stdin *output.Input) bool {
	want, err := codec.Unseal(end)
	return err == nil && stdin.EndsWith(want)
}

// hasOneTry reports whether rank 0 reads its input once: nothing is tried again, and no other
// rank has all of them begin anew.
func hasOneTry(spec *jobs.Spec) bool {
	return spec.Rigid() && spec.Workers() == 1 && spec.Retries == 0
}

// dropStdin ends the standard input of a job that nobody reads any more, and gives its room back.
func (o *Jobs) dropStdin(j *job) {
	hollow := j.stdin.Drop()
	o.loop.Go(func() {
		if err := hollow(); err != nil { // the next life of the node tries again
			o.log.Warn().Err(err).Str("job", string(j.Primary.Rec.ID)).Msg("remove standard input")
		}
	})
}

// Stdin is the standard input of a job that a node works for, else nil. It may be
// called from any goroutine.
func (o *Jobs) Stdin(from vicinity.ID, id jobs.ID) (stdin *output.Input) {
	o.loop.Call(func() {
		if j := o.table.jobs[id]; j != nil && j.Primary.Parts[from] != nil {
			stdin = j.stdin
		}
	})
	return stdin
}

// inputPause is how long input waits for room on a disk until it is tried again.
const inputPause = 500 * time.Millisecond

// keepInput appends what a client has sent to the standard input of a job, as soon as there is room
// for it. It runs outside of the loop.
func keepInput(ctx context.Context, o *Jobs, id jobs.ID, stdin *output.Input, p []byte) error {
	thirsty := false
	tell := func(now bool) {
		if now == thirsty {
			return
		}
		thirsty = now
		o.loop.Post(func() {
			if j := o.table.jobs[id]; j != nil {
				j.thirsty = now
				j.Primary.Version++
				o.loop.Notify()
			}
		})
	}
	defer tell(false)
	for {
		err := stdin.Append(ctx, p)
		switch {
		case o.loop.Stopped.Err() != nil:
			return jobs.ErrStopped
		case errors.Is(err, os.ErrClosed):
			return fmt.Errorf("%w: job %s takes no input any more", jobs.ErrEnded, id.Short())
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && !jobsdisk.IsFull(err):
			return fmt.Errorf("keep input: %w", err)
		case err == nil:
			return nil
		}
		tell(true)
		select {
		case <-time.After(inputPause):
		case <-ctx.Done():
		}
	}
}
