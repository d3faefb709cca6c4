package agent

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"zorilla/jobs"
	"zorilla/jobs/internal/core"
	"zorilla/jobs/internal/loop"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/journal"
	"zorilla/vicinity"
)

// bookings are those of jobs at this node. All but the first three is owned by the loop.
type bookings struct {
	loop    *loop.Loop
	journal journal.Journal
	log     zerolog.Logger
	core    *core.Core
	waiting map[uint64]chan<- wire.Booked // those who asked; each has room for one
	number  uint64                        // of the last of them
}

// asked answers an origin that books something, or keeps it on, once that is durable.
func (b *bookings) asked(ctx context.Context, from vicinity.ID, m *wire.Book) (any, error) {
	answer, err := make(chan wire.Booked, 1), error(nil)
	begun := b.loop.Call(func() {
		b.number++
		if err = b.core.Bookings.Book(time.Now(), from, b.number, m); err == nil {
			b.waiting[b.number] = answer
		}
	})
	switch {
	case !begun:
		return nil, jobs.ErrStopped
	case err != nil:
		return nil, err
	}
	select {
	case a := <-answer:
		return a, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-b.loop.Stopped.Done():
		return nil, jobs.ErrStopped
	}
}

// keep writes a booking down.
func (b *bookings) keep(e core.DoKeepBooking) {
	name, data := e.Written()
	b.journal.Replace(journal.Entry{Key: name, Data: data}, func(err error) {
		b.loop.Post(func() {
			if err != nil {
				b.log.Warn().Err(err).Str("job", string(e.Booking.Job)).Msg("a booking could not be written down")
			}
			b.core.Bookings.Kept(&e, err)
		})
	})
}

// answer gives an answer to who waits for it.
func (b *bookings) answer(e core.DoBooked) {
	b.waiting[e.Number] <- e.Answer
	delete(b.waiting, e.Number)
}
