package origin

import (
	"context"
	"fmt"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/internal/loop"
	"zorilla/jobs/internal/onend"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/journal"
)

// hooks have the commands run that jobs have for their end, and write down how these ended.
type hooks struct {
	loop    *loop.Loop
	journal journal.Journal
	table   *table
	keeper  *onend.Keeper // nil = none are run
}

// owe has the command of a job run that has ended, which is durable, if it has one that has
// not been run. If the node dies before it is written down how that ended, it is run again.
func (h *hooks) owe(rec *record.Record) {
	if record.Owes(rec) && h.keeper != nil {
		h.keeper.Owe(onend.Due{Job: rec.ID, Command: rec.Spec.OnEnd})
	}
}

// output calls f with what a job wrote last that has ended. It waits for the loop.
func (h *hooks) output(ctx context.Context, id jobs.ID, f func(jobs.Output) error) error {
	t, err := h.table.telling(id)
	if err != nil {
		return err
	}
	return t.tail(ctx, f)
}

// ended writes down how the command of a job ended. It runs in the loop.
func (h *hooks) ended(id jobs.ID, end jobs.OnEnd) {
	if !h.table.keeps(id) { // nothing is kept of it that could tell
		return
	}
	ev := record.Event{Kind: record.OnEnd, At: end.At, Code: end.Code, Reason: end.Text}
	h.journal.Append([]journal.Entry{{Key: string(id), Data: codec.MustMarshal(ev)}}, func(err error) {
		h.loop.Post(func() {
			if err != nil {
				h.loop.Fail(fmt.Errorf("write the journal: %w", err))
				return
			}
			if j := h.table.get(id); j != nil {
				j.Primary.Rec.Apply(ev)
				j.Primary.Version++
				h.loop.Notify()
			}
		})
	})
}
