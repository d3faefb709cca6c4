package api

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"reflect"
	"runtime"
	"testing"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/work"
)

// appendOutput is what writeOutput writes.
func appendOutput(b []byte, o jobs.Output) []byte {
	w := bytes.NewBuffer(b)
	if err := writeOutput(w, nil, o); err != nil {
		panic(err) // a buffer takes all
	}
	return w.Bytes()
}

func TestFrameLayout(t *testing.T) {
	o := jobs.Output{Rank: 3, Attempt: 2, Stream: work.Stderr, Offset: 258, Data: []byte("hi")}
	const want = "01" + "02" + "00000003" + "00000002" + "0000000000000102" + "00000002" + "6869"
	if got := hex.EncodeToString(appendOutput(nil, o)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := hex.EncodeToString(appendEnd(nil, nil)); got != hex.EncodeToString(make([]byte, 22)) {
		t.Errorf("end frame is %s", got)
	}
}

func TestFramesThatAreRefused(t *testing.T) {
	frame := func(change func([]byte)) []byte {
		b := appendOutput(nil, jobs.Output{Stream: work.Stdout, Data: []byte("x")})
		change(b)
		return b
	}
	for name, b := range map[string][]byte{
		"kind":     frame(func(b []byte) { b[0] = 9 }),
		"stream":   frame(func(b []byte) { b[1] = 4 }),
		"rank":     frame(func(b []byte) { b[2] = 255 }),
		"offset":   frame(func(b []byte) { b[10] = 255 }),
		"length":   frame(func(b []byte) { b[18] = 255 }),
		"full end": frame(func(b []byte) { b[0] = 0 }),
		"error":    frame(func(b []byte) { b[0] = 2 }),
	} {
		if _, err := readFrame(bytes.NewReader(b)); !errors.Is(err, codec.ErrMalformed) {
			t.Errorf("%s: got %v, want ErrMalformed", name, err)
		}
	}
	for n := range 23 {
		if _, err := readFrame(bytes.NewReader(frame(func([]byte) {})[:n])); err != io.ErrUnexpectedEOF {
			t.Errorf("%d bytes: got %v, want ErrUnexpectedEOF", n, err)
		}
	}
}

// readFrame reads one frame of a stream, with memory of its own.
func readFrame(r io.Reader) (jobs.Output, error) { return (&frameReader{r: r}).next() }

func FuzzReadFrame(f *testing.F) {
	f.Add(appendOutput(nil, jobs.Output{Rank: 1, Attempt: 1, Stream: work.Stdout, Offset: 7, Data: []byte("seed")}))
	f.Add(appendEnd(nil, nil))
	f.Add(appendEnd(nil, ErrNotFound))
	f.Add(appendFrame(nil, frameTime, jobs.Output{Offset: 1 << 40}))
	f.Add([]byte{1, 1, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		o, err := readFrame(bytes.NewReader(b))
		if err != nil {
			return
		}
		written := appendOutput(nil, o)
		if o.Stream == 0 {
			written = appendFrame(nil, frameTime, jobs.Output{Offset: o.At})
		}
		again, err := readFrame(bytes.NewReader(written))
		if err != nil || !reflect.DeepEqual(o, again) {
			t.Fatalf("got %+v, %v, want %+v", again, err, o)
		}
	})
}

// A piece that is larger than a frame is sent in several, each with the place of its own bytes.
func TestLargePiecesAreSplit(t *testing.T) {
	for _, size := range []int{0, smallPiece, smallPiece + 1, maxFrame, maxFrame + 1, 3*maxFrame/2 + smallPiece, 2 * maxFrame} {
		o := jobs.Output{Rank: 3, Attempt: 2, Stream: work.Stderr, Offset: 1 << 33, Data: make([]byte, size)}
		for i := range o.Data {
			o.Data[i] = byte(i % 251)
		}
		r := bytes.NewReader(appendOutput(nil, o))
		var got []byte
		for r.Len() > 0 {
			part, err := readFrame(r)
			if want := o.Offset + int64(len(got)); err != nil || part.Offset != want || part.Rank != o.Rank || part.Attempt != o.Attempt || part.Stream != o.Stream {
				t.Fatalf("%d bytes: got %d more of rank %d at %d, %v, want them at %d", size, len(part.Data), part.Rank, part.Offset, err, want)
			}
			got = append(got, part.Data...)
		}
		if !bytes.Equal(got, o.Data) {
			t.Errorf("%d bytes: got %d, or others", size, len(got))
		}
	}
}

// countingWriter counts what is written.
type countingWriter int

func (w *countingWriter) Write(p []byte) (int, error) {
	*w += countingWriter(len(p))
	return len(p), nil
}

// Each client that follows some output would have a copy of its last piece in the node.
func TestLargePiecesAreNotCopied(t *testing.T) {
	o := jobs.Output{Stream: work.Stdout, Data: make([]byte, 3*maxFrame/2)}
	buf := make([]byte, 0, 2*frameHeader+smallPiece)
	var w countingWriter
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := writeOutput(&w, buf, o)
	runtime.ReadMemStats(&after)
	if want := countingWriter(len(o.Data) + 2*frameHeader); err != nil || w != want {
		t.Errorf("wrote %d bytes, want %d: %v", w, want, err)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > smallPiece {
		t.Errorf("it took %d bytes to write %d", n, len(o.Data))
	}
}

// A client that follows much output makes no garbage of its size, and keeps nothing while it waits.
func TestFramesMakeLittleGarbage(t *testing.T) {
	const all = 128
	frame := appendOutput(nil, jobs.Output{Stream: work.Stdout, Attempt: 1, Data: make([]byte, usualPiece)})
	f := &frameReader{r: bytes.NewReader(bytes.Repeat(frame, all))}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range all {
		if o, err := f.next(); err != nil || len(o.Data) != usualPiece {
			t.Fatalf("got %d bytes, %v", len(o.Data), err)
		}
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > all*usualPiece/2 { // under the race detector a pool forgets a quarter of what it is given
		t.Errorf("reading %d bytes took %d", all*usualPiece, n)
	}
	if _, err := f.next(); err != io.ErrUnexpectedEOF || f.held != nil {
		t.Errorf("at the end: %v, and it keeps a piece: %v", err, f.held != nil)
	}
}
