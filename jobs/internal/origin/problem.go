package origin

import (
	"context"
	"fmt"
	"time"

	"zorilla/internal/sanitize"
	"zorilla/jobs"
	jobsdisk "zorilla/jobs/disk"
	"zorilla/jobs/journal"
)

// problem returns what keeps the origin from its part of a job, or "".
func (j *job) problem(events journal.Journal) string {
	if len(j.Steps) > 0 && events.Stalled() != nil {
		return diskFull + ": nothing can be written down"
	}
	if j.trouble == "" && j.thirsty {
		return diskFull + ": its standard input waits"
	}
	return j.trouble
}

const diskFull = "the disk of its origin is full"

// whenWritten waits for the answer to what was handed to the journal, but not for a full
// disk: who asked is told, and what was handed over is written when there is room.
func whenWritten[T any](ctx context.Context, o *Jobs, done <-chan T) (answer T, err error) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case answer = <-done:
			return answer, nil
		case <-o.loop.Stopped.Done():
			return answer, jobs.ErrStopped
		case <-ctx.Done():
			return answer, ctx.Err()
		case <-tick.C:
			if err := o.cfg.Journal.Stalled(); err != nil {
				return answer, fmt.Errorf("%s, and it is done when there is room: %w", diskFull, err)
			}
		}
	}
}

// hindered notes whether a job's output could be stored.
func (o *Jobs) hindered(j *job, err error) {
	text := ""
	switch {
	case jobsdisk.IsFull(err):
		text = diskFull + ": output waits at its nodes"
	case err != nil:
		text = sanitize.OneLine("its origin cannot store output, which waits at its nodes: " + err.Error())
	}
	if text == j.trouble {
		return
	}
	if j.trouble = text; text != "" {
		o.log.Error().Err(err).Str("job", string(j.Primary.Rec.ID)).Msg("store output")
	}
	j.Primary.Version++
	o.loop.Notify()
}
