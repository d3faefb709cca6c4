package flood

import (
	"time"

	"zorilla/vicinity"
)

// seenMargin outlasts the time a copy spends on its way over MaxRadius hops, and
// the time for which Check takes a copy that somebody has recorded for genuine.
const seenMargin = 2 * time.Minute

type seenKey [16]byte

type seenEntry struct {
	best   uint8 // TTL
	again  uint8 // times that it was delivered again
	dead   bool  // refused or over the limit: never to be forwarded
	heard  []copyFrom
	expiry time.Time
}

// copyFrom is a neighbour that has sent a copy, and the TTL of that.
type copyFrom struct {
	id  vicinity.ID
	ttl uint8
}

// maxHeard bounds how many of them are remembered for a message.
const maxHeard = 16

func (e *seenEntry) hear(id vicinity.ID, ttl uint8) {
	for i := range e.heard {
		if h := &e.heard[i]; h.id == id {
			h.ttl = max(h.ttl, ttl)
			return
		}
	}
	if len(e.heard) < maxHeard {
		e.heard = append(e.heard, copyFrom{id, ttl})
	}
}

// knows reports whether a neighbour has the message with at least this TTL: it
// had one more than what it sent.
func (e *seenEntry) knows(id vicinity.ID, ttl uint8) bool {
	for _, h := range e.heard {
		if h.id == id {
			return h.ttl+1 >= ttl
		}
	}
	return false
}

// seenSet remembers messages. Entries leave in the order they came, once they
// have expired or when the set is full; one that expires behind an entry with a
// longer life stays until that one leaves, which costs memory within the bound
// and nothing else.
type seenSet struct {
	max     int
	entries map[seenKey]*seenEntry
	order   []seenKey // oldest first
}

func newSeenSet(max int) *seenSet {
	return &seenSet{max: max, entries: map[seenKey]*seenEntry{}}
}

func (s *seenSet) get(key seenKey) *seenEntry { return s.entries[key] }

func (s *seenSet) add(now time.Time, key seenKey, life time.Duration, e seenEntry) {
	for len(s.order) > 0 && (len(s.order) >= s.max || !now.Before(s.entries[s.order[0]].expiry)) {
		delete(s.entries, s.order[0])
		s.order = s.order[1:]
	}
	e.expiry = now.Add(life + seenMargin)
	s.entries[key] = &e
	s.order = append(s.order, key)
}
