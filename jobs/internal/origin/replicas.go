package origin

import (
	"zorilla/jobs"
	"zorilla/jobs/internal/loop"
	"zorilla/jobs/internal/record"
)

// replicaOutput chooses what is told of the output of a job with replicas: of
// each rank that of the copy that counts, once it is known; at the end of the job
// also that of ranks without one, since it may tell what went wrong.
type replicaOutput struct {
	loop *loop.Loop
	told map[jobs.RankAttempt]bool // by rank, not by worker
}

// batch returns what can be told now; more tells that there may be more later.
func (r *replicaOutput) batch(j *job) (batch []endedTask, more bool, err error) {
	ok := r.loop.Call(func() {
		rec := &j.Primary.Rec
		more = !rec.State.Final()
		tell := func(rank int) {
			worker := rec.Telling(rank)
			ra := jobs.RankAttempt{Rank: worker, Attempt: rec.Ranks[worker].Attempt}
			if id := (jobs.RankAttempt{Rank: rank, Attempt: ra.Attempt}); ra.Attempt > 0 && !r.told[id] {
				r.told[id] = true
				wrote := j.output.Received([]jobs.RankAttempt{ra})[ra]
				batch = append(batch, endedTask{id: rank, Task: record.Task{Rank: int32(worker), Try: int32(ra.Attempt), Wrote: wrote}})
			}
		}
		for _, rank := range rec.Won.Order {
			tell(rank)
		}
		for rank := 0; rank < rec.Spec.Max && !more; rank++ {
			tell(rank)
		}
	})
	if !ok {
		err = jobs.ErrStopped
	}
	return batch, more, err
}
