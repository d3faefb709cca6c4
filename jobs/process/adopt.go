package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Errors of Adopt. Nothing of the worker is alive then; CleanRoot removes what
// it left.
var (
	// ErrLost: nobody knows how it ended.
	ErrLost = errors.New("worker is lost")
	// ErrNotStarted: it never ran, as far as anybody can have heard of it.
	ErrNotStarted = errors.New("worker had not started")
)

const (
	// adoptWithin bounds how long a supervisor may take from letting go of its
	// socket to its exit record.
	adoptWithin = 5 * time.Second
	lookEvery   = time.Second
)

// Adopt returns the worker that an earlier node started in root: it still runs,
// or its exit record tells how it ended. Its supervisor may be of an older
// version. An error says why the worker can neither be followed nor be told of:
// it wraps ErrLost or ErrNotStarted, or it is that of ctx.
func (r *Runner) Adopt(ctx context.Context, root string) (Worker, error) {
	lost := func(format string, args ...any) (Worker, error) {
		killLeftovers(root)
		return nil, fmt.Errorf("%w: %s", ErrLost, fmt.Sprintf(format, args...))
	}
	var o order
	switch err := load(root, orderFile, &o); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, ErrNotStarted
	case err != nil:
		return lost("%v", err)
	case o.Spec.Root != root:
		return lost("%s is for another directory", filepath.Join(root, orderFile))
	case o.Version < 1 || o.Version > protocol:
		return lost("its supervisor is of version %d, this node understands up to %d", o.Version, protocol)
	}
	w := newWorker(o, nil, r.cfg.Log)
	w.measure()
	if w.hasEnded() {
		return w.complete()
	}
	if err := w.connect(false); err != nil {
		return r.adoptEnding(ctx, w)
	}
	if o.Spec.Stdin {
		if !o.Counts {
			w.disconnect()
			return lost("it reads standard input, and its supervisor cannot tell how far it has come")
		}
		if err := w.connectInput(); err != nil {
			w.disconnect()
			return r.adoptEnding(ctx, w)
		}
	}
	go w.send()
	go w.receive()
	return w, nil
}

// adoptEnding handles a supervisor that does not listen: it is writing its exit
// record, or it is gone.
func (r *Runner) adoptEnding(ctx context.Context, w *worker) (Worker, error) {
	root := w.order.Spec.Root
	ctx, cancel := context.WithTimeout(ctx, adoptWithin)
	defer cancel()
	ended := awaitSupervisor(root, ctx.Done())
	if w.hasEnded() {
		return w.complete()
	}
	if !ended && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil, ctx.Err()
	}
	killLeftovers(root)
	_ = os.Remove(w.order.Socket)
	if !ended {
		return nil, fmt.Errorf("%w: its supervisor does not listen", ErrLost)
	}
	var rec record
	if err := load(root, recordFile, &rec); errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotStarted
	}
	if now, err := identify(os.Getpid()); err == nil && rec.Supervisor.Boot != "" && rec.Supervisor.Boot != now.Boot {
		return nil, fmt.Errorf("%w: its machine was started anew", ErrLost)
	}
	return nil, fmt.Errorf("%w: its supervisor is gone and left no word", ErrLost)
}

// hasEnded takes the exit record, if there is one.
func (w *worker) hasEnded() bool {
	var rec exitRecord
	if load(w.order.Spec.Root, exitFile, &rec) != nil {
		return false
	}
	w.take(rec)
	w.finish(rec.Exit)
	return true
}

// complete returns an ended worker if its output outlived a failure of the
// machine as its exit record did.
func (w *worker) complete() (Worker, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, s := range []Stream{Stdout, Stderr} {
		info, err := os.Lstat(filepath.Join(w.order.Spec.Root, s.String()))
		if w.written[i] > 0 && (err != nil || info.Size() < w.written[i]) {
			return nil, fmt.Errorf("%w: not all of its %v is on the disk", ErrLost, s)
		}
	}
	if w.feed != nil && !w.feed.measure(w.feed.ended) {
		return nil, fmt.Errorf("%w: not all results of its tasks are on the disk", ErrLost)
	}
	return w, nil
}

// awaitSupervisor returns true when the supervisor of root has ended, or false
// when stop is closed before.
func awaitSupervisor(root string, stop <-chan struct{}) bool {
	id, ok := supervisorOf(root)
	if !ok {
		return true
	}
	fd, err := unix.PidfdOpen(id.PID, 0)
	if err == nil {
		defer unix.Close(fd)
	}
	for id.alive() {
		if err != nil { // before Linux 5.3
			select {
			case <-time.After(lookEvery / 100):
			case <-stop:
				return false
			}
			continue
		}
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int((lookEvery / 10).Milliseconds()))
		if isClosed(stop) {
			return !id.alive()
		}
	}
	return true
}

// supervisorOf finds the living supervisor of root: by its record, or, before it
// has written one, by its arguments.
func supervisorOf(root string) (procID, bool) {
	var rec record
	if load(root, recordFile, &rec) == nil {
		return rec.Supervisor, rec.Supervisor.alive()
	}
	args := strings.Join([]string{supervisorName, "run", root, ""}, "\x00")
	for _, pid := range processes() {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil || string(b) != args {
			continue
		}
		if id, err := identify(pid); err == nil && id.alive() {
			return id, true
		}
	}
	return procID{}, false
}
