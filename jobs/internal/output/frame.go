package output

import (
	"bufio"
	"encoding/binary"
	"hash/crc32"
	"io"
	"os"
	"sync"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/work"
)

// Frame is a piece of output in the file that keeps a job's output: a header
// and the bytes. The header, big-endian, is rank, attempt, stream, length, and
// offset, then the CRC-32C of the bytes, and the CRC-32C of the job's ID, the
// header's place in the file and all of the header before: what was flipped,
// moved, or belongs to another file is no frame.
type Frame struct {
	jobs.Output        // without Data
	N           int    // bytes
	sum         uint32 // of them
	Place       int64  // where they begin in the file
}

const frameHeader = 4 + 4 + 1 + 4 + 8 + 4 + 4

// StreamMark is the stream of a frame without bytes that says up to where the
// file was durable when it was written, in its offset.
const StreamMark work.Stream = 0

// StreamTime is the stream of a frame without bytes that says when what follows came, in its
// offset: milliseconds since 1970.
const StreamTime work.Stream = 255

// maxPiece is how much of a stream stands in one frame: who reads the file has one whole frame
// in memory at a time, and there may be many who read.
const maxPiece = 128 << 10

// timeEvery is how far two times in a file are apart at least: what comes meanwhile has the
// former.
const timeEvery = 100 // milliseconds

func headerSum(job jobs.ID, place int64, h []byte) uint32 {
	var seed [8]byte
	binary.BigEndian.PutUint64(seed[:], uint64(place))
	sum := crc32.Update(crc32.Checksum([]byte(job), codec.Castagnoli()), codec.Castagnoli(), seed[:])
	return crc32.Update(sum, codec.Castagnoli(), h[:frameHeader-4])
}

// appendHeader appends the header of the frame that is to stand at a place of the job's file.
func appendHeader(b []byte, job jobs.ID, place int64, o jobs.Output) []byte {
	start := len(b)
	b = binary.BigEndian.AppendUint32(b, uint32(o.Rank))
	b = binary.BigEndian.AppendUint32(b, uint32(o.Attempt))
	b = append(b, byte(o.Stream))
	b = binary.BigEndian.AppendUint32(b, uint32(len(o.Data)))
	b = binary.BigEndian.AppendUint64(b, uint64(o.Offset))
	b = binary.BigEndian.AppendUint32(b, crc32.Checksum(o.Data, codec.Castagnoli()))
	return binary.BigEndian.AppendUint32(b, headerSum(job, place, b[start:start+frameHeader-4:start+frameHeader-4]))
}

// frames gathers what is to be written of some frames at once. Data that is long is written from
// where it is.
type frames struct {
	job   jobs.ID
	place int64 // where the next one is to stand
	parts [][]byte
	buf   []byte // the last part
}

const longData = 8 << 10

func (f *frames) add(o jobs.Output) {
	f.buf = appendHeader(f.buf, f.job, f.place, o)
	f.place += frameHeader + int64(len(o.Data))
	if len(o.Data) < longData {
		f.buf = append(f.buf, o.Data...)
		return
	}
	f.parts = append(f.parts, f.buf, o.Data)
	f.buf = nil
}

// all returns what was gathered.
func (f *frames) all() [][]byte {
	if len(f.buf) > 0 {
		f.parts, f.buf = append(f.parts, f.buf), nil
	}
	return f.parts
}

// parseFrame reads the header at a place of the job's file, and reports whether
// it is one.
func parseFrame(job jobs.ID, place int64, h []byte) (f Frame, ok bool) {
	f.Rank, f.Attempt = int(binary.BigEndian.Uint32(h)), int(binary.BigEndian.Uint32(h[4:]))
	f.Stream, f.N = work.Stream(h[8]), int(binary.BigEndian.Uint32(h[9:]))
	f.Offset, f.sum = int64(binary.BigEndian.Uint64(h[13:])), binary.BigEndian.Uint32(h[21:])
	f.Place = place + frameHeader
	switch f.Stream {
	case work.Stdout, work.Stderr:
		ok = f.N <= wire.MaxBody && f.Offset >= 0 && f.Attempt > 0
	case StreamMark:
		ok = f.N == 0 && f.Offset > 0 && f.Offset <= place
	case StreamTime:
		ok = f.N == 0 && f.Offset > 0
	}
	return f, ok && binary.BigEndian.Uint32(h[25:]) == headerSum(job, place, h)
}

func (f *Frame) ra() jobs.RankAttempt { return jobs.RankAttempt{Rank: f.Rank, Attempt: f.Attempt} }

// Note reports whether the frame has no bytes of a worker, but tells of others.
func (f *Frame) Note() bool { return f.Stream == StreamMark || f.Stream == StreamTime }

// Key tells whose bytes a frame has.
func (f *Frame) Key() StreamOf { return StreamOf{f.ra(), f.Stream} }

// Frames reads a job's file frame by frame.
type Frames struct {
	job jobs.ID
	src io.Reader
	r   *bufio.Reader
	Pos int64

	Came int64 // when the next frame did; 0 = not known

	held *[maxPiece]byte // what piece returned is in it
}

// pieces are the buffers of readers that have a piece in memory: nobody has one while waiting.
var pieces = sync.Pool{New: func() any { return new([maxPiece]byte) }}

// NewFrames reads the frames of a job, the first of which is at pos. When they came is known
// from the first on that says so.
func NewFrames(job jobs.ID, src io.Reader, pos int64) *Frames {
	return &Frames{job: job, src: src, r: bufio.NewReaderSize(src, 1<<14), Pos: pos}
}

// Next returns the next frame, whose bytes must then be read or skipped, and how
// many bytes before it are no frame. At the end of the file it returns io.EOF.
func (r *Frames) Next() (f Frame, skipped int64, err error) {
	start := r.Pos
	for {
		h, err := r.r.Peek(frameHeader)
		if err != nil {
			if err == io.EOF {
				r.Pos += int64(len(h))
			}
			return Frame{}, r.Pos - start, err
		}
		f, ok := parseFrame(r.job, r.Pos, h)
		if ok {
			r.r.Discard(frameHeader)
			r.Pos += frameHeader
			if f.Stream == StreamTime {
				r.Came = f.Offset
			}
			f.At = r.Came
			return f, r.Pos - frameHeader - start, nil
		}
		r.Came = 0 // it may have been a time
		r.r.Discard(1)
		r.Pos++
	}
}

// Data reads the bytes of the frame into b, if they fit; ok reports whether they are what was written.
func (r *Frames) Data(f *Frame, b []byte) (data []byte, ok bool, err error) {
	if cap(b) < f.N {
		b = make([]byte, f.N)
	}
	b = b[:f.N]
	n, err := io.ReadFull(r.r, b)
	r.Pos += int64(n)
	if err == io.EOF || err == io.ErrUnexpectedEOF { // the file was cut short
		return nil, false, nil
	}
	return b, crc32.Checksum(b, codec.Castagnoli()) == f.sum, err
}

// piece returns the next piece that is wanted, and whether it is what was written. Its bytes are
// good until the next call, or release.
func (r *Frames) piece(want func(jobs.RankAttempt) bool) (f Frame, whole bool, err error) {
	r.release()
	for {
		if f, _, err = r.Next(); err != nil {
			return f, false, err
		}
		if !f.Note() && want(f.ra()) {
			r.held = pieces.Get().(*[maxPiece]byte)
			f.Output.Data, whole, err = r.Data(&f, r.held[:0])
			return f, whole, err
		}
		if _, err = r.skip(&f); err != nil {
			return f, false, err
		}
	}
}

// release lets others have the memory of what piece returned.
func (r *Frames) release() {
	if r.held != nil {
		pieces.Put(r.held)
		r.held = nil
	}
}

// skip leaves out the bytes of the frame. It reports false if they are not all there.
func (r *Frames) skip(f *Frame) (ok bool, err error) {
	file, seekable := r.src.(*os.File)
	if !seekable || f.N <= r.r.Buffered() {
		n, err := r.r.Discard(f.N)
		r.Pos += int64(n)
		if err == io.EOF {
			return false, nil
		}
		return err == nil, err
	}
	info, err := file.Stat()
	if err != nil {
		return false, err
	}
	if r.Pos += int64(f.N); r.Pos > info.Size() {
		r.Pos = info.Size()
		r.r.Reset(eof{})
		return false, nil
	}
	if _, err := file.Seek(r.Pos, io.SeekStart); err != nil {
		return false, err
	}
	r.r.Reset(file)
	return true, nil
}

type eof struct{}

func (eof) Read([]byte) (int, error) { return 0, io.EOF }
