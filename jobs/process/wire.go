package process

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"zorilla/internal/codec"
)

const (
	// protocol is the version of the control protocol and of the files in
	// Root. A change that an older side could not ignore makes it higher.
	protocol = 1
	// also is the version of a hello whose connection is for a session (jobs/session): who is
	// older refuses it.
	also = 2

	maxMessage = 4 << 10
	maxKey     = 64
	maxText    = 1 << 10
	maxGrace   = 24 * time.Hour
	maxSignal  = 64
	maxChunk   = 1 << 20 // of standard input

	maxTaskRanges = 128
)

// The kinds of messages.
const (
	kindHello    = "hello"    // node: first on every connection
	kindAck      = "ack"      // node: output delivered so far
	kindHeard    = "heard"    // node: the origin was heard of
	kindStop     = "stop"     // node: end the worker
	kindTasks    = "tasks"    // node: run these, too
	kindSignal   = "signal"   // node: for the processes that handle it
	kindProgress = "progress" // supervisor: output written so far
	kindRefused  = "refused"  // supervisor: last on a connection that it does not want
	kindLost     = "lost"     // supervisor: last, if there is no exit record
)

// wrongKey is said to who asks for a worker that is not known.
const wrongKey = "wrong key"

// errMalformed is wrapped by the errors of readMessage that are not those of
// the connection.
var errMalformed = errors.New("malformed control message")

// message is what travels on a control connection, in either direction.
type message struct {
	Kind     string        `json:"kind"`
	Version  int           `json:"version,omitempty"`      // hello
	Key      string        `json:"key,omitempty"`          // hello
	Input    bool          `json:"input,omitempty"`        // hello: chunks of standard input follow
	Barriers bool          `json:"barriers,omitempty"`     // hello: barriers are told, and passed, see jobs/pmi
	Also     bool          `json:"also,omitempty"`         // hello: a session follows
	Stdout   int64         `json:"stdout,omitempty"`       // ack, progress
	Stderr   int64         `json:"stderr,omitempty"`       // ack, progress
	AckedOut int64         `json:"acked_stdout,omitempty"` // progress: up to where the node has said that output is delivered
	AckedErr int64         `json:"acked_stderr,omitempty"`
	Stdin    int64         `json:"stdin,omitempty"`  // progress on a connection with input
	Grace    time.Duration `json:"grace,omitempty"`  // stop
	Notice   time.Duration `json:"notice,omitempty"` // stop: that the program gets by its signal before SIGTERM
	Full     int64         `json:"full,omitempty"`   // stop, at once: bytes that the worker takes on a disk that is full
	Waits    bool          `json:"waits,omitempty"`  // progress: output waits for room on the disk
	Signal   int           `json:"signal,omitempty"` // signal
	Text     string        `json:"text,omitempty"`   // refused, lost
	Ranges   []TaskRange   `json:"ranges,omitempty"` // tasks
	Added    int           `json:"added,omitempty"`  // tasks: that came before; progress: that came in all
	Last     bool          `json:"last,omitempty"`   // tasks: no more come
	Ended    int           `json:"ended,omitempty"`  // progress: tasks that have ended
}

// check refuses values that no honest side sends.
func (m *message) check() error {
	switch {
	case len(m.Kind) > 32, len(m.Key) > maxKey, len(m.Text) > maxText:
		return fmt.Errorf("%w: field too long", errMalformed)
	case min(m.Stdout, m.Stderr, m.Stdin, m.AckedOut, m.AckedErr, m.Full) < 0, min(m.Version, m.Added, m.Ended) < 0:
		return fmt.Errorf("%w: negative number", errMalformed)
	case m.Ended > m.Added && m.Kind == kindProgress:
		return fmt.Errorf("%w: %d tasks of %d have ended", errMalformed, m.Ended, m.Added)
	case m.Signal < 0 || m.Signal > maxSignal || m.Signal == 0 && m.Kind == kindSignal:
		return fmt.Errorf("%w: signal %d", errMalformed, m.Signal)
	case min(m.Grace, m.Notice) < 0 || max(m.Grace, m.Notice) > maxGrace:
		return fmt.Errorf("%w: notice %v, grace %v, at most %v", errMalformed, m.Notice, m.Grace, maxGrace)
	}
	return checkRanges(m.Ranges)
}

// writeMessage sends m in one write: its length in four bytes, then msgpack.
func writeMessage(w io.Writer, m message) error {
	body, err := codec.Marshal(m)
	if err != nil {
		return err
	}
	_, err = w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...))
	return err
}

// readMessage reads one message. It reads nothing beyond it.
func readMessage(r io.Reader) (message, error) {
	var m message
	n, err := readLength(r, maxMessage)
	if err != nil {
		return m, err
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err == io.EOF && n > 0 {
		return m, io.ErrUnexpectedEOF
	} else if err != nil {
		return m, err
	}
	if err := codec.Unmarshal(body, &m); err != nil {
		return m, fmt.Errorf("%w: %v", errMalformed, err)
	}
	return m, m.check()
}

func readLength(r io.Reader, limit uint32) (int, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > limit {
		return 0, fmt.Errorf("%w: %d bytes announced, at most %d", errMalformed, n, limit)
	}
	return int(n), nil
}

// copyChunks copies chunks of standard input from r to w. It returns nil only
// after the chunk of length zero: a connection that just breaks off must not
// look like the end of the input.
func copyChunks(w io.Writer, r io.Reader) error {
	buf := make([]byte, 64<<10)
	for {
		left, err := readLength(r, maxChunk)
		if err != nil {
			return err
		}
		if left == 0 {
			return nil
		}
		for left > 0 {
			n, err := r.Read(buf[:min(left, len(buf))])
			if n > 0 {
				if _, err := w.Write(buf[:n]); err != nil {
					return err
				}
				left -= n
				continue
			}
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			if err != nil {
				return err
			}
		}
	}
}

// checkRanges refuses ranges that no honest node sends.
func checkRanges(ranges []TaskRange) error {
	if len(ranges) > maxTaskRanges {
		return fmt.Errorf("%w: %d ranges of tasks", errMalformed, len(ranges))
	}
	for _, r := range ranges {
		if r.From < 0 || r.Count < 1 || r.From > maxTasks || r.Count > maxTasks-r.From {
			return fmt.Errorf("%w: tasks %d+%d", errMalformed, r.From, r.Count)
		}
	}
	return nil
}
