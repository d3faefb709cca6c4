package origin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/rs/zerolog"

	"zorilla/internal/codec"
	"zorilla/jobs"
	jobsdisk "zorilla/jobs/disk"
	"zorilla/jobs/internal/loop"
	"zorilla/jobs/internal/output"
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

// feeds bring jobs their standard input.
type feeds struct {
	log  zerolog.Logger
	loop *loop.Loop
	disk *disk
}

// drop ends the standard input of a job that nobody reads any more, and gives its room back. It
// runs in the loop.
func (f *feeds) drop(j *job) {
	hollow := j.stdin.Drop()
	f.loop.Go(func() {
		if err := hollow(); err != nil { // the next life of the node tries again
			f.log.Warn().Err(err).Str("job", string(j.Primary.Rec.ID)).Msg("remove standard input")
		}
	})
}

// take appends r to the standard input of a job, and ends it when r ends. It runs outside of the
// loop.
func (f *feeds) take(ctx context.Context, j *job, r io.Reader) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(f.loop.Stopped, cancel)()
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			if err := f.keep(ctx, j, buf[:n]); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return f.end(j)
		}
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// end notes that all of a job's standard input has come.
func (f *feeds) end(j *job) error {
	if f.loop.Stopped.Err() != nil {
		return jobs.ErrStopped
	}
	// Whoever restores the job must know whether this was all.
	if _, closed, _ := j.stdin.State(); closed { // by the end of the job
		return nil
	}
	if err := f.disk.keepStdinEnd(j.output.Job, j.stdin); err != nil {
		return fmt.Errorf("keep input: %w", err)
	}
	return j.stdin.Close()
}

// inputPause is how long input waits for room on a disk until it is tried again.
const inputPause = 500 * time.Millisecond

// keep appends what a client has sent, as soon as there is room for it.
func (f *feeds) keep(ctx context.Context, j *job, p []byte) error {
	thirsty := false
	tell := func(now bool) {
		if now == thirsty {
			return
		}
		thirsty = now
		f.loop.Post(func() {
			j.thirsty = now
			j.Primary.Version++
			f.loop.Notify()
		})
	}
	defer tell(false)
	for {
		err := j.stdin.Append(ctx, p)
		switch {
		case f.loop.Stopped.Err() != nil:
			return jobs.ErrStopped
		case errors.Is(err, os.ErrClosed):
			return fmt.Errorf("%w: job %s takes no input any more", jobs.ErrEnded, j.output.Job.Short())
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
