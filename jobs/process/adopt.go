package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"zorilla/jobs/proc"
)

// Errors of Adopt. Nothing of the worker is alive then; CleanRoot removes what
// it left.
var (
	// ErrLost: nobody knows how it ended.
	ErrLost = errors.New("worker is lost")
	// ErrNotStarted: it never ran, as far as anybody can have heard of it.
	ErrNotStarted = errors.New("worker had not started")
)

// adoptWithin bounds how long a supervisor may take from letting go of its
// socket to its exit record.
const adoptWithin = 5 * time.Second

// Adopt returns the worker that an earlier node started in root: it still runs,
// or its exit record reports how it ended. Its supervisor may be of an older
// version. An error says why the worker can neither be followed nor be told of:
// it wraps ErrLost or ErrNotStarted, or it is that of ctx.
func (r *Runner) Adopt(ctx context.Context, root string) (Worker, error) {
	lost := func(format string, args ...any) (Worker, error) {
		killLeftovers(root)
		return nil, fmt.Errorf("%w: %s", ErrLost, fmt.Sprintf(format, args...))
	}
	var spec Spec
	switch err := loadSpec(root, &spec); {
	case errors.Is(err, fs.ErrNotExist) && anew(root): // it was not on the disk yet, perhaps
		return lost("its machine was started anew")
	case errors.Is(err, fs.ErrNotExist):
		return nil, ErrNotStarted
	case err != nil:
		return lost("%v", err)
	case spec.Root != root:
		return lost("what is noted in %s is for another directory", root)
	case spec.terms.Version < 1 || spec.terms.Version > protocol:
		return lost("its supervisor is of version %d, this node understands up to %d", spec.terms.Version, protocol)
	}
	w := newWorker(spec, r.cfg.Log)
	w.reach = &r.reach
	w.measure()
	if w.hasEnded() {
		return w.complete()
	}
	if err := w.connect(); err != nil {
		return r.adoptEnding(ctx, w)
	}
	if spec.Stdin {
		if !spec.terms.Counts {
			w.disconnect()
			return lost("it reads standard input, and its supervisor cannot tell how far it has come")
		}
		if err := w.connectInput(); err != nil {
			w.disconnect()
			return r.adoptEnding(ctx, w)
		}
	}
	if spec.PMI != nil {
		if err := w.connectBarriers(); err != nil {
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
	root := w.spec.Root
	ctx, cancel := context.WithTimeout(ctx, adoptWithin)
	defer cancel()
	ended := awaitSupervisor(root, func() bool { return ctx.Err() != nil })
	if w.hasEnded() {
		return w.complete()
	}
	if !ended && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil, ctx.Err()
	}
	killLeftovers(root)
	_ = os.Remove(w.spec.terms.Socket)
	if !ended {
		return nil, fmt.Errorf("%w: its supervisor does not listen", ErrLost)
	}
	if anew(root) {
		return nil, fmt.Errorf("%w: its machine was started anew", ErrLost)
	}
	if isMissing(root, recordEntry) {
		return nil, ErrNotStarted
	}
	return nil, fmt.Errorf("%w: its supervisor is gone and left no word", ErrLost)
}

// anew reports whether the machine was started anew since a root was made, or the worker
// began in it: of what was noted then some may never have come to the disk.
func anew(root string) bool {
	var m mark
	var rec record
	_, _ = load(root, markEntry, &m), load(root, recordEntry, &rec)
	boot, err := proc.BootID()
	return err == nil && (m.Boot != "" && m.Boot != boot || rec.Supervisor.Boot != "" && rec.Supervisor.Boot != boot)
}
