package jobs

import "fmt"

// A job with replicas runs every rank several times, on different nodes. Its
// workers are numbered as in the paper (see package placement): worker
// replica*N + rank of a job of N ranks. This number is the Rank of everything
// that goes between nodes, and of events; users see rank and replica.
//
// Each replica is a job for itself to its programs: the size, the host file and
// the address of rank 0 are those of the same replica.

// MaxReplicas bounds Spec.Replicas.
const MaxReplicas = 100

// Copies returns how often each rank runs.
func (s *Spec) Copies() int { return max(1, s.Replicas) }

// Workers returns how many workers the job has at most: each copy of a rank is
// one.
func (s *Spec) Workers() int { return s.Max * s.Copies() }

// Least returns how many workers the job starts with.
func (s *Spec) Least() int { return s.Min * s.Copies() }

// RankOf reports which copy of which rank a worker is.
func (s *Spec) RankOf(worker int) (rank, replica int) {
	if s.Replicas <= 1 {
		return worker, 0
	}
	return worker % s.Max, worker / s.Max
}

// Who names a worker for people.
func (s *Spec) Who(worker int) string {
	rank, replica := s.RankOf(worker)
	if s.Replicas <= 1 {
		return fmt.Sprintf("rank %d", rank)
	}
	return fmt.Sprintf("rank %d, replica %d", rank, replica)
}

// List names workers of one node.
func (s *Spec) List(ras []RankAttempt) string {
	if len(ras) == 1 {
		return s.Who(ras[0].Rank)
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

// WorkerOf returns the number of a copy of a rank: RankOf's opposite.
func (s *Spec) WorkerOf(rank, replica int) int { return replica*s.Max + rank }
