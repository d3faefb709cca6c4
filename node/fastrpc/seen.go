package fastrpc

import (
	"maps"
	"time"

	"zorilla/vicinity"
)

const (
	// remembered is how long it is remembered that a request has come: longer than its key opens it,
	// and than it may take over its connection.
	remembered = keyOpens + keyLasts
	// maxSeen bounds the requests of one node that are remembered, maxAll those of all: 12 MB. What
	// comes as a packet beyond that is left to its connection.
	maxSeen = 2048
	maxAll  = 65536
	// maxServed bounds the requests of packets that are being done, maxServedEach those of a node.
	maxServed     = 256
	maxServedEach = 64
)

// came is a request that has come.
type came struct {
	at   time.Time
	done *done // nil: over its connection
}

// done is what has become of a request that came as a packet.
type done struct {
	ended  chan struct{} // is closed when answer is set
	answer answer        // Status 0: it was too long for a packet, and is not kept
}

// sender is a node of which requests have come.
type sender struct {
	requests map[number]came
	deaf     time.Time // until when its packets are left to their connections: not all that came is remembered
	served   int       // packets, now
}

// seen are the requests that have come.
type seen struct {
	senders map[vicinity.ID]*sender
	all     int
	served  int
}

// of returns a sender, without what is too old.
func (s *seen) of(now time.Time, id vicinity.ID) *sender {
	f := s.senders[id]
	if f == nil {
		f = &sender{requests: map[number]came{}}
		s.senders[id] = f
	}
	if len(f.requests) >= maxSeen {
		s.trim(now, f)
	}
	return f
}

func (s *seen) trim(now time.Time, f *sender) {
	before := len(f.requests)
	maps.DeleteFunc(f.requests, func(_ number, c came) bool { return now.Sub(c.at) >= remembered })
	s.all -= before - len(f.requests)
}

// expire forgets what is too old.
func (s *seen) expire(now time.Time) {
	for id, f := range s.senders {
		if s.trim(now, f); len(f.requests) == 0 && f.served == 0 && !now.Before(f.deaf) {
			delete(s.senders, id)
		}
	}
}

// note remembers a request, and reports whether there was room for it.
func (s *seen) note(now time.Time, f *sender, n number, d *done) bool {
	if len(f.requests) >= maxSeen || s.all >= maxAll {
		return false
	}
	f.requests[n] = came{now, d}
	s.all++
	return true
}

// packet notes a request that comes as a packet; nil if it is not to be done.
func (s *seen) packet(now time.Time, from vicinity.ID, n number) *done {
	f := s.of(now, from)
	if _, again := f.requests[n]; again || now.Before(f.deaf) || f.served >= maxServedEach || s.served >= maxServed {
		return nil
	}
	d := &done{ended: make(chan struct{})}
	if !s.note(now, f, n, d) {
		return nil
	}
	f.served++
	s.served++
	return d
}

// ended is called when a request that came as a packet has been done.
func (s *seen) ended(from vicinity.ID) {
	s.senders[from].served--
	s.served--
}

// connection notes a request that comes over a connection, and returns what has become of it if it
// came as a packet before.
func (s *seen) connection(now time.Time, from vicinity.ID, n number) *done {
	f := s.of(now, from)
	if c, again := f.requests[n]; again {
		return c.done
	}
	if !s.note(now, f, n, nil) { // its packet may yet come
		f.deaf = now.Add(remembered)
	}
	return nil
}
