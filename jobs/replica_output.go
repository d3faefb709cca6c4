package jobs

// replicaOutput chooses what is told of the output of a job with replicas: of
// each rank that of the copy that counts, once it is known; at the end of the job
// also that of ranks without one, since it may tell what went wrong.
type replicaOutput struct {
	s    *Service
	told map[RankAttempt]bool // by rank, not by worker
}

// batch returns what can be told now; more tells that there may be more later.
func (r *replicaOutput) batch(j *job) (batch []endedTask, more bool, err error) {
	ok := r.s.call(func() {
		rec := &j.core.rec
		more = !rec.state.Final()
		tell := func(rank int) {
			worker := rec.telling(rank)
			ra := RankAttempt{worker, rec.ranks[worker].attempt}
			if id := (RankAttempt{rank, ra.Attempt}); ra.Attempt > 0 && !r.told[id] {
				r.told[id] = true
				wrote := j.output.received([]RankAttempt{ra})[ra]
				batch = append(batch, endedTask{id: rank, taskRecord: taskRecord{rank: int32(worker), try: int32(ra.Attempt), wrote: wrote}})
			}
		}
		for _, rank := range rec.won {
			tell(rank)
		}
		for rank := 0; rank < rec.spec.Max && !more; rank++ {
			tell(rank)
		}
	})
	if !ok {
		err = ErrStopped
	}
	return batch, more, err
}
