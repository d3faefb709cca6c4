package process

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"zorilla/jobs/netpolicy"
	"zorilla/jobs/work"
)

// ErrRunning is the error of Worker.Close before its end.
var ErrRunning = errors.New("worker is still running")

// worker is the node's view of a supervisor. Two goroutines serve it, send
// and receive; both end with the supervisor, or soon after Leave.
type worker struct {
	line
	log   zerolog.Logger
	host  *host // nil if the supervisor is another node's child
	reach *netpolicy.Keeper
	feed  *feed // nil without tasks
	done  chan struct{}
	left  chan struct{} // closed by Leave
	wake  chan struct{} // capacity 1: there is something to send

	mu      sync.Mutex // guards what follows; never held during I/O but reads of spool files
	changed chan struct{}
	output  streams
	waits   bool // for room on the disk
	outbox  outbox
	leaving bool
	exit    work.Exit
	keeping *time.Timer // makes the exit record durable; nil before there is an exit
	kept    sync.Once   // that it was
}

// keepAfter is how long after its end a worker's exit record is made durable, unless
// it was closed: mostly its origin has all of it by then, and the record goes.
const keepAfter = 100 * time.Millisecond

func newWorker(spec Spec, log zerolog.Logger) *worker {
	w := &worker{
		line: line{spec: spec}, log: log,
		done: make(chan struct{}), left: make(chan struct{}), wake: make(chan struct{}, 1), changed: make(chan struct{}),
	}
	w.output.root = spec.Root
	if spec.Tasks != nil {
		w.feed = &feed{w: w}
	}
	return w
}

// receive follows the supervisor's progress, and takes the verdict when it
// has ended.
func (w *worker) receive() {
	refused, over := "", false
	for {
		m, err := readMessage(w.conn)
		if err != nil {
			break
		}
		switch m.Kind {
		case kindProgress:
			w.advance([2]int64{m.Stdout, m.Stderr}, [2]int64{m.AckedOut, m.AckedErr}, m.Added, m.Ended, m.Waits)
		case kindRefused, kindLost:
			over = m.Kind == kindLost
			if refused = "supervisor: " + m.Text; m.Kind == kindRefused {
				refused = "supervisor refused its node: " + m.Text
			}
			w.log.Warn().Str("root", w.spec.Root).Msg(refused)
		}
	}
	why := refused
	var rec exitRecord
	known := !isClosed(w.left) && load(w.spec.Root, exitEntry, &rec) == nil
	if !known && refused == "" && !w.hasRecord() {
		if why = w.awaitEnd(); why == "" { // left
			return
		}
	}
	_ = os.Remove(w.spec.terms.Socket)
	exit := rec.Exit
	if known {
		w.setCounts(rec)
	} else {
		exit = w.verdict(why, over)
	}
	w.disconnect()
	w.finish(exit)
}

// finish makes the verdict known.
func (w *worker) finish(exit work.Exit) {
	w.mu.Lock()
	w.exit = exit
	w.keeping = time.AfterFunc(keepAfter, w.syncExit)
	close(w.changed)
	w.mu.Unlock()
	w.host.dismiss()
	close(w.done)
}

// syncExit makes the exit record durable, if there is one, and returns when that is done.
func (w *worker) syncExit() {
	w.kept.Do(func() {
		if err := keepExit(w.spec.Root); err != nil {
			w.log.Warn().Err(err).Msg("sync how a worker ended")
		}
	})
}

// awaitEnd waits, when the connection has ended, for the exit record or the end of the
// supervisor, and says what is known of that, or "" if the worker was left before.
func (w *worker) awaitEnd() string {
	ended := awaitSupervisor(w.spec.Root, func() bool { return isClosed(w.left) })
	if isGone(w.spec.Root) {
		return "its directory was removed"
	}
	if w.host != nil && ended && !w.hasRecord() {
		select { // who has killed it?
		case <-w.host.done:
			return w.host.lastWords()
		case <-w.left:
		case <-time.After(adoptWithin):
		}
	}
	if isClosed(w.left) {
		return ""
	}
	return "supervisor ended unexpectedly"
}

// verdict reads the exit record. Without one the supervisor itself was
// killed or failed, and what it looked after goes too; if it said so itself the worker is
// over, and others may be left to it.
func (w *worker) verdict(why string, over bool) work.Exit {
	root := w.spec.Root
	var rec exitRecord
	err := load(root, exitEntry, &rec)
	if err == nil {
		w.setCounts(rec)
		return rec.Exit
	}
	if !over {
		killLeftovers(root)
	}
	w.measure()
	cause := work.Lost
	if isMissing(root, recordEntry) {
		cause = work.Unstarted
	}
	exit := Refused(cause, why)
	exit.Ended = time.Now()
	return exit
}

func (w *worker) hasRecord() bool {
	return isNoted(w.spec.Root, exitEntry) && !isClosed(w.left)
}

// hasEnded takes the exit record, if there is one.
func (w *worker) hasEnded() bool {
	var rec exitRecord
	if load(w.spec.Root, exitEntry, &rec) != nil {
		return false
	}
	w.setCounts(rec)
	w.finish(rec.Exit)
	return true
}

// complete returns an ended worker if its output outlived a failure of the
// machine as its exit record did.
func (w *worker) complete() (Worker, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.output.complete(); err != nil {
		return nil, err
	}
	if w.feed != nil && !w.feed.measure(w.feed.ended) {
		return nil, fmt.Errorf("%w: not all results of its tasks are on the disk", ErrLost)
	}
	return w, nil
}

// measure takes what the files hold as written.
func (w *worker) measure() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.output.measure()
	w.feed.measure(0)
}

// setCounts takes the counts of an exit record.
func (w *worker) setCounts(rec exitRecord) {
	written, acked := rec.counts()
	w.advance(written, acked, rec.Tasks, rec.Tasks, false)
}

// advance takes what the supervisor tells.
func (w *worker) advance(written, acked [2]int64, added, ended int, waits bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	more := w.feed.advance(added, ended) || waits != w.waits
	w.waits = waits
	if !w.output.advance(written, acked) && !more {
		return
	}
	close(w.changed)
	w.changed = make(chan struct{})
}

// WaitsForRoom implements Worker.
func (w *worker) WaitsForRoom() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.waits
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
		w.mu.Lock()
		due := w.outbox.drain(w.output.acked, min(w.spec.terms.Spool/8, 1<<20))
		w.mu.Unlock()
		for _, m := range due {
			if writeMessage(w.conn, m) != nil {
				return // receive sees the end, too
			}
		}
	}
}

func (w *worker) poke() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Stdin implements Worker.
func (w *worker) Stdin() Input {
	if w.input == nil {
		return nil
	}
	return w.input
}

// Tasks implements Worker.
func (w *worker) Tasks() TaskFeed {
	if w.feed == nil {
		return nil
	}
	return w.feed
}

// ReadOutput implements Worker.
func (w *worker) ReadOutput(s work.Stream, offset int64, p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.output.read(s, offset, p)
}

// Written implements Worker.
func (w *worker) Written() (stdout, stderr int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.output.written[0], w.output.written[1]
}

// Changed implements Worker.
func (w *worker) Changed() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changed
}

// Ack implements Worker.
func (w *worker) Ack(stdout, stderr int64) {
	w.mu.Lock()
	w.output.ack(stdout, stderr)
	w.mu.Unlock()
	w.poke()
}

// Heard tells the supervisor only often enough for its limit.
func (w *worker) Heard() {
	w.mu.Lock()
	due := w.outbox.heardAt(time.Now(), w.spec.OrphanLimit)
	w.mu.Unlock()
	if due {
		w.poke()
	}
}

// Signal implements Worker.
func (w *worker) Signal(number int) {
	m := message{Kind: kindSignal, Signal: number}
	if m.check() != nil {
		return
	}
	w.mu.Lock()
	w.outbox.signal = m
	w.mu.Unlock()
	w.poke()
}

// Stop implements Worker.
func (w *worker) Stop(notice, grace time.Duration) {
	w.mu.Lock()
	w.outbox.stopAfter(notice, grace)
	w.mu.Unlock()
	w.poke()
}

// Yield implements Worker.
func (w *worker) Yield(used int64) {
	w.mu.Lock()
	w.outbox.full = max(used, 1)
	w.mu.Unlock()
	w.poke()
}

// Done implements Worker.
func (w *worker) Done() <-chan struct{} { return w.done }

// Exit implements Worker.
func (w *worker) Exit() work.Exit {
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
	w.keeping.Stop() // who closes it removes it, or begins anew
	w.mu.Unlock()
	w.closeFiles()
	return nil
}

// closeFiles ends reading.
func (w *worker) closeFiles() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.output.close()
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
		w.host.dismiss()
	}
	w.syncExit() // the supervisor left it to this node, perhaps before that has heard of it
	w.closeFiles()
}
