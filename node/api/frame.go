package api

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/work"
)

// The kinds of frames; doc.go has the layout.
const (
	frameEnd    = 0
	frameOutput = 1
	frameError  = 2
	frameTime   = 3

	frameHeader = 22
	maxFrame    = 1 << 20
)

// appendFrame appends one frame with at most maxFrame bytes of data.
func appendFrame(b []byte, kind byte, o jobs.Output) []byte {
	return append(appendHeader(b, kind, o), o.Data...)
}

func appendHeader(b []byte, kind byte, o jobs.Output) []byte {
	b = append(b, kind, byte(o.Stream))
	b = binary.BigEndian.AppendUint32(b, uint32(o.Rank))
	b = binary.BigEndian.AppendUint32(b, uint32(o.Attempt))
	b = binary.BigEndian.AppendUint64(b, uint64(o.Offset))
	return binary.BigEndian.AppendUint32(b, uint32(len(o.Data)))
}

// smallPiece is the most bytes that are copied behind their header, to be written with it. Larger
// pieces are written from where they are: a copy for each client that follows would take much memory.
const smallPiece = 8 << 10

// writeOutput writes b, and o after it in as many frames as its size asks for; b is its memory, too.
func writeOutput(w io.Writer, b []byte, o jobs.Output) error {
	for {
		part := o
		part.Data = o.Data[:min(len(o.Data), maxFrame)]
		o.Data, o.Offset = o.Data[len(part.Data):], o.Offset+int64(len(part.Data))
		b = appendHeader(b, frameOutput, part)
		if len(part.Data) <= smallPiece {
			b = append(b, part.Data...)
			part.Data = nil
		}
		_, err := w.Write(b)
		if err == nil && len(part.Data) > 0 {
			_, err = w.Write(part.Data)
		}
		if err != nil || len(o.Data) == 0 {
			return err
		}
		b = b[:0]
	}
}

// appendEnd appends the frame that ends a stream: the end, or err.
func appendEnd(b []byte, err error) []byte {
	if err == nil {
		return appendFrame(b, frameEnd, jobs.Output{})
	}
	body, _ := encodeError(err)
	if len(body.Error) > maxErrorBytes {
		body.Error = body.Error[:maxErrorBytes]
	}
	data, err := json.Marshal(body)
	if err != nil {
		panic(err) // two strings always have a JSON form
	}
	return appendFrame(b, frameError, jobs.Output{Data: data})
}

// frameReader reads the frames of a stream.
type frameReader struct {
	r    io.Reader
	h    [frameHeader]byte
	held *[usualPiece]byte // the data of the last frame is in it
}

// usualPiece is how much output a node sends in a frame at most, unless it is an older one.
const usualPiece = 128 << 10

// pieces are the buffers of readers that have a piece in memory: nobody has one while waiting.
var pieces = sync.Pool{New: func() any { return new([usualPiece]byte) }}

// release lets others have the memory of the last frame.
func (f *frameReader) release() {
	if f.held != nil {
		pieces.Put(f.held)
		f.held = nil
	}
}

// next reads the next frame: a piece of output, or, of no stream, only the time
// at which what follows came. Its data is good until the next call, or release. It returns io.EOF after an end
// frame, io.ErrUnexpectedEOF when the stream stops without one, the error of
// an error frame, and an error that wraps codec.ErrMalformed for anything
// that is not a frame.
func (f *frameReader) next() (jobs.Output, error) {
	f.release()
	h := &f.h
	if _, err := io.ReadFull(f.r, h[:]); err != nil {
		return jobs.Output{}, noEOF(err)
	}
	o := jobs.Output{
		Stream:  work.Stream(h[1]),
		Rank:    int(binary.BigEndian.Uint32(h[2:])),
		Attempt: int(binary.BigEndian.Uint32(h[6:])),
		Offset:  int64(binary.BigEndian.Uint64(h[10:])),
	}
	size := binary.BigEndian.Uint32(h[18:])
	if size > maxFrame {
		return jobs.Output{}, fmt.Errorf("%w: output frame of %d bytes, at most %d", codec.ErrMalformed, size, maxFrame)
	}
	switch h[0] {
	case frameEnd:
		if *h != [frameHeader]byte{} {
			return jobs.Output{}, fmt.Errorf("%w: end frame is not empty", codec.ErrMalformed)
		}
		return jobs.Output{}, io.EOF
	case frameOutput:
		if o.Stream < work.Stdout || o.Stream > work.Files || o.Rank > jobs.MaxTaskID || o.Offset < 0 {
			return jobs.Output{}, fmt.Errorf("%w: output frame of stream %d, rank %d, offset %d", codec.ErrMalformed, o.Stream, o.Rank, o.Offset)
		}
	case frameTime:
		if o.Offset < 0 || size > 0 {
			return jobs.Output{}, fmt.Errorf("%w: time frame of %d bytes that says %d", codec.ErrMalformed, size, o.Offset)
		}
		return jobs.Output{At: o.Offset}, nil
	case frameError:
	default:
		return jobs.Output{}, fmt.Errorf("%w: output frame of kind %d", codec.ErrMalformed, h[0])
	}
	if size <= usualPiece {
		f.held = pieces.Get().(*[usualPiece]byte)
		o.Data = f.held[:size]
	} else {
		o.Data = make([]byte, size)
	}
	if _, err := io.ReadFull(f.r, o.Data); err != nil {
		return jobs.Output{}, noEOF(err)
	}
	if h[0] == frameOutput {
		return o, nil
	}
	var body errorBody
	if err := json.Unmarshal(o.Data, &body); err != nil {
		return jobs.Output{}, fmt.Errorf("%w: error frame: %v", codec.ErrMalformed, err)
	}
	return jobs.Output{}, body.decode()
}

func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
