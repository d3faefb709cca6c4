package record

import "zorilla/jobs"

// Winners are the copies that count.
type Winners struct {
	Worker map[int]int // by rank
	Order  []int       // ranks, in the order in which that was known
}

// Replicated reports whether ranks have copies.
func (r *Record) Replicated() bool { return r.Spec.Replicas > 1 }

// decide notes which copy of a rank counts: the first that has ended with 0
// and whose files are here.
func (r *Record) decide(ras []jobs.RankAttempt) {
	if !r.Replicated() {
		return
	}
	for _, ra := range ras {
		if !r.Owns(ra) {
			continue
		}
		k := &r.Ranks[ra.Rank]
		rank, _ := r.Spec.RankOf(ra.Rank)
		if _, ok := r.Won.Worker[rank]; !ok && k.State == jobs.WorkerEnded && k.Collected && Succeeded(k.Exit) {
			r.Won.Worker[rank] = ra.Rank
			r.Won.Order = append(r.Won.Order, rank)
		}
	}
}

// undecide forgets who won: all of it is tried again.
func (r *Record) undecide() { r.Won = Winners{Worker: map[int]int{}} }

// Surplus reports whether the job does not need a worker any more, since another
// copy of its rank counts.
func (r *Record) Surplus(worker int) bool {
	if !r.Replicated() {
		return false
	}
	rank, _ := r.Spec.RankOf(worker)
	winner, ok := r.Won.Worker[rank]
	return ok && winner != worker
}

// CopiesOf calls f with each copy of a rank.
func (r *Record) CopiesOf(rank int, f func(worker int, k *Rank)) {
	for w := rank; w < len(r.Ranks); w += r.Spec.Max {
		f(w, &r.Ranks[w])
	}
}

// Hopeless reports whether no copy of a rank can end with 0 any more, and
// whether the program failed in one of them: else they were all lost.
func (r *Record) Hopeless(rank int) (dead, failed bool) {
	dead = true
	r.CopiesOf(rank, func(_ int, k *Rank) {
		switch {
		case k.State == jobs.WorkerLost:
		case k.State == jobs.WorkerEnded && BadExit(k.Exit):
			failed = true
		case k.State == jobs.WorkerEnded && !Succeeded(k.Exit): // with another rank of its copy
		default:
			dead = false
		}
	})
	return dead, failed && dead
}

// Telling returns the copy of a rank whose output and end tell of it: the one
// that counts, else the one that failed with the highest code, else the first.
func (r *Record) Telling(rank int) (worker int) {
	if winner, ok := r.Won.Worker[rank]; ok {
		return winner
	}
	worker = rank
	code := 0
	r.CopiesOf(rank, func(w int, k *Rank) {
		if BadExit(k.Exit) && k.Exit.Code > code {
			worker, code = w, k.Exit.Code
		}
	})
	return worker
}
