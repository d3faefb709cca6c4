package swarm

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// Set is a set of chunks by their index: bit i%64 of word i/64.
type Set []uint64

// NewSet returns a set that has room for n chunks, and none of them.
func NewSet(n int) Set { return make(Set, (n+63)/64) }

// Full returns the set of chunks 0 to n-1.
func Full(n int) Set {
	s := NewSet(n)
	for i := range s {
		s[i] = ^uint64(0)
	}
	return s.Fit(n)
}

// Fit returns the chunks of s below n, with room for n.
func (s Set) Fit(n int) Set {
	out := NewSet(n)
	copy(out, s)
	if n%64 != 0 {
		out[len(out)-1] &= 1<<(n%64) - 1
	}
	return out
}

// Has reports whether chunk i is in the set; any i will do.
func (s Set) Has(i int) bool { return i >= 0 && i/64 < len(s) && s[i/64]>>(i%64)&1 == 1 }

// Add puts chunk i, for which there must be room, into the set.
func (s Set) Add(i int) { s[i/64] |= 1 << (i % 64) }

// Del takes chunk i, for which there must be room, out of the set.
func (s Set) Del(i int) { s[i/64] &^= 1 << (i % 64) }

// Count returns how many chunks are in the set.
func (s Set) Count() int {
	n := 0
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

// Empty reports whether no chunk is in the set.
func (s Set) Empty() bool {
	for _, w := range s {
		if w != 0 {
			return false
		}
	}
	return true
}

// without returns a new set: s but not those of any other.
func (s Set) without(others ...Set) Set {
	out := append(Set(nil), s...)
	for _, o := range others {
		for i := range min(len(out), len(o)) {
			out[i] &^= o[i]
		}
	}
	return out
}

// window returns the first at most n words that are of use, and the number of the first.
func (s Set) window(n int) (Set, int) {
	first := 0
	for first < len(s)-1 && s[first] == 0 {
		first++
	}
	return s[first:min(len(s), first+n)], first
}

// MarshalBinary returns the words, least significant byte first.
func (s Set) MarshalBinary() ([]byte, error) {
	b := make([]byte, 0, 8*len(s))
	for _, w := range s {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return b, nil
}

// UnmarshalBinary reads what MarshalBinary writes.
func (s *Set) UnmarshalBinary(b []byte) error {
	if len(b)%8 != 0 {
		return fmt.Errorf("%d bytes are no set of chunks", len(b))
	}
	*s = make(Set, len(b)/8)
	for i := range *s {
		(*s)[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return nil
}
