package origin

import (
	"fmt"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/journal"
)

// Hooked writes down how the command of a job ended that has. It runs in the loop.
func Hooked(o *Jobs, id jobs.ID, end jobs.OnEnd) {
	if p := o.archive.all[id]; p == nil || p.Forgotten != 0 { // nothing is kept of it that could tell
		return
	}
	ev := record.Event{Kind: record.OnEnd, At: end.At, Code: end.Code, Reason: end.Text}
	o.cfg.Journal.Append([]journal.Entry{{Key: string(id), Data: codec.MustMarshal(ev)}}, func(err error) {
		o.loop.Post(func() {
			if err != nil {
				o.loop.Fail(fmt.Errorf("write the journal: %w", err))
				return
			}
			if j := o.jobs[id]; j != nil {
				j.Primary.Rec.Apply(ev)
				j.Primary.Version++
				o.loop.Notify()
			}
		})
	})
}
