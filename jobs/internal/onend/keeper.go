package onend

import (
	"context"
	"errors"

	"github.com/rs/zerolog"

	"zorilla/jobs"
	"zorilla/jobs/internal/loop"
)

// Keeper runs the commands of a node, with what it asks of the node's jobs. All fields must be
// set.
type Keeper struct {
	Run  Runner
	Loop *loop.Loop
	Log  zerolog.Logger

	// Status reports a job, and Output of what it wrote last, all of which may be too much to
	// read. They wait for the loop.
	Status func(jobs.ID) (jobs.Status, uint64, error)
	Output func(context.Context, jobs.ID, func(jobs.Output) error) error
	// Ended reports how a command ended, in the loop. Until that is durable it is to be run again.
	Ended func(jobs.ID, jobs.OnEnd)

	queue Queue
}

// Owe has a command run. It is called in the loop, or before that runs.
func (k *Keeper) Owe(d Due) {
	k.queue.Add(d)
	k.begin()
}

// begin begins what may be run now.
func (k *Keeper) begin() {
	for d, ok := k.queue.Next(); ok; d, ok = k.queue.Next() {
		k.Loop.Go(func() {
			end, err := k.run(d)
			k.Loop.Post(func() {
				k.queue.Done(d.Job)
				switch {
				case k.Loop.Stopped.Err() != nil: // the next life of the node does it again
				case err != nil:
					k.Log.Warn().Err(err).Str("job", string(d.Job)).Msg("the command of --on-end was not run")
				default:
					if end.Code != 0 {
						k.Log.Warn().Str("job", string(d.Job)).Int("code", end.Code).Str("said", end.Text).Msg("the command of --on-end failed")
					}
					k.Ended(d.Job, end)
				}
				k.begin()
			})
		})
	}
}

// run runs a command, outside of the loop.
func (k *Keeper) run(d Due) (end jobs.OnEnd, err error) {
	st, _, err := k.Status(d.Job)
	if err != nil {
		return end, err
	}
	var said Tail
	err = k.Output(k.Loop.Stopped, d.Job, func(o jobs.Output) error {
		_, err := said.Write(o.Data)
		return err
	})
	if err != nil && !errors.Is(err, jobs.ErrForgotten) && !errors.Is(err, jobs.ErrDamaged) {
		k.Log.Warn().Err(err).Str("job", string(d.Job)).Msg("read the output of a job for the command of --on-end")
	}
	return k.Run(k.Loop.Stopped, Call{Command: d.Command, Env: Variables(st), Input: Summary(st, said.Lines())}), nil
}
