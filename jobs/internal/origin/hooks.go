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
		Output: func(ctx context.Context, id jobs.ID, f func(jobs.Output) error) error {
			t, err := o.table.telling(id)
			if err != nil {
				return err
			}
			return t.tail(ctx, f)
		},
		Ended: func(id jobs.ID, end jobs.OnEnd) { hooked(o, id, end) },
	}
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
