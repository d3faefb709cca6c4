package agent

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"zorilla/jobs"
	"zorilla/jobs/internal/core"
	"zorilla/jobs/internal/loop"
	"zorilla/jobs/internal/peer"
	"zorilla/jobs/internal/primary"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/journal"
	"zorilla/vicinity"
)

// bookings are those of jobs at this node, and what its jobs book. The core, and what follows it, the loop owns.
type bookings struct {
	loop    *loop.Loop
	journal journal.Journal
	log     zerolog.Logger
	peers   *peer.Client
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

// order has a node make, keep on or end a booking.
func (b *bookings) order(job jobs.ID, e primary.DoBook) {
	ctx, cancel := context.WithTimeout(b.loop.Stopped, e.Within)
	defer cancel()
	var got wire.Booked
	err := b.peers.Send(ctx, e.To, peer.PathBook, e.Book, &got)
	if err == nil {
		err = got.Check()
	}
	switch {
	case b.loop.Stopped.Err() != nil || e.Book.Lease == 0: // what is not ended so ends by itself
		return
	case err != nil:
		b.log.Debug().Err(err).Str("job", string(job)).Str("node", e.To.Short()).Msg("book")
		got = wire.Booked{Reason: "no answer from node " + e.To.Short()}
	}
	b.loop.Post(func() {
		b.core.Update(time.Now(), job, func(p *primary.Primary) {
			p.Bookings.Answered(time.Now(), e.To, e.Book.Key, got.Refused())
			p.Tick(time.Now())
		})
	})
}
