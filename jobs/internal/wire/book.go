package wire

import (
	"cmp"
	"fmt"
	"time"

	"zorilla/internal/codec"
	"zorilla/internal/sanitize"
	"zorilla/jobs"
)

// A booking promises workers of a job, or of a reservation, room at a node from a time on. All times travel as
// lengths from now, so that clocks which differ do no harm.

const (
	// BookLease is how long a node keeps a booking of whose origin it hears nothing, TentativeLease one that is not
	// confirmed.
	BookLease      = time.Hour
	TentativeLease = 10 * time.Second
	// RenewBook is how often the origin confirms its bookings again.
	RenewBook = 10 * time.Minute
	// MaxSteps is how many steps an answer has at most.
	MaxSteps = 4
	// MaxAhead is how far in the future a booking may begin.
	MaxAhead = 366 * 24 * time.Hour
)

type (
	// Step says that so many workers could begin at any moment from a time on, up to the next step.
	Step struct {
		In      int64 `json:"i"`           // milliseconds from now
		Workers int   `json:"w,omitempty"` // 0 = none, until the next step
		Room    *Room `json:"m,omitempty"` // for a job with kinds
	}

	// Book makes a booking, keeps it on, or ends it. The same again does no harm.
	Book struct {
		Job jobs.ID `json:"job"`
		// Key is the origin's name for the booking. A job may have several at a node, of which it will use one:
		// those with other keys are in nobody's way but others'.
		Key uint64 `json:"key"`
		// Lease is for how long, in milliseconds, it is kept from now; 0 = it ends.
		Lease int64 `json:"lease,omitempty"`
		// New is what is booked; nil = the booking with the key is kept on, or ends.
		New *Booking `json:"new,omitempty"`
	}

	// Booking is what a booking is for.
	Booking struct {
		In      int64 `json:"in"`               // milliseconds from now to its begin
		Length  int64 `json:"length,omitempty"` // milliseconds; 0 = without end
		Workers int   `json:"workers"`
		Room    Room  `json:"room"` // for all of them together
	}

	// Booked answers a Book.
	Booked struct {
		OK     bool   `json:"ok"`
		Reason string `json:"reason,omitempty"` // why not
	}
)

func badLength(ms int64) bool { return ms < 0 || ms > jobs.MaxTime.Milliseconds() }

func badSteps(steps []Step) bool {
	bad := len(steps) > MaxSteps
	for i, s := range steps {
		bad = bad || s.In < 0 || s.In > MaxAhead.Milliseconds() || i > 0 && s.In <= steps[i-1].In || s.Workers < 0 || s.Workers > jobs.MaxRanks ||
			s.Room != nil && !jobs.Needs(*s.Room).Valid()
	}
	return bad
}

// Check refuses what no honest node sends.
func (b *Book) Check() error {
	bad := !b.Job.Valid() || b.Key == 0 || b.Lease < 0 || b.Lease > BookLease.Milliseconds() || b.New != nil && b.Lease == 0
	if n := b.New; n != nil {
		bad = bad || n.In < 0 || n.In > MaxAhead.Milliseconds() || badLength(n.Length) || n.Workers < 1 || n.Workers > jobs.MaxRanks ||
			!jobs.Needs(n.Room).Valid()
	}
	if bad {
		return fmt.Errorf("book: %w", codec.ErrMalformed)
	}
	return nil
}

// Refused says why a booking is not made or kept on, "" = it is.
func (b *Booked) Refused() string {
	if b.OK {
		return ""
	}
	return cmp.Or(b.Reason, "refused")
}

// Check refuses what no honest node sends.
func (b *Booked) Check() error {
	if len(b.Reason) > MaxReason || !sanitize.Printable(b.Reason) {
		return fmt.Errorf("booked: %w", codec.ErrMalformed)
	}
	return nil
}
