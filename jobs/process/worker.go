package process

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
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
// and receive; both end with the supervisor, or soon after Leave.
type worker struct {
	order order
	log   zerolog.Logger
	cmd   *exec.Cmd // nil if the supervisor is another node's child
	conn  *net.UnixConn
	words *os.File // what the supervisor itself says on its standard error; nil as cmd
	input *input
	feed  *feed // nil without tasks
	done  chan struct{}
	left  chan struct{} // closed by Leave
	wake  chan struct{} // capacity 1: there is something to send

	mu      sync.Mutex // guards what follows; never held during I/O but reads of spool files
	changed chan struct{}
	written [2]int64
	acked   [2]int64
	told    [2]int64  // acked, as the supervisor knows it
	heard   bool      // the supervisor is to be told
	hearing time.Time // when it was told last
	signal  message   // to be sent; no kind = none
	stop    bool
	grace   time.Duration
	files   [2]*os.File
	closed  bool
	leaving bool
	exit    Exit
}

func newWorker(o order, words *os.File, log zerolog.Logger) *worker {
	w := &worker{order: o, log: log, words: words, done: make(chan struct{}), left: make(chan struct{}), wake: make(chan struct{}, 1), changed: make(chan struct{})}
	if o.Spec.Tasks != nil {
		w.feed = &feed{w: w}
	}
	return w
}

// connect opens what the worker needs of its supervisor.
func (w *worker) connect(input bool) error {
	var err error
	if w.conn, err = dial(w.order, false); err != nil || !input {
		return err
	}
	return w.connectInput()
}

// connectInput opens the way of the worker's standard input, if it has one.
func (w *worker) connectInput() error {
	if !w.order.Spec.Stdin {
		return nil
	}
	conn, err := dial(w.order, true)
	if err == nil {
		w.input = &input{conn: conn}
	}
	return err
}

func (w *worker) disconnect() {
	if w.words != nil {
		_ = w.words.Close()
	}
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
	refused := ""
	for {
		m, err := readMessage(w.conn)
		if err != nil {
			break
		}
		switch m.Kind {
		case kindProgress:
			w.advance([2]int64{m.Stdout, m.Stderr}, [2]int64{m.AckedOut, m.AckedErr}, m.Added, m.Ended)
		case kindRefused:
			refused = "supervisor refused its node: " + m.Text
			w.log.Warn().Str("root", w.order.Spec.Root).Msg(refused)
		}
	}
	why := refused
	if refused == "" {
		if why = w.awaitEnd(); why == "" { // left
			return
		}
	}
	_ = os.Remove(w.order.Socket)
	exit := w.verdict(why)
	w.disconnect()
	w.finish(exit)
}

// finish makes the verdict known.
func (w *worker) finish(exit Exit) {
	w.mu.Lock()
	w.exit = exit
	close(w.changed)
	w.mu.Unlock()
	close(w.done)
}

// awaitEnd waits for the end of the supervisor and says what is known of it, or
// "" if the worker was left before.
func (w *worker) awaitEnd() string {
	if w.cmd == nil {
		if !awaitSupervisor(w.order.Spec.Root, w.left) {
			return ""
		}
		return "supervisor ended unexpectedly"
	}
	_ = w.cmd.Wait()
	if isClosed(w.left) {
		return ""
	}
	why := fmt.Sprintf("supervisor ended unexpectedly (%v)", w.cmd.ProcessState)
	if words := w.lastWords(); words != "" {
		w.log.Warn().Str("root", w.order.Spec.Root).Msg("supervisor: " + words)
		why += ": " + words
	}
	return why
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// verdict reads the exit record. Without one the supervisor itself was
// killed or failed, and what it looked after goes too.
func (w *worker) verdict(why string) Exit {
	root := w.order.Spec.Root
	var rec exitRecord
	err := load(root, exitFile, &rec)
	if err == nil {
		w.take(rec)
		return rec.Exit
	}
	killLeftovers(root)
	w.measure()
	cause := Lost
	if _, err := os.Lstat(filepath.Join(root, recordFile)); errors.Is(err, fs.ErrNotExist) {
		cause = Unstarted
	}
	exit := Refused(cause, why)
	exit.Ended = time.Now()
	return exit
}

// measure takes what the files hold as written.
func (w *worker) measure() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, s := range []Stream{Stdout, Stderr} {
		if info, err := os.Lstat(filepath.Join(w.order.Spec.Root, s.String())); err == nil {
			w.written[i] = max(w.written[i], info.Size())
		}
	}
	w.feed.measure(0)
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

// advance takes what the supervisor tells. acked is news only after an
// adoption: it is what earlier nodes have said.
func (w *worker) advance(written, acked [2]int64, added, ended int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.acked = [2]int64{max(w.acked[0], acked[0]), max(w.acked[1], acked[1])}
	if !w.feed.advance(added, ended) && written[0] <= w.written[0] && written[1] <= w.written[1] {
		return
	}
	w.written = [2]int64{max(w.written[0], written[0]), max(w.written[1], written[1])}
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
		case <-w.left:
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
	if w.heard {
		all = append(all, message{Kind: kindHeard})
		w.heard = false
	}
	if w.signal.Kind != "" {
		all = append(all, w.signal)
		w.signal = message{}
	}
	if w.feed != nil {
		all = append(all, w.feed.adds...)
		w.feed.adds = nil
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
	w.closeFiles()
	return nil
}

// closeFiles ends reading.
func (w *worker) closeFiles() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for _, f := range w.files {
		if f != nil {
			_ = f.Close()
		}
	}
	w.files = [2]*os.File{}
	w.feed.close()
}

// Leave closes the connections, by which the supervisor knows that it is alone.
func (w *worker) Leave() {
	w.mu.Lock()
	again := w.leaving
	w.leaving = true
	w.mu.Unlock()
	if !again && !isClosed(w.done) {
		close(w.left)
		w.disconnect()
	}
	w.closeFiles()
}
