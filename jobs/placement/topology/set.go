package topology

import "math/bits"

// set is a set of small numbers.
type set []uint64

func newSet(n int) set            { return make(set, (n+63)/64) }
func (s set) add(i int)           { s[i/64] |= 1 << (i % 64) }
func (s set) remove(i int)        { s[i/64] &^= 1 << (i % 64) }
func (s set) holds(i int) bool    { return s[i/64]>>(i%64)&1 == 1 }
func size(groups uint64) int      { return bits.OnesCount64(groups) }
func has(mask uint64, g int) bool { return mask>>g&1 == 1 }

// next returns the first one from i on, or -1.
func (s set) next(i int) int {
	for w := i / 64; w < len(s); w++ {
		word := s[w]
		if w == i/64 {
			word &= ^uint64(0) << (i % 64)
		}
		if word != 0 {
			return w*64 + bits.TrailingZeros64(word)
		}
	}
	return -1
}

// len returns how many there are.
func (s set) len() (n int) {
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

// common returns how many are in both.
func (s set) common(t set) (n int) {
	for w := range s {
		n += bits.OnesCount64(s[w] & t[w])
	}
	return n
}
