package model_test

import (
	"slices"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/record"
)

// moveSome has ranks moved in every other storm.
func (s *storm) moveSome() {
	if s.moving.Float64() < 0.5 {
		s.move(time.Duration(200+s.moving.IntN(3000)) * time.Millisecond)
	}
}

// move has users move ranks again and again, to any node or to one that may be the wrong one; what strikes at
// random otherwise is what it would be without.
func (s *storm) move(every time.Duration) {
	s.net.Schedule(time.Duration(s.moving.Int64N(int64(2*every))), func() {
		if s.net.Elapsed() >= s.length {
			return
		}
		if list := s.Alive(); len(list) > 0 {
			node := list[s.moving.IntN(len(list))]
			if ids := s.Jobs(node).Jobs(); len(ids) > 0 {
				s.moveOne(node, ids[s.moving.IntN(len(ids))])
			}
		}
		s.move(every)
	})
}

func (s *storm) moveOne(node int, id jobs.ID) {
	job := s.Jobs(node).Core().Jobs[id]
	if job == nil {
		return
	}
	var q jobs.Resize
	for again := true; again && len(q.Move) < jobs.MaxRelease; again = s.moving.Float64() < 0.3 {
		m := jobs.Move{Rank: s.moving.IntN(job.Primary.Rec.Spec.Max)}
		if s.moving.Float64() < 0.6 {
			m.To = s.net.ID(s.moving.IntN(len(s.slots)))
		}
		q.Move = append(q.Move, m)
	}
	s.resize(node, id, q)
}

// strands reports whether a rank was moved away from the only node that may be able to run it.
func (s *storm) strands(spec *jobs.Spec, rec *record.Record) bool {
	return slices.ContainsFunc(rec.Ranks, func(k record.Rank) bool {
		room := 0
		for i, n := range s.slots {
			if !s.gone[i] && s.net.ID(i) != k.Left {
				room += n / spec.Slots
			}
		}
		return k.Left != "" && (room == 0 || spec.Single() || spec.MaxRTT > 0 || len(spec.Groups) > 0)
	})
}

// resizeOne asks for another number of workers of a job, which may be out of its range.
func (s *storm) resizeOne(node int, id jobs.ID) {
	job := s.Jobs(node).Core().Jobs[id]
	if job == nil {
		return
	}
	spec := &job.Primary.Rec.Spec
	q := jobs.Resize{Workers: spec.Min - 1 + s.rnd.IntN(spec.Max-spec.Min+3)}
	for s.chance(0.4) {
		q.Release = append(q.Release, s.rnd.IntN(spec.Max))
	}
	if s.chance(0.3) {
		q.Workers = 0
	}
	s.resize(node, id, q)
}
