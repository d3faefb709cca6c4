package codec

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// sealed begins a sealed value: no value in msgpack begins so.
const sealed = 0xc1

// Castagnoli is the table of CRC-32C, which all our checksums are. It is made at its
// first use, since it is longer in the making than most commands need it for.
func Castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// Seal returns b for a file, with a checksum: sealed, CRC-32C of b (big-endian), b.
func Seal(b []byte) []byte {
	out := binary.BigEndian.AppendUint32([]byte{sealed}, crc32.Checksum(b, Castagnoli()))
	return append(out, b...)
}

// Unseal returns what was sealed. It fails with ErrMalformed if a bit of it was
// flipped, or if it is not all there.
func Unseal(b []byte) ([]byte, error) {
	switch {
	case len(b) < 5 || b[0] != sealed:
		return nil, fmt.Errorf("%w: it has no checksum", ErrMalformed)
	case crc32.Checksum(b[5:], Castagnoli()) != binary.BigEndian.Uint32(b[1:]):
		return nil, fmt.Errorf("%w: it is damaged", ErrMalformed)
	}
	return b[5:], nil
}

// Unsealed reports whether b begins as a map does that was never sealed, and not
// like one that was sealed, with one bit flipped at most.
func Unsealed(b []byte) bool {
	return len(b) > 0 && (b[0] >= 0x80 && b[0] <= 0x8f && b[0] != sealed^0x40 || b[0] == 0xde)
}
