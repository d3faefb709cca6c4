package primary

import (
	"maps"
	"time"

	"zorilla/vicinity"
)

// A job whose patience is shorter than wire.PartLease cannot wait for the next report of a node
// to know whether it is there. It has the node knocked at: the kernel of the node's machine
// accepts a connection, or refuses it if the node does not run. A node that is only starved of
// processor time, or paused, answers as well, so that it is given up no sooner than for any
// other job, when its reports have been missing for wire.PartLease.

// Signs are what the primaries of a node know together of whether others are there. The zero
// value is ready.
type Signs struct{ nodes map[vicinity.ID]*sign }

// sign is what is known of one.
type sign struct {
	seen    time.Time // its latest report, or answer to a knock
	knocked time.Time // when the latest knock began
	missed  int       // knocks since it was seen that have ended without an answer
}

// Knock is how a knock at a node has ended.
type Knock int

const (
	KnockAnswered Knock = iota // the node runs
	KnockMissed                // there is no answer, or a refusal
	KnockVoid                  // nothing is known: it is not clear where the node is, or this node was starved itself
)

const (
	// enoughMissed is how many knocks in a row must have ended without an answer: where one packet in ten
	// is lost all of them are by chance once in a thousand times, and more are on their way by then.
	enoughMissed = 4
	maxSigns     = 4096 // nodes of which something is known
	oldSign      = time.Minute
)

// DoKnock asks the machine of a node for a connection to it, within a time: Signs.Knocked.
type DoKnock struct {
	To     vicinity.ID
	At     time.Time // when it was wanted
	Within time.Duration
}

func (DoKnock) ofPrimary() {}

// begin notes that a node is knocked at.
func (s *Signs) begin(now time.Time, id vicinity.ID) {
	k := s.nodes[id]
	if k == nil {
		if len(s.nodes) >= maxSigns {
			maps.DeleteFunc(s.nodes, func(_ vicinity.ID, k *sign) bool { return now.Sub(k.knocked) > oldSign })
		}
		if s.nodes == nil {
			s.nodes = map[vicinity.ID]*sign{}
		}
		k = &sign{}
		s.nodes[id] = k
	}
	k.knocked = now
}

// Knocked takes the end of a knock.
func (s *Signs) Knocked(now time.Time, e DoKnock, how Knock) {
	switch k := s.nodes[e.To]; {
	case k == nil || how == KnockVoid:
	case how == KnockAnswered:
		k.seen, k.missed = now, 0
	case !e.At.Before(k.seen): // else there was a sign of life since
		k.missed++
	}
}

// heard notes that a node has reported.
func (s *Signs) heard(now time.Time, id vicinity.ID) {
	if k := s.nodes[id]; k != nil {
		k.seen, k.missed = now, 0
	}
}

// Stalled is called when this node did not run for a while: nobody could be heard.
func (s *Signs) Stalled(now time.Time) {
	for _, k := range s.nodes {
		k.seen, k.missed = now, 0
	}
}

// of returns what is known of a node.
func (s *Signs) of(id vicinity.ID) sign {
	if k := s.nodes[id]; k != nil {
		return *k
	}
	return sign{}
}
