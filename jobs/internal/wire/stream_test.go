package wire

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"math"
	"testing"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/work"
)

// Nodes of all versions write these bytes.
func TestStreamBytes(t *testing.T) {
	piece := make([]byte, PieceHeader, 64)
	PutPieceHeader(piece, jobs.RankAttempt{Rank: 3, Attempt: 2}, work.Stderr, 1<<33, 2)
	piece = append(piece, "hi"...)
	if got, want := hex.EncodeToString(piece), "0000000300000002"+"02"+"0000000200000000"+"00000002"+"6869"; got != want {
		t.Errorf("piece is %s, want %s", got, want)
	}
	held := Held{jobs.RankAttempt{Rank: 3, Attempt: 2}, Written{Stdout: 9, Stderr: 7}, Written{Stdout: 8, Stderr: 6}}
	b := AppendHeld(AppendHeld(nil, held), Held{})
	if got, want := hex.EncodeToString(b[:heldSize]), "0000000300000002"+"0000000000000009"+"0000000000000007"+"0000000000000008"+"0000000000000006"; got != want {
		t.Errorf("held is %s, want %s", got, want)
	}
	r := bytes.NewReader(b)
	if got, first, err := ReadHeld(r); got != held || first || err != nil {
		t.Errorf("read %+v, %t, %v", got, first, err)
	}
	if _, first, err := ReadHeld(r); !first || err != nil {
		t.Errorf("the end of the first ones is read as %t, %v", first, err)
	}
	if _, _, err := ReadHeld(r); err != io.EOF {
		t.Errorf("the end is read as %v", err)
	}
}

// What no node sends is refused before it counts; what was cut short is no end.
func FuzzReadPiece(f *testing.F) {
	add := func(rank, attempt int, s work.Stream, offset int64, n int, data string) {
		h := make([]byte, PieceHeader)
		PutPieceHeader(h, jobs.RankAttempt{Rank: rank, Attempt: attempt}, s, offset, n)
		f.Add(append(h, data...))
	}
	add(0, 1, work.Stdout, 0, 3, "abc")
	add(0, 1, work.Stdout, 0, 4, "abc")
	add(0, 0, work.Stdout, 0, 3, "abc")
	add(0, 1, work.Files, 0, 3, "abc")
	add(0, 1, work.Stdout, -1, 3, "abc")
	add(0, 1, work.Stdout, math.MaxInt64, 3, "abc")
	add(0, 1, work.Stdout, 0, MaxPiece+1, "abc")
	add(0, 1, work.Stdout, 0, 0, "")
	f.Add([]byte{})
	buf := make([]byte, PieceHeader+MaxPiece)
	f.Fuzz(func(t *testing.T, b []byte) {
		o, err := ReadPiece(bytes.NewReader(b), buf)
		if err != nil {
			whole := errors.Is(err, codec.ErrMalformed) || err == io.ErrUnexpectedEOF || err == io.EOF && len(b) == 0
			if !whole {
				t.Fatalf("%x: %v", b, err)
			}
			return
		}
		if o.Rank < 0 || o.Rank >= jobs.MaxRanks || o.Attempt < 1 || o.Offset < 0 || o.Offset+int64(len(o.Data)) < 0 || len(o.Data) == 0 || len(o.Data) > MaxPiece {
			t.Fatalf("%x is read as %+v", b, o)
		}
		again := make([]byte, PieceHeader)
		PutPieceHeader(again, jobs.RankAttempt{Rank: o.Rank, Attempt: o.Attempt}, o.Stream, o.Offset, len(o.Data))
		if !bytes.HasPrefix(b, append(again, o.Data...)) {
			t.Fatalf("%x is read as %+v", b, o)
		}
	})
}
