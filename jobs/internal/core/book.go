package core

import (
	"fmt"
	"regexp"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/internal/calendar"
	"zorilla/jobs/internal/claims"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// A booking is promised when it is durable: a node that is killed has it again in its next life.

type (
	// DoKeepBooking makes a booking durable, in the place of what has its name: Kept.
	DoKeepBooking struct {
		To      vicinity.ID // who waits for the answer
		Number  uint64
		Booking calendar.Booking
	}
	// DoForgetBooking removes what DoKeepBooking wrote. Nobody waits for that.
	DoForgetBooking struct{ Name string }
	// DoBooked answers who asked for a booking.
	DoBooked struct {
		To     vicinity.ID
		Number uint64
		Answer wire.Booked
	}
)

// BookingName is what a booking is called on disk.
func BookingName(job jobs.ID, key uint64) string { return fmt.Sprintf("%s.b%016x", job, key) }

var bookingName = regexp.MustCompile(`^[^.]+\.b[0-9a-f]{16}$`)

// IsBooking reports whether something on disk is called so.
func IsBooking(name string) bool { return bookingName.MatchString(name) }

// Written is how a booking is written down.
func (e *DoKeepBooking) Written() (name string, data []byte) {
	return BookingName(e.Booking.Job, e.Booking.Key), codec.MustMarshal(e.Booking)
}

// Bookings are those of jobs at this node.
type Bookings struct {
	claims *claims.Claims
	out    []Effect
}

// Book makes a booking of a job, keeps it on or ends it, and answers under a number. It refuses who is not the job's
// origin.
func (k *Bookings) Book(now time.Time, from vicinity.ID, number uint64, m *wire.Book) error {
	if m.Job.Origin() != from {
		return fmt.Errorf("%w: job %s does not originate at %s", jobs.ErrRefused, m.Job.Short(), from.Short())
	}
	b, answer := k.claims.Book(now, m)
	k.forget() // before one with the same name is written
	if b != nil {
		k.do(DoKeepBooking{from, number, *b})
	} else {
		k.do(DoBooked{from, number, answer})
	}
	return nil
}

// Kept tells that a booking is durable, or why it is not: then it ends.
func (k *Bookings) Kept(e *DoKeepBooking, err error) {
	if err != nil {
		k.claims.Unwritten(&e.Booking)
		k.do(DoBooked{e.To, e.Number, wire.Booked{Reason: wire.ReasonFull}})
		return
	}
	k.do(DoBooked{e.To, e.Number, k.claims.Still(&e.Booking)})
}

// Rebook goes on with a booking of an earlier life of this node. It reports whether that is still to be kept.
func (k *Bookings) Rebook(now time.Time, name string, data []byte) bool {
	var b calendar.Booking
	if codec.Unmarshal(data, &b) != nil || !b.Job.Valid() || BookingName(b.Job, b.Key) != name || !jobs.Needs(b.Room).Valid() || b.Over(now) {
		return false
	}
	k.claims.Rebook(now, &b)
	return true
}

// forget has those forgotten that have ended.
func (k *Bookings) forget() {
	for _, b := range k.claims.Ended() {
		k.do(DoForgetBooking{BookingName(b.Job, b.Key)})
	}
}

func (k *Bookings) do(e Effect) { k.out = append(k.out, e) }
