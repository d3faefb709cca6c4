package model

import (
	"fmt"

	"zorilla/jobs/internal/record"
)

// serving counts the workers that a job has.
func (s *story) serving() (n int) {
	for i := range s.ranks {
		if s.ranks[i].serves() {
			n++
		}
	}
	return n
}

// busy counts the ranks that are at nodes and have not ended. One that had ended may be lost and
// needed again: it has to wait if the job has as many as it is to have.
func (s *story) busy() (n int) {
	for i := range s.ranks {
		if c := &s.ranks[i]; !c.given && (c.state == record.Granted || c.state == record.Started) {
			n++
		}
	}
	return n
}

// readSize: a malleable job has another number of workers, within its range, and gives back
// as many as are too many.
func (s *story) readSize(ev *record.Event) string {
	if s.spec.FixedSize() || s.spec.Replicas > 1 || ev.Size < s.spec.Min || ev.Size > s.spec.Max {
		return fmt.Sprintf("a job with %d to %d ranks is to have %d", s.spec.Min, s.spec.Max, ev.Size)
	}
	s.size = ev.Size
	had := s.serving()
	for _, ra := range ev.Ranks {
		c := &s.ranks[ra.Rank]
		if c.attempt != ra.Attempt || !c.serves() {
			return fmt.Sprintf("attempt %d of rank %d, which is %s, is no worker", ra.Attempt, ra.Rank, c.state)
		}
		c.left = ""
		if c.given = true; c.state != record.Started {
			c.state = record.Released
		}
	}
	if n := s.serving(); n != min(had, s.size) {
		return fmt.Sprintf("%d of %d workers are left, and %d are wanted", n, had, s.size)
	}
	return ""
}
