package origin

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"zorilla/internal/sanitize"
	"zorilla/jobs"
	"zorilla/jobs/internal/record"
)

// attempt calls f with what one attempt of a rank wrote, or that of each rank (-1), of an
// array one try of a task, or of each: whatever attempts wrote stays in the job's output, also if
// others followed them.
func (t *telling) attempt(ctx context.Context, q jobs.OutputQuery, f func(jobs.Output) error) error {
	of := t.job
	if of.Primary.Rec.Tasks != nil {
		return t.try(ctx, q, f)
	}
	ranks, last := map[jobs.RankAttempt]int{}, 0 // the rank that each worker is told as
	if !t.loop.Call(func() { ranks, last = of.attempt(q) }) {
		return jobs.ErrStopped
	}
	if last < q.Attempt {
		return notKept("attempt", "rank", of.output.Job, q, slices.Collect(func(yield func(int) bool) {
			for n := 1; n <= last && yield(n); n++ {
			}
		}))
	}
	told := func(ra jobs.RankAttempt) bool { _, ok := ranks[ra]; return ok }
	err := of.output.Read(ctx, false, told, func(o jobs.Output) error {
		o.Rank = ranks[jobs.RankAttempt{Rank: o.Rank, Attempt: o.Attempt}]
		return f(o)
	})
	if err != nil {
		return err
	}
	var lost []string
	if !t.loop.Call(func() { lost = of.output.DamageOf(&of.Primary.Rec, told) }) {
		return jobs.ErrStopped
	}
	if len(lost) > 0 {
		err = fmt.Errorf("job %s is %w: %s", of.output.Job.Short(), jobs.ErrDamaged, strings.Join(lost, "; "))
	}
	return err
}

// attempt returns the workers that a query for an attempt is about, with the ranks that they are,
// and the number of the last attempt that there is of these. Of several copies of a rank it is
// about the first that has written something.
func (j *job) attempt(q jobs.OutputQuery) (ranks map[jobs.RankAttempt]int, last int) {
	ranks = map[jobs.RankAttempt]int{}
	rec, chosen := &j.Primary.Rec, map[int]bool{}
	for worker := range rec.Ranks {
		rank, _ := rec.Spec.RankOf(worker)
		if q.Rank >= 0 && rank != q.Rank {
			continue
		}
		last = max(last, rec.Ranks[worker].Attempt)
		ra := jobs.RankAttempt{Rank: worker, Attempt: q.Attempt}
		if has := j.output.Received([]jobs.RankAttempt{ra})[ra]; !chosen[rank] && has.Stdout+has.Stderr > 0 {
			chosen[rank], ranks[ra] = true, rank
		}
	}
	return ranks, last
}

// try is attempt of an array.
func (t *telling) try(ctx context.Context, q jobs.OutputQuery, f func(jobs.Output) error) error {
	r := t.tasks(q, f)
	r.tries = &tryOutput{number: q.Attempt, kept: map[int]bool{}}
	if err := r.read(ctx, false); err != nil || r.tries.kept[q.Attempt] {
		return err
	}
	return notKept("try", "task", t.job.output.Job, q, slices.Sorted(maps.Keys(r.tries.kept)))
}

// notKept is the error of a query for an attempt of which nothing is known, with the others that
// there are.
func notKept(what, of string, id jobs.ID, q jobs.OutputQuery, kept []int) error {
	who := "job " + id.Short()
	if q.Rank >= 0 {
		who = fmt.Sprintf("%s %d of %s", of, q.Rank, who)
	}
	there := "there is none yet"
	switch len(kept) {
	case 0:
	case 1:
		there = fmt.Sprintf("there is %d", kept[0])
	default:
		there = "there are " + sanitize.Numbers(kept)
	}
	return fmt.Errorf("%w: no %s %d of %s is kept: %s", jobs.ErrNotFound, what, q.Attempt, who, there)
}

// tryOutput chooses of what tasks wrote that of their tries of one number, in the order in which
// these ended.
type tryOutput struct {
	number int
	kept   map[int]bool // the tries that there are of the tasks that are wanted

	tried []record.Try // as they were at the first look; nil = there was none
	next  int          // in TaskTable.Order
}

// batch returns what can be told now.
func (o *tryOutput) batch(r *arrayOutput) (batch []endedTask, more bool, err error) {
	ok := r.loop.Call(func() {
		t := r.job.Primary.Rec.Tasks
		if o.tried == nil {
			o.tried = append(make([]record.Try, 0, len(t.Tried)), t.Tried...)
		}
		note := func(place, number int, k record.Task) {
			if id := t.Numbers.ID(place); r.want(id) {
				if o.kept[number] = true; number == o.number {
					batch = append(batch, endedTask{id, k})
				}
			}
		}
		for len(batch) < jobs.MaxResults {
			switch {
			case len(o.tried) > 0 && o.tried[0].After <= o.next:
				note(o.tried[0].Place, o.tried[0].Number, o.tried[0].Task)
				o.tried = o.tried[1:]
			case o.next < len(t.Order):
				place := int(t.Order[o.next])
				note(place, t.Tries[place]+1, t.Tasks[place])
				o.next++
			default:
				return
			}
		}
	})
	if !ok {
		err = jobs.ErrStopped
	}
	return batch, false, err
}
