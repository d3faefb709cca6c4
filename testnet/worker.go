package testnet

import (
	"context"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"zorilla/jobs/process"
)

// worker is a process.Worker: the node's view of a running Program.
type worker struct {
	spec    process.Spec
	spool   int64
	cancel  context.CancelFunc // tells the program to end
	ended   func()             // called once, after the end
	removed func()             // called by Close
	input   *input             // nil without standard input
	feed    *feed              // nil without tasks
	done    chan struct{}
	signals chan int

	mu      sync.Mutex // guards what follows
	acked   sync.Cond  // output was acknowledged, or the worker is to end
	changed chan struct{}
	out     [2]output
	started time.Time
	wall    *time.Timer
	alone   *time.Timer // ends the worker without its node; nil while it has one
	silent  *time.Timer // ends the worker without its origin
	kill    *time.Timer // ends the grace
	killAt  time.Time
	cause   process.Cause // why the program was told to end
	detail  string
	over    bool
	exit    process.Exit
	closed  bool
}

// output is a stream from the first byte that is not acknowledged.
type output struct {
	base int64
	data []byte
}

func (o *output) written() int64 { return o.base + int64(len(o.data)) }

func newWorker(spec process.Spec, spool int64, cancel context.CancelFunc) *worker {
	w := &worker{
		spec: spec, spool: spool, cancel: cancel,
		done: make(chan struct{}), changed: make(chan struct{}), started: time.Now(), signals: make(chan int, 16),
	}
	w.acked.L = &w.mu
	if spec.Stdin {
		w.input = newInput()
	}
	if spec.Tasks != nil {
		w.feed = newFeed(w)
	}
	return w
}

// limit arms the walltime.
func (w *worker) limit(d time.Duration, f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wall = time.AfterFunc(d, f)
}

// stop tells the program to end, and ends the worker without it after the grace.
func (w *worker) stop(cause process.Cause, detail string, grace time.Duration) {
	w.mu.Lock()
	at := time.Now().Add(grace)
	if w.over || (w.cause != "" && !at.Before(w.killAt)) {
		w.mu.Unlock()
		return
	}
	if w.cause == "" {
		w.cause, w.detail = cause, detail
	}
	if w.kill != nil {
		w.kill.Stop()
	}
	w.killAt = at
	kill := func() { w.end(w.verdict(-sigKill)) }
	if grace > 0 {
		w.kill = time.AfterFunc(grace, kill)
	}
	w.acked.Broadcast()
	w.mu.Unlock()
	if grace <= 0 {
		kill()
		return
	}
	w.cancel()
	if w.input != nil {
		w.input.shut()
	}
}

// returned takes the program's own end. A program that was told to end dies
// of the signal.
func (w *worker) returned(code int) {
	w.mu.Lock()
	told := w.cause != ""
	w.mu.Unlock()
	if told {
		code = -sigTerm
	}
	w.end(w.verdict(code))
}

// verdict says how the worker ended; a negative code is a signal.
func (w *worker) verdict(code int) process.Exit {
	w.mu.Lock()
	defer w.mu.Unlock()
	exit := process.Exit{Code: code & 0xff, Cause: process.Exited}
	if code < 0 {
		exit = process.Exit{Code: 128 - code, Cause: process.Signalled, Detail: fmt.Sprintf("ended by signal %d", -code)}
	}
	if w.cause != "" {
		exit.Cause, exit.Detail = w.cause, w.detail
	}
	if w.cause == process.Walltime {
		exit.Code = codeTimeout
	}
	return exit
}

// end ends the worker, once.
func (w *worker) end(exit process.Exit) {
	w.mu.Lock()
	if w.over {
		w.mu.Unlock()
		return
	}
	exit.Started, exit.Ended = w.started, time.Now()
	w.over, w.exit = true, exit
	for _, t := range []*time.Timer{w.wall, w.kill, w.alone, w.silent} {
		if t != nil {
			t.Stop()
		}
	}
	w.acked.Broadcast()
	close(w.changed)
	w.mu.Unlock()
	w.cancel()
	if w.input != nil {
		w.input.shut()
	}
	w.ended() // first: who waits for done sees the runner without it
	close(w.done)
}

// write appends to a stream; it waits while too much is not acknowledged.
func (w *worker) write(s process.Stream, p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	o, n := &w.out[s-process.Stdout], 0
	for n < len(p) {
		if w.over {
			return n, syscall.EPIPE
		}
		room := min(int(w.spool)-len(o.data), len(p)-n)
		if room <= 0 {
			if w.cause != "" {
				return n, syscall.EPIPE
			}
			w.acked.Wait()
			continue
		}
		o.data = append(o.data, p[n:n+room]...)
		n += room
		close(w.changed)
		w.changed = make(chan struct{})
	}
	return n, nil
}

// Stdin implements process.Worker.
func (w *worker) Stdin() process.Input {
	if w.input == nil {
		return nil
	}
	return w.input
}

// ReadOutput implements process.Worker.
func (w *worker) ReadOutput(s process.Stream, offset int64, p []byte) (int, error) {
	if s != process.Stdout && s != process.Stderr {
		return 0, fmt.Errorf("stream %d: want %d or %d", s, process.Stdout, process.Stderr)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	o := &w.out[s-process.Stdout]
	switch {
	case w.closed:
		return 0, os.ErrClosed
	case offset < o.base:
		return 0, fmt.Errorf("%v at %d: %w", s, offset, process.ErrAcked)
	case offset >= o.written():
		return 0, nil
	}
	return copy(p, o.data[offset-o.base:]), nil
}

// Written implements process.Worker.
func (w *worker) Written() (stdout, stderr int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out[0].written(), w.out[1].written()
}

// Changed implements process.Worker.
func (w *worker) Changed() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changed
}

// Ack implements process.Worker.
func (w *worker) Ack(stdout, stderr int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, upto := range []int64{stdout, stderr} {
		o := &w.out[i]
		if upto = min(upto, o.written()); upto > o.base {
			o.data = append([]byte(nil), o.data[upto-o.base:]...)
			o.base = upto
		}
	}
	w.acked.Broadcast()
}

// Stop implements process.Worker.
func (w *worker) Stop(grace time.Duration) { w.stop(process.Stopped, "stopped", grace) }

// Signal implements process.Worker.
func (w *worker) Signal(number int) {
	select {
	case w.signals <- number:
	default:
	}
}

// silence begins the time that the worker goes on without its origin.
func (w *worker) silence() {
	limit := w.spec.OrphanLimit
	if limit <= 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.silent = time.AfterFunc(limit, func() {
		w.stop(process.Orphaned, fmt.Sprintf("its origin was silent for %v", limit), walltimeGrace)
	})
}

// Heard implements process.Worker.
func (w *worker) Heard() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.silent != nil && !w.over {
		w.silent.Reset(w.spec.OrphanLimit)
	}
}

// Leave implements process.Worker.
func (w *worker) Leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	limit := w.spec.NodeLimit
	if w.over || w.alone != nil || limit <= 0 {
		return
	}
	w.alone = time.AfterFunc(limit, func() {
		w.stop(process.Orphaned, fmt.Sprintf("its node was gone for %v", limit), walltimeGrace)
	})
}

// adopted is the opposite of Leave.
func (w *worker) adopted() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.alone != nil {
		w.alone.Stop()
		w.alone = nil
	}
}

// Done implements process.Worker.
func (w *worker) Done() <-chan struct{} { return w.done }

// Exit implements process.Worker.
func (w *worker) Exit() process.Exit {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.exit
}

// Close implements process.Worker.
func (w *worker) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.over {
		return process.ErrRunning
	}
	w.closed = true
	w.removed()
	w.out = [2]output{{base: w.out[0].written()}, {base: w.out[1].written()}}
	return nil
}
