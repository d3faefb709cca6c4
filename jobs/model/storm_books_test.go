package model_test

import (
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/model"
)

// bookSome has origins book in every other storm.
func (s *storm) bookSome() {
	if s.books.Float64() < 0.5 {
		s.book(time.Duration(100+s.books.IntN(2000)) * time.Millisecond)
	}
}

// book has room booked again and again for jobs that may have ended, confirmed or given up, whatever they need; what
// strikes at random otherwise is what it would be without.
func (s *storm) book(every time.Duration) {
	s.net.Schedule(time.Duration(s.books.Int64N(int64(2*every))), func() {
		if s.net.Elapsed() >= s.length {
			return
		}
		if list := s.Alive(); len(list) > 0 && len(s.jobs) > 0 {
			s.bookOne(list[s.books.IntN(len(list))], s.jobs[s.books.IntN(len(s.jobs))])
		}
		s.book(every)
	})
}

func (s *storm) bookOne(node int, id jobs.ID) {
	b := &wire.Book{Job: id, Key: 1 + s.books.Uint64N(3)}
	if s.books.Float64() < 0.8 {
		b.Lease = 1 + s.books.Int64N(20_000)
	}
	if b.Lease > 0 && s.books.Float64() < 0.7 {
		n := 1 + s.books.IntN(s.slots[node])
		b.New = &wire.Booking{In: s.books.Int64N(10_000), Length: s.books.Int64N(20_000), Workers: n, Room: wire.Room{Slots: n}}
	}
	s.note(s.net.ID(node), id, "is asked: %+v", b)
	s.Do(node, func(m *model.Model, now time.Time) model.Actions { return m.Book(now, b) })
}
