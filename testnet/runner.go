package testnet

import (
	"context"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"zorilla/jobs/process"
)

const (
	brokenCommand = "broken"
	codeBroken    = 125
	codeTimeout   = 124
	codeNotFound  = 127
	sigKill       = 9
	sigTerm       = 15

	walltimeGrace = 5 * time.Second
)

// Runner starts workers that are Go functions in place of processes. It has
// the methods of process.Runner. The goroutine of a worker belongs to the
// bubble in which Start was called.
type Runner struct {
	programs map[string]Program
	spool    int64 // bytes of a stream that may wait for their acknowledgement

	mu      sync.Mutex // guards what follows
	workers map[*worker]struct{}
	roots   map[string]*worker // those that a node can adopt: neither closed nor killed
	started int
}

// NewRunner returns a runner that knows the standard programs (see Program)
// and the given ones, by the last element of the command.
func NewRunner(programs map[string]Program) *Runner {
	all := standard()
	maps.Copy(all, programs)
	return &Runner{programs: all, spool: process.DefaultSpool, workers: map[*worker]struct{}{}, roots: map[string]*worker{}}
}

// Enforces lists what holds for these workers.
func (r *Runner) Enforces() []string { return []string{"tree-kill", "walltime"} }

// Start starts a worker. A command that no program has the name of shows in
// the worker's Exit. ctx bounds only the call itself.
func (r *Runner) Start(ctx context.Context, spec process.Spec) (process.Worker, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !filepath.IsAbs(spec.Root) || len(spec.Args) == 0 {
		return nil, fmt.Errorf("%w: root %q, %d arguments", process.ErrSpec, spec.Root, len(spec.Args))
	}
	life, cancel := context.WithCancel(context.Background())
	w := newWorker(spec, r.spool, cancel)
	w.ended, w.removed = func() { r.forget(w) }, func() { r.remove(w) }
	r.mu.Lock()
	r.workers[w] = struct{}{}
	r.roots[spec.Root] = w
	r.started++
	r.mu.Unlock()

	program := r.programs[path.Base(spec.Args[0])]
	if program == nil && path.Base(spec.Args[0]) != brokenCommand {
		w.end(process.Exit{Code: codeNotFound, Cause: process.NotFound, Detail: spec.Args[0] + ": no such program"})
		return w, nil
	}
	if path.Base(spec.Args[0]) == brokenCommand {
		w.end(process.Exit{Code: codeBroken, Cause: process.Failed, Detail: "no space left on device"})
		return w, nil
	}
	if w.feed != nil {
		go func() { w.returned(w.feed.run(life, program)) }()
		return w, nil
	}
	if spec.Walltime > 0 {
		detail := fmt.Sprintf("needed more than %v", spec.Walltime)
		w.limit(spec.Walltime, func() { w.stop(process.Walltime, detail, walltimeGrace) })
	}
	w.silence()
	go func() { w.returned(program(life, w.view())) }()
	return w, nil
}

// Adopt returns the worker that an earlier node started in root and left.
func (r *Runner) Adopt(ctx context.Context, root string) (process.Worker, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r.mu.Lock()
	w := r.roots[root]
	r.mu.Unlock()
	if w == nil {
		return nil, fmt.Errorf("%w: nothing of it is left", process.ErrLost)
	}
	w.adopted()
	return w, nil
}

// Running returns how many workers have not ended.
func (r *Runner) Running() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.workers)
}

// Started returns how many workers have been started so far.
func (r *Runner) Started() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.started
}

// Kill ends all workers at once, as a failure of the machine's power would.
func (r *Runner) Kill() {
	r.mu.Lock()
	workers := slices.Collect(maps.Keys(r.workers))
	clear(r.roots)
	r.mu.Unlock()
	for _, w := range workers {
		w.end(process.Exit{Code: 128 + sigKill, Cause: process.Signalled, Detail: "killed with its machine"})
	}
}

func (r *Runner) remove(w *worker) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.roots[w.spec.Root] == w {
		delete(r.roots, w.spec.Root)
	}
}

func (r *Runner) forget(w *worker) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.workers, w)
}
