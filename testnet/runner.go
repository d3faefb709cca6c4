package testnet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"zorilla/jobs/process"
	"zorilla/jobs/work"
)

const (
	brokenCommand = "broken"
	sigKill       = 9
	sigTerm       = 15
	maxSignal     = 64
	limitGrace    = 5 * time.Second

	// What real workers have in Root, too.
	workDir   = "work"
	tmpDir    = "tmp"
	orderFile = "spec" // tells that Root had a worker
)

// Runner starts workers that are Go functions in place of processes. It has
// the methods of process.Runner. The goroutine of a worker belongs to the
// bubble in which Start was called.
type Runner struct {
	programs map[string]Program
	grace    time.Duration // between SIGTERM and SIGKILL when a limit ends a worker
	spool    int64         // bytes of a stream that may wait for their acknowledgement

	mu      sync.Mutex // guards what follows
	running map[*supervisor]struct{}
	roots   map[string]*supervisor // those that a node can adopt
	started int
}

// NewRunner returns a runner that knows the standard programs (see Program)
// and the given ones, by the last element of the command.
func NewRunner(programs map[string]Program) *Runner {
	all := standard()
	maps.Copy(all, programs)
	return &Runner{programs: all, grace: limitGrace, spool: process.DefaultSpool, running: map[*supervisor]struct{}{}, roots: map[string]*supervisor{}}
}

// Enforces lists what holds for these workers.
func (r *Runner) Enforces() []string { return []string{"tree-kill", "walltime"} }

// Warm does nothing: a worker needs nothing that takes long to make.
func (r *Runner) Warm(string, string) {}

// Start starts a worker. A command that no program has the name of shows in
// the worker's Exit. ctx bounds only the call itself.
func (r *Runner) Start(ctx context.Context, spec process.Spec) (process.Worker, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := spec.Check(); err != nil {
		return nil, err
	}
	s, err := r.supervisor(spec)
	if err != nil {
		return nil, err
	}
	w, name := s.attach(), path.Base(spec.Args[0])
	program := r.programs[name]
	switch {
	case name == brokenCommand:
		s.main.tell(func(l *process.Life, _ time.Time) { l.Fail(errors.New("no space left on device")) })
	case s.tasks != nil:
		go s.tasks.run(program)
	case program == nil:
		s.main.tell(func(l *process.Life, _ time.Time) {
			s.exit = process.Refused(work.NotFound, spec.Args[0]+": no such program")
			l.Gone()
		})
	default:
		s.main.start(program, s.main.view(spec.Work()))
	}
	return w, nil
}

// supervisor makes what a worker needs, and one that looks after it.
func (r *Runner) supervisor(spec process.Spec) (*supervisor, error) {
	s := &supervisor{r: r, spec: spec, changed: make(chan struct{})}
	s.acked.L = &s.mu
	s.main = s.newTree(context.Background(), &spec, s.ended)
	if spec.Stdin {
		s.input = newPipe(&s.mu)
	}
	err := errors.Join(os.WriteFile(filepath.Join(spec.Root, orderFile), nil, 0o600), os.MkdirAll(filepath.Join(spec.Root, tmpDir), 0o700))
	if err == nil && spec.Tasks != nil {
		s.tasks, err = newTasks(s)
	}
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running[s], r.roots[spec.Root] = struct{}{}, s
	r.started++
	return s, nil
}

// Adopt returns the worker that an earlier node started in root and left.
func (r *Runner) Adopt(ctx context.Context, root string) (process.Worker, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if _, err := os.Lstat(filepath.Join(root, orderFile)); errors.Is(err, fs.ErrNotExist) {
		return nil, process.ErrNotStarted
	}
	r.mu.Lock()
	s := r.roots[root]
	r.mu.Unlock()
	if s == nil {
		return nil, fmt.Errorf("%w: nothing of it is left", process.ErrLost)
	}
	return s.attach(), nil
}

// Running returns how many workers have not ended.
func (r *Runner) Running() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.running)
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
	all := slices.Collect(maps.Keys(r.running))
	clear(r.roots)
	r.mu.Unlock()
	for _, s := range all {
		s.main.kill()
	}
}

func (r *Runner) forget(s *supervisor) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.running, s)
}
