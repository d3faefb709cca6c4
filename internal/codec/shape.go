package codec

import (
	"encoding/binary"
	"fmt"
)

// checkShape walks over one msgpack value without building anything and
// reports whether b holds exactly one well-formed value that is not nested
// deeper than MaxDepth, and has at most items array elements and eight times as
// many map entries in all. The decoder proper recurses when it skips unknown
// fields, and makes room for all announced elements of a slice, hundreds of
// bytes for one: this walk keeps both bounded, whatever arrives.
func checkShape(b []byte, items int) error {
	var open [MaxDepth]uint64 // values still expected at each level
	depth, elements, entries := 0, uint64(0), uint64(0)
	for pos := 0; ; {
		size, kids, err := head(b[pos:])
		if err != nil {
			return err
		}
		if isMap(b[pos]) {
			entries += kids / 2
		} else {
			elements += kids
		}
		if elements > uint64(items) || entries > 8*uint64(items) {
			return fmt.Errorf("%w: too many elements", ErrMalformed)
		}
		pos += size
		if kids > 0 {
			if kids > uint64(len(b)-pos) {
				return fmt.Errorf("%w: %d elements announced in %d bytes", ErrMalformed, kids, len(b)-pos)
			}
			if depth == MaxDepth {
				return fmt.Errorf("%w: nested deeper than %d", ErrMalformed, MaxDepth)
			}
			open[depth] = kids
			depth++
			continue
		}
		for depth > 0 {
			open[depth-1]--
			if open[depth-1] > 0 {
				break
			}
			depth--
		}
		if depth == 0 {
			if pos != len(b) {
				return fmt.Errorf("%w: %d bytes after the value", ErrMalformed, len(b)-pos)
			}
			return nil
		}
	}
}

// sizes tells for the type bytes from 0xc0 on what follows the type byte: a
// fixed number of bytes, or a length of so many bytes and then what it counts.
// The layout is that of the msgpack specification, https://msgpack.org.
var sizes = [...]struct {
	known  bool
	fixed  int // bytes of a scalar
	length int // bytes of the length, for what has one
	extra  int // bytes besides those that the length counts: an extension's type
	kids   int // values per counted element; 0 = the length counts bytes
}{
	0x00: {known: true}, 0x02: {known: true}, 0x03: {known: true}, // nil, false, true
	0x04: {known: true, length: 1}, 0x05: {known: true, length: 2}, 0x06: {known: true, length: 4}, // bin
	0x07: {known: true, length: 1, extra: 1}, 0x08: {known: true, length: 2, extra: 1}, 0x09: {known: true, length: 4, extra: 1}, // ext
	0x0a: {known: true, fixed: 4}, 0x0b: {known: true, fixed: 8}, // float
	0x0c: {known: true, fixed: 1}, 0x0d: {known: true, fixed: 2}, 0x0e: {known: true, fixed: 4}, 0x0f: {known: true, fixed: 8}, // uint
	0x10: {known: true, fixed: 1}, 0x11: {known: true, fixed: 2}, 0x12: {known: true, fixed: 4}, 0x13: {known: true, fixed: 8}, // int
	0x14: {known: true, fixed: 2}, 0x15: {known: true, fixed: 3}, 0x16: {known: true, fixed: 5},
	0x17: {known: true, fixed: 9}, 0x18: {known: true, fixed: 17}, // fixext
	0x19: {known: true, length: 1}, 0x1a: {known: true, length: 2}, 0x1b: {known: true, length: 4}, // str
	0x1c: {known: true, length: 2, kids: 1}, 0x1d: {known: true, length: 4, kids: 1}, // array
	0x1e: {known: true, length: 2, kids: 2}, 0x1f: {known: true, length: 4, kids: 2}, // map
}

func isMap(c byte) bool { return c >= 0x80 && c <= 0x8f || c == 0xde || c == 0xdf }

// head reads the first value's own bytes (all of it for a scalar, the header
// for an array or a map) and how many values follow inside it.
func head(b []byte) (size int, kids uint64, err error) {
	if len(b) == 0 {
		return 0, 0, errShort
	}
	switch c := b[0]; {
	case c <= 0x7f || c >= 0xe0: // fixint
		return 1, 0, nil
	case c <= 0x8f: // fixmap
		return 1, 2 * uint64(c&0x0f), nil
	case c <= 0x9f: // fixarray
		return 1, uint64(c & 0x0f), nil
	case c <= 0xbf: // fixstr
		return whole(b, 1+uint64(c&0x1f))
	}
	layout := sizes[b[0]-0xc0]
	switch {
	case !layout.known:
		return 0, 0, fmt.Errorf("%w: unknown type byte %#x", ErrMalformed, b[0])
	case layout.length == 0:
		return whole(b, 1+uint64(layout.fixed))
	case len(b) < 1+layout.length:
		return 0, 0, errShort
	}
	var buf [8]byte
	copy(buf[8-layout.length:], b[1:1+layout.length])
	n := binary.BigEndian.Uint64(buf[:])
	if layout.kids > 0 {
		return 1 + layout.length, n * uint64(layout.kids), nil
	}
	return whole(b, 1+uint64(layout.length)+uint64(layout.extra)+n)
}

var errShort = fmt.Errorf("%w: ends too early", ErrMalformed)

// whole is a scalar of n bytes.
func whole(b []byte, n uint64) (int, uint64, error) {
	if uint64(len(b)) < n {
		return 0, 0, errShort
	}
	return int(n), 0, nil
}
