package flood

import "time"

// seenMargin outlasts the time a copy spends on its way over MaxRadius hops.
const seenMargin = time.Minute

type seenKey [16]byte

type seenEntry struct {
	best   uint8 // TTL
	dead   bool  // refused or over the limit: never to be forwarded
	expiry time.Time
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
