package jobs

import (
	"fmt"
	"slices"
)

// A job with replicas runs every rank several times, on different nodes. Its
// workers are numbered as in the paper (see package placement): worker
// replica*N + rank of a job of N ranks. This number is the Rank of everything
// that goes between nodes, and of events; users see rank and replica.
//
// Each replica is a job for itself to its programs: the size, the host file and
// the address of rank 0 are those of the same replica.

// MaxReplicas bounds Spec.Replicas.
const MaxReplicas = 100

// copies returns how often each rank runs.
func (s *Spec) copies() int { return max(1, s.Replicas) }

// Workers returns how many workers the job has at most: each copy of a rank is
// one.
func (s *Spec) Workers() int { return s.Max * s.copies() }

// least returns how many workers the job starts with.
func (s *Spec) least() int { return s.Min * s.copies() }

// RankOf tells which copy of which rank a worker is.
func (s *Spec) RankOf(worker int) (rank, replica int) {
	if s.Replicas <= 1 {
		return worker, 0
	}
	return worker % s.Max, worker / s.Max
}

// who names a worker for people.
func (s *Spec) who(worker int) string {
	rank, replica := s.RankOf(worker)
	if s.Replicas <= 1 {
		return fmt.Sprintf("rank %d", rank)
	}
	return fmt.Sprintf("rank %d, replica %d", rank, replica)
}

// list names workers of one node.
func (s *Spec) list(ras []RankAttempt) string {
	if len(ras) == 1 {
		return s.who(ras[0].Rank)
	}
	first, replica := s.RankOf(ras[0].Rank)
	last, other := s.RankOf(ras[len(ras)-1].Rank)
	switch {
	case replica != other:
		return fmt.Sprintf("copies of %d ranks", len(ras))
	case s.Replicas > 1:
		return fmt.Sprintf("ranks %d..%d (%d), replica %d", first, last, len(ras), replica)
	}
	return fmt.Sprintf("ranks %d..%d (%d)", first, last, len(ras))
}

// ofReplica returns what a worker of a job with replicas is told at its start:
// the hosts of its own replica, with their ranks.
func (s *Start) ofReplica(spec *Spec, worker int) Start {
	if spec.Replicas <= 1 {
		return *s
	}
	_, replica := spec.RankOf(worker)
	out := *s
	out.Hosts, out.Master, out.Epoch = nil, "", 0
	for _, h := range s.Hosts {
		own := Host{Node: h.Node, Addr: h.Addr}
		for _, w := range h.Ranks {
			if rank, of := spec.RankOf(w); of == replica {
				own.Ranks = append(own.Ranks, rank)
			}
		}
		if slices.Contains(own.Ranks, 0) {
			out.Master = own.Addr
		}
		if len(own.Ranks) > 0 {
			out.Hosts = append(out.Hosts, own)
		}
	}
	slices.SortFunc(out.Hosts, func(a, b Host) int { return a.Ranks[0] - b.Ranks[0] })
	return out
}

// replicated reports whether ranks have copies.
func (r *record) replicated() bool { return r.spec.Replicas > 1 }

// decide notes which copy of a rank counts: the first that has ended with 0
// and whose files are here.
func (r *record) decide(ras []RankAttempt) {
	if !r.replicated() {
		return
	}
	for _, ra := range ras {
		if !r.owns(ra) {
			continue
		}
		k := &r.ranks[ra.Rank]
		rank, _ := r.spec.RankOf(ra.Rank)
		if _, ok := r.winner[rank]; !ok && k.state == WorkerEnded && k.collected && succeeded(k.exit) {
			r.winner[rank] = ra.Rank
			r.won = append(r.won, rank)
		}
	}
}

// undecide forgets who won: all of it is tried again.
func (r *record) undecide() { r.winner, r.won = map[int]int{}, nil }

// spare reports whether the job does not need a worker any more, since another
// copy of its rank counts.
func (r *record) spare(worker int) bool {
	if !r.replicated() {
		return false
	}
	rank, _ := r.spec.RankOf(worker)
	winner, ok := r.winner[rank]
	return ok && winner != worker
}

// copiesOf calls f with each copy of a rank.
func (r *record) copiesOf(rank int, f func(worker int, k *rankRecord)) {
	for w := rank; w < len(r.ranks); w += r.spec.Max {
		f(w, &r.ranks[w])
	}
}

// hopeless reports whether no copy of a rank can end with 0 any more, and
// whether the program failed in one of them: else they were all lost.
func (r *record) hopeless(rank int) (dead, failed bool) {
	dead = true
	r.copiesOf(rank, func(_ int, k *rankRecord) {
		switch {
		case k.state == WorkerLost:
		case k.state == WorkerEnded && badExit(k.exit):
			failed = true
		default:
			dead = false
		}
	})
	return dead, failed && dead
}

// telling returns the copy of a rank whose output and end tell of it: the one
// that counts, else the one that failed with the highest code, else the first.
func (r *record) telling(rank int) (worker int) {
	if winner, ok := r.winner[rank]; ok {
		return winner
	}
	worker = rank
	code := 0
	r.copiesOf(rank, func(w int, k *rankRecord) {
		if badExit(k.exit) && k.exit.Code > code {
			worker, code = w, k.exit.Code
		}
	})
	return worker
}
