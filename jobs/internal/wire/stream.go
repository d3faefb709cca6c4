package wire

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/work"
)

// A stream of output is for workers that write more than reports hold: their origin opens
// it at their node, and the node sends pieces for as long as there are any. What the origin
// sends is an Held now and then, of which the first ones tell where the streams go on. All
// numbers are big-endian:
//
//	piece  rank 4, attempt 4, stream 1, offset 8, length 4, and the bytes
//	held   rank 4, attempt 4, and 8 each: stdout, stderr, and what of these is durable
//
// A held of rank 0 and attempt 0 follows the first ones.
const (
	PieceHeader = 4 + 4 + 1 + 8 + 4
	MaxPiece    = 256 << 10 // bytes of output in a piece
	heldSize    = 4 + 4 + 4*8
)

// Held is what an origin has of the output of a worker, and what of that is durable.
type Held struct {
	jobs.RankAttempt
	Have, Safe Written
}

// PutPieceHeader writes the header of a piece with n bytes into h.
func PutPieceHeader(h []byte, ra jobs.RankAttempt, stream work.Stream, offset int64, n int) {
	binary.BigEndian.PutUint32(h, uint32(ra.Rank))
	binary.BigEndian.PutUint32(h[4:], uint32(ra.Attempt))
	h[8] = byte(stream)
	binary.BigEndian.PutUint64(h[9:], uint64(offset))
	binary.BigEndian.PutUint32(h[17:], uint32(n))
}

// ReadPiece reads a piece, whose bytes are in buf, of at least PieceHeader+MaxPiece. At the
// end of the stream it returns io.EOF, and an error that wraps codec.ErrMalformed for what
// is no piece.
func ReadPiece(r io.Reader, buf []byte) (o jobs.Output, err error) {
	h := buf[:PieceHeader]
	if _, err := io.ReadFull(r, h); err != nil {
		return o, err
	}
	o.Rank, o.Attempt = int(binary.BigEndian.Uint32(h)), int(binary.BigEndian.Uint32(h[4:]))
	o.Stream, o.Offset = work.Stream(h[8]), int64(binary.BigEndian.Uint64(h[9:]))
	n := binary.BigEndian.Uint32(h[17:])
	err = CheckRanks([]jobs.RankAttempt{{Rank: o.Rank, Attempt: o.Attempt}})
	if err != nil || n == 0 || n > MaxPiece || o.Offset < 0 || o.Offset > math.MaxInt64-MaxPiece || o.Stream != work.Stdout && o.Stream != work.Stderr {
		return o, fmt.Errorf("piece of output: %w", codec.ErrMalformed)
	}
	o.Data = buf[PieceHeader : PieceHeader+n]
	if _, err = io.ReadFull(r, o.Data); err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return o, err
}

// AppendHeld appends what an origin holds of a worker; of none, the end of the first ones.
func AppendHeld(b []byte, h Held) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(h.Rank))
	b = binary.BigEndian.AppendUint32(b, uint32(h.Attempt))
	for _, n := range []int64{h.Have.Stdout, h.Have.Stderr, h.Safe.Stdout, h.Safe.Stderr} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	return b
}

// ReadHeld reads what AppendHeld wrote; first is the end of the first ones. Errors are as
// those of ReadPiece.
func ReadHeld(r io.Reader) (h Held, first bool, err error) {
	var b [heldSize]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return h, false, err
	}
	h.Rank, h.Attempt = int(binary.BigEndian.Uint32(b[:])), int(binary.BigEndian.Uint32(b[4:]))
	bad := false
	for i, n := range []*int64{&h.Have.Stdout, &h.Have.Stderr, &h.Safe.Stdout, &h.Safe.Stderr} {
		*n = int64(binary.BigEndian.Uint64(b[8+8*i:]))
		bad = bad || *n < 0
	}
	if h == (Held{}) {
		return h, true, nil
	}
	bad = bad || h.Safe.Stdout > h.Have.Stdout || h.Safe.Stderr > h.Have.Stderr
	if bad || CheckRanks([]jobs.RankAttempt{h.RankAttempt}) != nil {
		return h, false, fmt.Errorf("what is held of output: %w", codec.ErrMalformed)
	}
	return h, false, nil
}
