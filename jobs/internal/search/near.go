package search

import (
	"time"

	"zorilla/flood"
	"zorilla/vicinity"
)

// A flood finds nodes that its origin does not know. Where all others have been measured
// nobody is left to be found, and they are asked one by one, the nearest first, without
// the copies that neighbours of neighbours send to each other, and without waiting for
// each step: as many are always being asked as will probably do.

// maxDirect bounds the others whom a job asks so.
const maxDirect = 1024

// maxBounded is which share of the others may be known by bounds alone.
const maxBounded = 8

// everybody lists all others, nearest first, if they can be asked so, else none. A few of them
// that have not been measured yet are asked as if they were as near as they can be.
func (s *distances) everybody() []vicinity.Measured {
	others := s.Members() - 1
	if others < 1 || others > maxDirect {
		return nil
	}
	list := s.Near(anywhere, others)
	bounded := 0
	for _, m := range list {
		if m.Least {
			bounded++
		}
	}
	if len(list) < others || bounded > others/maxBounded {
		return nil
	}
	return list
}

// twice is the round trip to a node that was measured once and has then answered this node,
// else 0.
func twice(f *flood.Frontier, id vicinity.ID) time.Duration {
	_, least := f.Took(id)
	return least
}

// confirmed reports whether a node has answered so soon that it is as far as it was.
func confirmed(f *flood.Frontier, id vicinity.ID, rtt time.Duration) bool {
	took, _ := f.Took(id)
	return took > 0 && took <= rtt*9/8+time.Millisecond
}
