package process

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"
)

// Errors of a Worker's methods.
var (
	ErrAcked   = errors.New("output before this offset was acknowledged and may be gone")
	ErrRunning = errors.New("worker is still running")
)

// worker is the node's view of a supervisor. Two goroutines serve it, send
// and receive; both end with the supervisor.
type worker struct {
	order order
	log   zerolog.Logger
	cmd   *exec.Cmd
	conn  *net.UnixConn
	words *os.File // what the supervisor itself says on its standard error
	input *input
	done  chan struct{}
	wake  chan struct{} // capacity 1: there is something to send

	mu      sync.Mutex // guards what follows; never held during I/O but reads of spool files
	changed chan struct{}
	written [2]int64
	acked   [2]int64
	told    [2]int64 // acked, as the supervisor knows it
	stop    bool
	grace   time.Duration
	files   [2]*os.File
	closed  bool
	exit    Exit
}

func newWorker(o order, words *os.File, log zerolog.Logger) *worker {
	return &worker{order: o, log: log, words: words, done: make(chan struct{}), wake: make(chan struct{}, 1), changed: make(chan struct{})}
}

// connect opens what the worker needs of its supervisor.
func (w *worker) connect() error {
	var err error
	if w.conn, err = dial(w.order, false); err != nil || !w.order.Spec.Stdin {
		return err
	}
	conn, err := dial(w.order, true)
	if err == nil {
		w.input = &input{conn: conn}
	}
	return err
}

func (w *worker) disconnect() {
	_ = w.words.Close()
	if w.conn != nil {
		_ = w.conn.Close()
	}
	if w.input != nil {
		_ = w.input.conn.Close()
	}
}

// receive follows the supervisor's progress, and takes the verdict when it
// has ended.
func (w *worker) receive() {
	for {
		m, err := readMessage(w.conn)
		if err != nil {
			break
		}
		switch m.Kind {
		case kindProgress:
			w.advance(m.Stdout, m.Stderr)
		case kindRefused:
			w.log.Warn().Str("root", w.order.Spec.Root).Msg("supervisor refused its node: " + m.Text)
		}
	}
	_ = w.cmd.Wait()
	_ = os.Remove(w.order.Socket)
	words := w.lastWords()
	if words != "" {
		w.log.Warn().Str("root", w.order.Spec.Root).Msg("supervisor: " + words)
	}
	exit := w.verdict(words)
	w.disconnect()
	w.mu.Lock()
	w.exit = exit
	close(w.changed)
	w.mu.Unlock()
	close(w.done)
}

// verdict reads the exit record. Without one the supervisor itself was
// killed or failed, and what it looked after goes too.
func (w *worker) verdict(words string) Exit {
	root := w.order.Spec.Root
	var rec exitRecord
	err := load(root, exitFile, &rec)
	if err == nil {
		w.advance(rec.Stdout, rec.Stderr)
		return rec.Exit
	}
	killLeftovers(root)
	for i, s := range []Stream{Stdout, Stderr} {
		if info, err := os.Lstat(filepath.Join(root, s.String())); err == nil {
			w.mu.Lock()
			w.written[i] = max(w.written[i], info.Size())
			w.mu.Unlock()
		}
	}
	detail := fmt.Sprintf("supervisor ended unexpectedly (%v)", w.cmd.ProcessState)
	if words != "" {
		detail += ": " + words
	}
	return Exit{Code: 125, Cause: Failed, Detail: detail, Ended: time.Now()}
}

// lastWords returns the first line, if any, that a supervisor has left. It
// has ended, so that there is nothing to wait for.
func (w *worker) lastWords() string {
	_ = w.words.SetReadDeadline(time.Now().Add(time.Second))
	head := make([]byte, 300)
	n, _ := w.words.Read(head)
	line, _, _ := bytes.Cut(head[:n], []byte("\n"))
	return string(bytes.ToValidUTF8(line, nil))
}

func (w *worker) advance(stdout, stderr int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if stdout <= w.written[0] && stderr <= w.written[1] {
		return
	}
	w.written = [2]int64{max(w.written[0], stdout), max(w.written[1], stderr)}
	close(w.changed)
	w.changed = make(chan struct{})
}

// send passes acknowledgements and stop on, so that no caller waits for the
// supervisor.
func (w *worker) send() {
	for {
		select {
		case <-w.wake:
		case <-w.done:
			return
		}
		for _, m := range w.due() {
			if writeMessage(w.conn, m) != nil {
				return // receive sees the end, too
			}
		}
	}
}

// due returns what has to be told. Small steps of acknowledgements make no
// difference to the supervisor and are saved up.
func (w *worker) due() []message {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []message
	if w.stop {
		all = append(all, message{Kind: kindStop, Grace: w.grace})
		w.stop = false
	}
	step := min(w.order.Spool/8, 1<<20)
	if w.acked[0]-w.told[0] > step || w.acked[1]-w.told[1] > step {
		w.told = w.acked
		all = append(all, message{Kind: kindAck, Stdout: w.acked[0], Stderr: w.acked[1]})
	}
	return all
}

func (w *worker) poke() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *worker) Stdin() Input {
	if w.input == nil {
		return nil
	}
	return w.input
}

func (w *worker) ReadOutput(s Stream, offset int64, p []byte) (int, error) {
	if s != Stdout && s != Stderr {
		return 0, fmt.Errorf("stream %d: want %d or %d", s, Stdout, Stderr)
	}
	i := int(s - Stdout)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closed:
		return 0, os.ErrClosed
	case offset < w.acked[i]:
		return 0, fmt.Errorf("%v at %d: %w", s, offset, ErrAcked)
	case offset >= w.written[i] || len(p) == 0:
		return 0, nil
	}
	if w.files[i] == nil {
		f, err := os.OpenFile(filepath.Join(w.order.Spec.Root, s.String()), os.O_RDONLY|unix.O_NOFOLLOW, 0)
		if err != nil {
			return 0, err
		}
		w.files[i] = f
	}
	n, err := w.files[i].ReadAt(p[:min(int64(len(p)), w.written[i]-offset)], offset)
	if errors.Is(err, io.EOF) && n > 0 {
		err = nil
	}
	return n, err
}

func (w *worker) Written() (stdout, stderr int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.written[0], w.written[1]
}

func (w *worker) Changed() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changed
}

func (w *worker) Ack(stdout, stderr int64) {
	w.mu.Lock()
	w.acked[0] = min(max(w.acked[0], stdout), w.written[0])
	w.acked[1] = min(max(w.acked[1], stderr), w.written[1])
	w.mu.Unlock()
	w.poke()
}

func (w *worker) Stop(grace time.Duration) {
	w.mu.Lock()
	grace = min(max(grace, 0), maxGrace)
	if !w.stop || grace < w.grace {
		w.grace = grace
	}
	w.stop = true
	w.mu.Unlock()
	w.poke()
}

func (w *worker) Done() <-chan struct{} { return w.done }

func (w *worker) Exit() Exit {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.exit
}

// Close returns ErrRunning for a worker that has not ended.
func (w *worker) Close() error {
	select {
	case <-w.done:
	default:
		return ErrRunning
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for _, f := range w.files {
		if f != nil {
			_ = f.Close()
		}
	}
	w.files = [2]*os.File{}
	return nil
}

// input sends standard input as chunks.
type input struct {
	conn *net.UnixConn

	mu    sync.Mutex // held for the whole of a chunk
	ended bool
}

// Write blocks while the worker does not read, and fails once it never will.
func (in *input) Write(p []byte) (int, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.ended {
		return 0, os.ErrClosed
	}
	sent := 0
	for sent < len(p) {
		part := p[sent:min(len(p), sent+maxChunk)]
		bufs := net.Buffers{binary.BigEndian.AppendUint32(nil, uint32(len(part))), part}
		n, err := bufs.WriteTo(in.conn)
		sent += max(int(n)-4, 0)
		if err != nil {
			return sent, fmt.Errorf("worker's standard input: %w", err)
		}
	}
	return sent, nil
}

// Close tells the worker that its input is complete. It waits for a Write in
// progress.
func (in *input) Close() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.ended {
		return nil
	}
	in.ended = true
	_, err := in.conn.Write(make([]byte, 4))
	if errors.Is(err, net.ErrClosed) || errors.Is(err, unix.EPIPE) {
		return nil // the worker has ended: it needs no end of its input
	}
	return err
}
