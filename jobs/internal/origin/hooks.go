package origin

import (
	"context"
	"fmt"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/internal/onend"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/journal"
)

// keeper runs the commands of the jobs of this origin.
func keeper(o *Jobs) *onend.Keeper {
	api := o.API()
	return &onend.Keeper{
		Run: o.cfg.Hooks, Loop: o.loop, Log: o.log, Status: api.Status,
		Output: func(ctx context.Context, id jobs.ID, f func(jobs.Output) error) error { return tail(ctx, o, id, f) },
		Ended:  func(id jobs.ID, end jobs.OnEnd) { hooked(o, id, end) },
	}
}

// tail calls f with what a job wrote last that has ended. It waits for the loop.
func tail(ctx context.Context, o *Jobs, id jobs.ID, f func(jobs.Output) error) error {
	of, counts, err := telling(o, id)
	if err != nil {
		return err
	}
	if counts != nil {
		return of.output.Tail(ctx, counts, f)
	}
	r := outputOfTasks(o, of, jobs.OutputQuery{Rank: -1}, f)
	r.late(onend.TailBytes)
	return r.read(ctx, false)
}

// hooked writes down how the command of a job ended that has. It runs in the loop.
func hooked(o *Jobs, id jobs.ID, end jobs.OnEnd) {
	if r := o.table.archive.find(id); r == nil || r.forgotten() { // nothing is kept of it that could tell
		return
	}
	ev := record.Event{Kind: record.OnEnd, At: end.At, Code: end.Code, Reason: end.Text}
	o.cfg.Journal.Append([]journal.Entry{{Key: string(id), Data: codec.MustMarshal(ev)}}, func(err error) {
		o.loop.Post(func() {
			if err != nil {
				o.loop.Fail(fmt.Errorf("write the journal: %w", err))
				return
			}
			if j := o.table.jobs[id]; j != nil {
				j.Primary.Rec.Apply(ev)
				j.Primary.Version++
				o.loop.Notify()
			}
		})
	})
}
