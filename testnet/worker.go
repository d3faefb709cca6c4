package testnet

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"os"
	"time"

	"zorilla/jobs/pmi"
	"zorilla/jobs/process"
	"zorilla/jobs/session"
	"zorilla/jobs/work"
)

// worker is a process.Worker: a node's view of what a supervisor looks after. Its
// fields are guarded by supervisor.mu, but for those that never change.
type worker struct {
	s    *supervisor
	done chan struct{}

	closed bool // its output is not read any more
	left   bool // its node has gone
}

// Stdin implements process.Worker.
func (w *worker) Stdin() process.Input {
	if w.s.input == nil {
		return nil
	}
	return input{w.s.input, w}
}

// ReadOutput implements process.Worker.
func (w *worker) ReadOutput(s work.Stream, offset int64, p []byte) (int, error) {
	if s != work.Stdout && s != work.Stderr {
		return 0, fmt.Errorf("stream %d: want %d or %d", s, work.Stdout, work.Stderr)
	}
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	o := &w.s.out[s-work.Stdout]
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
func (w *worker) Written() (stdout, stderr int64) { return w.s.written() }

// Changed implements process.Worker.
func (w *worker) Changed() <-chan struct{} {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	return w.s.changed
}

// Ack implements process.Worker.
func (w *worker) Ack(stdout, stderr int64) {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	if w.left {
		return
	}
	for i, upto := range []int64{stdout, stderr} {
		o := &w.s.out[i]
		if upto = min(upto, o.written()); upto > o.base {
			o.data = append([]byte(nil), o.data[upto-o.base:]...)
			o.base = upto
		}
	}
	w.s.acked.Broadcast()
}

// tell tells the worker's life what this node wants.
func (w *worker) tell(f func(l *process.Life, now time.Time)) {
	w.s.main.tell(func(l *process.Life, now time.Time) {
		if !w.left {
			f(l, now)
		}
	})
}

// Stop implements process.Worker.
func (w *worker) Stop(notice, grace time.Duration) {
	w.tell(func(l *process.Life, now time.Time) { l.Stop(now, notice, max(grace, 0)) })
}

// WaitsForRoom implements process.Worker: there always is room.
func (w *worker) WaitsForRoom() bool { return false }

// Among implements process.Worker: workers reach nobody by themselves.
func (w *worker) Among([]netip.Addr) error { return nil }

// Barriers implements process.Worker: no program is one of MPI.
func (w *worker) Barriers() *pmi.Link { return nil }

// Enter implements process.Worker: no more commands run beside a program.
func (w *worker) Enter(context.Context, *session.Start) (io.ReadWriteCloser, error) {
	return nil, fmt.Errorf("%w: an emulated worker runs no other commands", process.ErrNotEntered)
}

// Yield implements process.Worker.
func (w *worker) Yield(used int64) {
	w.tell(func(l *process.Life, _ time.Time) { l.Crowded(used) })
}

// Heard implements process.Worker.
func (w *worker) Heard() { w.tell((*process.Life).OriginHeard) }

// Signal implements process.Worker.
func (w *worker) Signal(number int) {
	w.tell(func(*process.Life, time.Time) {
		if t := w.s.running(); t != nil && number > 0 && number <= maxSignal {
			t.signal(number)
		}
	})
}

// Leave implements process.Worker.
func (w *worker) Leave() {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	w.closed = true
	if w.left {
		return
	}
	w.left = true
	if w.s.input != nil {
		w.s.input.changed.Broadcast()
	}
	w.s.detach(w)
}

// Done implements process.Worker.
func (w *worker) Done() <-chan struct{} { return w.done }

// Exit implements process.Worker.
func (w *worker) Exit() work.Exit {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	return w.s.exit
}

// Close implements process.Worker.
func (w *worker) Close() error {
	select {
	case <-w.done:
	default:
		return process.ErrRunning
	}
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	w.closed = true
	return nil
}
