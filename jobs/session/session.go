// Package session is what is said between a client and one more command that runs beside
// a worker's own: frames in both directions of a byte stream. Whoever is between the two
// passes the bytes on and needs to know nothing of them.
//
// A frame is its kind in one byte, the length of its data in four, big endian, then the
// data:
//
//	start   1  client: what to run, as msgpack; first, once
//	input   2  client: standard input, at most what the other side has room for
//	close   3  client: the end of standard input
//	resize  4  client: rows and columns of its terminal, two bytes each
//	signal  5  client: a signal's number, one byte
//	began  16  worker: the command is being started; first
//	output 17  worker: standard output
//	errors 18  worker: standard error
//	taken  19  worker: how many more bytes of input the command has read, four bytes
//	exit   20  worker: how the command ended, as msgpack; last
//
// A client sends at most [Window] bytes of input that were not taken, so that signals never
// wait behind input that nobody reads. The other direction is held up by a client that
// does not read. A stream that ends without exit was broken; a client that ends its own
// gives up, and the command with it. Unknown kinds are ignored.
package session

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"zorilla/internal/codec"
)

// Kind is what a frame is.
type Kind byte

// The kinds of frames.
const (
	KindStart  Kind = 1
	KindInput  Kind = 2
	KindClose  Kind = 3
	KindResize Kind = 4
	KindSignal Kind = 5

	KindBegan  Kind = 16
	KindOutput Kind = 17
	KindErrors Kind = 18
	KindTaken  Kind = 19
	KindExit   Kind = 20
)

const (
	// Window is how much input may be on its way.
	Window = 256 << 10
	// MaxData is the most that a frame of input or output has.
	MaxData = 32 << 10

	maxStart  = 1 << 20 // the words that a frame of a start may take
	maxWords  = 4096
	maxText   = 4 << 10
	maxSignal = 64
	header    = 5
)

// ErrMalformed is wrapped by the errors about what is no frame.
var ErrMalformed = errors.New("malformed frame of a session")

// Start is what a client wants to have run.
type Start struct {
	Args []string `json:"args"`
	Env  []string `json:"env,omitempty"` // K=V, beside the worker's own
	// Terminal: the command gets a terminal of its own, of that size. Its standard error
	// is that, too.
	Terminal *Size `json:"terminal,omitempty"`
}

// Size is that of a terminal.
type Size struct {
	Rows    uint16 `json:"rows"`
	Columns uint16 `json:"columns"`
}

// Check refuses what cannot be run.
func (s *Start) Check() error {
	bytes := 0
	for i, w := range append(append([]string{}, s.Args...), s.Env...) {
		if bytes += len(w) + 1; strings.Contains(w, "\x00") {
			return fmt.Errorf("%w: a word holds a zero byte", ErrMalformed)
		}
		if name, _, found := strings.Cut(w, "="); i >= len(s.Args) && (!found || name == "") {
			return fmt.Errorf("%w: %.40q is no variable", ErrMalformed, w)
		}
	}
	switch {
	case len(s.Args) == 0 || s.Args[0] == "":
		return fmt.Errorf("%w: no command", ErrMalformed)
	case len(s.Args) > maxWords || len(s.Env) > maxWords || bytes > maxStart/2:
		return fmt.Errorf("%w: %d words, %d variables, %d bytes: that is too much", ErrMalformed, len(s.Args), len(s.Env), bytes)
	}
	return nil
}

// Exit is how a command ended.
type Exit struct {
	Code int    `json:"code"`           // 0..255; 128+signal; 125, 126, 127 if it did not run
	Text string `json:"text,omitempty"` // one line for people, if there is something to say
}

// Reader reads frames.
type Reader struct {
	r   io.Reader
	buf []byte
}

// NewReader returns a reader of frames. It reads nothing beyond the frame that it is asked
// for.
func NewReader(r io.Reader) *Reader { return &Reader{r: r} }

// Next returns the next frame, whose data is valid until it is called again. At the end
// between two frames the error is io.EOF.
func (r *Reader) Next() (Kind, []byte, error) {
	var head [header]byte
	if _, err := io.ReadFull(r.r, head[:]); err != nil {
		return 0, nil, err
	}
	kind, n := Kind(head[0]), binary.BigEndian.Uint32(head[1:])
	if most := limit(kind); n > most {
		return 0, nil, fmt.Errorf("%w: %d bytes of kind %d, at most %d", ErrMalformed, n, kind, most)
	}
	if cap(r.buf) < int(n) {
		r.buf = make([]byte, n)
	}
	data := r.buf[:n]
	if _, err := io.ReadFull(r.r, data); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return 0, nil, err
	}
	return kind, data, nil
}

// limit is how long the data of a kind may be.
func limit(kind Kind) uint32 {
	switch kind {
	case KindStart:
		return maxStart
	case KindExit:
		return 2 * maxText
	}
	return MaxData
}

// ReadStart reads the frame that must come first.
func ReadStart(r *Reader) (*Start, error) {
	kind, data, err := r.Next()
	if err != nil {
		return nil, err
	}
	if kind != KindStart {
		return nil, fmt.Errorf("%w: kind %d, want a start first", ErrMalformed, kind)
	}
	s := &Start{}
	if err := codec.Unmarshal(data, s); err != nil {
		return nil, fmt.Errorf("%w: %v", ErrMalformed, err)
	}
	return s, s.Check()
}

// ParseSize reads the data of a resize.
func ParseSize(data []byte) (Size, error) {
	if len(data) != 4 {
		return Size{}, fmt.Errorf("%w: a size of %d bytes", ErrMalformed, len(data))
	}
	return Size{binary.BigEndian.Uint16(data), binary.BigEndian.Uint16(data[2:])}, nil
}

// ParseSignal reads the data of a signal.
func ParseSignal(data []byte) (int, error) {
	if len(data) != 1 || data[0] == 0 || data[0] > maxSignal {
		return 0, fmt.Errorf("%w: signal %v", ErrMalformed, data)
	}
	return int(data[0]), nil
}

// ParseTaken reads the data of a taken: how much, at most Window.
func ParseTaken(data []byte) (int, error) {
	if len(data) != 4 || binary.BigEndian.Uint32(data) > Window {
		return 0, fmt.Errorf("%w: taken %v", ErrMalformed, data)
	}
	return int(binary.BigEndian.Uint32(data)), nil
}

// ParseExit reads the data of an exit.
func ParseExit(data []byte) (e Exit, err error) {
	if err := codec.Unmarshal(data, &e); err != nil {
		return e, fmt.Errorf("%w: %v", ErrMalformed, err)
	}
	if e.Code < 0 || e.Code > 255 || len(e.Text) > maxText {
		return e, fmt.Errorf("%w: an exit with %d", ErrMalformed, e.Code)
	}
	return e, nil
}

// Writer writes frames. Its methods may be called from any goroutine.
type Writer struct {
	mu  sync.Mutex // held for the whole of a frame
	w   io.Writer
	buf []byte
}

// NewWriter returns a writer of frames, each of which is one Write of w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Write writes a frame with at most MaxData bytes, or what Start and Exit take.
func (w *Writer) Write(kind Kind, data []byte) error {
	if uint32(len(data)) > limit(kind) {
		return fmt.Errorf("%w: %d bytes of kind %d", ErrMalformed, len(data), kind)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf = append(binary.BigEndian.AppendUint32(append(w.buf[:0], byte(kind)), uint32(len(data))), data...)
	_, err := w.w.Write(w.buf)
	if cap(w.buf) > 2*MaxData { // of a start
		w.buf = nil
	}
	return err
}

// Start writes what is to be run.
func (w *Writer) Start(s *Start) error {
	if err := s.Check(); err != nil {
		return err
	}
	b, err := codec.Marshal(s)
	if err != nil {
		return err
	}
	return w.Write(KindStart, b)
}

// Resize writes the size of the client's terminal.
func (w *Writer) Resize(s Size) error {
	return w.Write(KindResize, binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, s.Rows), s.Columns))
}

// Signal writes the number of a signal.
func (w *Writer) Signal(number int) error {
	if number < 1 || number > maxSignal {
		return fmt.Errorf("%w: signal %d", ErrMalformed, number)
	}
	return w.Write(KindSignal, []byte{byte(number)})
}

// Taken writes how much more of the input was read.
func (w *Writer) Taken(n int) error {
	return w.Write(KindTaken, binary.BigEndian.AppendUint32(nil, uint32(n)))
}

// Exit writes how the command ended.
func (w *Writer) Exit(e Exit) error {
	e.Text = e.Text[:min(len(e.Text), maxText)]
	b, err := codec.Marshal(e)
	if err != nil {
		return err
	}
	return w.Write(KindExit, b)
}
