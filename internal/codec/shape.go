package codec

import (
	"encoding/binary"
	"fmt"
)

// checkShape walks over one msgpack value without building anything and
// reports whether b holds exactly one well-formed value that is not nested
// deeper than MaxDepth. The decoder proper recurses when it skips unknown
// fields; this walk keeps its stack bounded whatever arrives.
func checkShape(b []byte) error {
	var open [MaxDepth]uint64 // values still expected at each level
	depth := 0
	for pos := 0; ; {
		size, kids, err := head(b[pos:])
		if err != nil {
			return err
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

// head reads the first value's own bytes (all of it for a scalar, the header
// for an array or a map) and how many values follow inside it. The layout is
// that of the msgpack specification, https://msgpack.org.
func head(b []byte) (size int, kids uint64, err error) {
	if len(b) == 0 {
		return 0, 0, fmt.Errorf("%w: ends too early", ErrMalformed)
	}
	length := func(width int) (int, uint64, error) {
		if len(b) < 1+width {
			return 0, 0, fmt.Errorf("%w: ends too early", ErrMalformed)
		}
		var buf [8]byte
		copy(buf[8-width:], b[1:1+width])
		return 1 + width, binary.BigEndian.Uint64(buf[:]), nil
	}
	fixed := func(n uint64) (int, uint64, error) {
		if uint64(len(b)) < n {
			return 0, 0, fmt.Errorf("%w: ends too early", ErrMalformed)
		}
		return int(n), 0, nil
	}
	counted := func(width int, extra uint64) (int, uint64, error) {
		h, n, err := length(width)
		if err != nil {
			return 0, 0, err
		}
		return fixed(uint64(h) + n + extra)
	}
	container := func(width int, per uint64) (int, uint64, error) {
		h, n, err := length(width)
		return h, n * per, err
	}
	switch c := b[0]; {
	case c <= 0x7f || c >= 0xe0: // fixint
		return 1, 0, nil
	case c <= 0x8f:
		return 1, 2 * uint64(c&0x0f), nil
	case c <= 0x9f:
		return 1, uint64(c & 0x0f), nil
	case c <= 0xbf:
		return fixed(1 + uint64(c&0x1f))
	default:
		switch c {
		case 0xc0, 0xc2, 0xc3: // nil, false, true
			return 1, 0, nil
		case 0xc4, 0xd9: // bin8, str8
			return counted(1, 0)
		case 0xc5, 0xda:
			return counted(2, 0)
		case 0xc6, 0xdb:
			return counted(4, 0)
		case 0xc7: // ext8
			return counted(1, 1)
		case 0xc8:
			return counted(2, 1)
		case 0xc9:
			return counted(4, 1)
		case 0xcc, 0xd0: // 8-bit integers
			return fixed(2)
		case 0xcd, 0xd1:
			return fixed(3)
		case 0xca, 0xce, 0xd2: // float32, 32-bit integers
			return fixed(5)
		case 0xcb, 0xcf, 0xd3: // float64, 64-bit integers
			return fixed(9)
		case 0xd4: // fixext1
			return fixed(3)
		case 0xd5:
			return fixed(4)
		case 0xd6:
			return fixed(6)
		case 0xd7:
			return fixed(10)
		case 0xd8:
			return fixed(18)
		case 0xdc:
			return container(2, 1)
		case 0xdd:
			return container(4, 1)
		case 0xde:
			return container(2, 2)
		case 0xdf:
			return container(4, 2)
		}
	}
	return 0, 0, fmt.Errorf("%w: unknown type byte %#x", ErrMalformed, b[0])
}
