package origin

import (
	"context"
	"fmt"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/primary"
	"zorilla/jobs/internal/wire"
)

// answers are what requests wait for until all before is durable.
type answers struct {
	waiting map[uint64]chan<- wire.Ack // by the numbers of requests; each has room for one
	number  uint64                     // of the last of them
}

// expect returns the number under which the answer to a request comes.
func (a *answers) expect(answer chan<- wire.Ack) uint64 {
	a.number++
	a.waiting[a.number] = answer
	return a.number
}

// give hands an answer to who waits for it.
func (a *answers) give(e primary.DoAnswer) {
	a.waiting[e.Number] <- e.Ack
	delete(a.waiting, e.Number)
}

// whenWritten waits for the answer to what was handed to the journal, but not for a full
// disk: who asked is told, and what was handed over is written when there is room.
func whenWritten[T any](ctx context.Context, d *disk, done <-chan T) (answer T, err error) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case answer = <-done:
			return answer, nil
		case <-d.stopped.Done():
			return answer, jobs.ErrStopped
		case <-ctx.Done():
			return answer, ctx.Err()
		case <-tick.C:
			if err := d.journal.Stalled(); err != nil {
				return answer, fmt.Errorf("%s, and it is done when there is room: %w", diskFull, err)
			}
		}
	}
}
