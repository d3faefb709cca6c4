package record

import (
	"slices"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/timing"
	"zorilla/vicinity"
)

// Booking is a start that nodes promise a job.
type Booking struct {
	Key    uint64         `json:"key"` // of the bookings at all of the nodes
	At     time.Time      `json:"at"`
	Length codec.Duration `json:"length,omitempty"` // 0 = without end
	Parts  []BookingPart  `json:"parts"`
}

// BookingPart is what one node is booked for.
type BookingPart struct {
	Node    vicinity.ID `json:"node"`
	Name    string      `json:"name,omitempty"`
	Workers int         `json:"workers"`
	Room    wire.Room   `json:"room"`
}

// Has reports whether a node is among those that are booked; of no booking none is.
func (b *Booking) Has(id vicinity.ID) bool {
	return b != nil && slices.ContainsFunc(b.Parts, func(p BookingPart) bool { return p.Node == id })
}

// Promised is what a user sees of it; nil of none.
func (b *Booking) Promised() *timing.Promise {
	if b == nil {
		return nil
	}
	s := &timing.Promise{At: b.At}
	if b.Length > 0 {
		s.Until = b.At.Add(time.Duration(b.Length))
	}
	for _, p := range b.Parts {
		s.Workers += p.Workers
		s.Nodes = append(s.Nodes, p.Node)
	}
	return s
}

// after is what is promised after an event.
func (b *Booking) after(ev *Event) *Booking {
	switch ev.Kind {
	case Booked:
		return ev.Booking
	case Granted:
		return nil
	}
	return b
}

func (b *Booking) sound() bool {
	if b == nil {
		return true
	}
	bad := b.Key == 0 || b.At.IsZero() || b.Length < 0 || len(b.Parts) == 0
	for _, p := range b.Parts {
		bad = bad || !p.Node.Valid() || p.Workers < 1 || p.Workers > jobs.MaxRanks || !jobs.Needs(p.Room).Valid()
	}
	return !bad
}
