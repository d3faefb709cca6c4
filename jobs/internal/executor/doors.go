package executor

import (
	"context"
	"io"
	"path/filepath"
	"slices"
	"sync"

	"zorilla/jobs"
	"zorilla/jobs/internal/participant"
	"zorilla/jobs/process"
	"zorilla/jobs/sandbox"
	"zorilla/jobs/session/workerapi"
)

// Knocks is what processes inside workers ask of their node. Both are called in
// goroutines of their own.
type Knocks struct {
	// Enter passes on what one wants of another worker of its job.
	Enter func(ctx context.Context, from participant.WorkerID, a workerapi.Ask, in io.Reader, out io.Writer) error
	// Resize asks for another number of workers.
	Resize func(ctx context.Context, from participant.WorkerID, q jobs.Resize) (jobs.Size, error)
}

// doors are those of the workers that are here. A worker has one if it can make unix
// sockets; tasks of an array have none.
type doors struct {
	knocks   *Knocks // nil = nobody has one
	enforces func() []string

	mu   sync.Mutex // guards here
	here map[participant.WorkerID]*workerapi.Door
}

func newDoors(knocks *Knocks, enforces func() []string) *doors {
	return &doors{knocks: knocks, enforces: enforces, here: map[participant.WorkerID]*workerapi.Door{}}
}

// has reports whether workers of a job have one.
func (d *doors) has(spec *jobs.Spec) bool {
	return d.knocks != nil && spec.Array == nil && slices.Contains(d.enforces(), process.Namespaces)
}

// open opens the door of a worker, if it has one. It stays until close.
func (d *doors) open(root string, id participant.WorkerID, spec *jobs.Spec) error {
	if !d.has(spec) {
		return nil
	}
	opened, err := workerapi.Open(root, workerapi.Visits{
		Enter: func(ctx context.Context, a workerapi.Ask, in io.Reader, out io.Writer) error {
			return d.knocks.Enter(ctx, id, a, in, out)
		},
		Resize: func(ctx context.Context, workers int, release []int) (any, error) {
			return d.knocks.Resize(ctx, id, jobs.Resize{Workers: workers, Release: release})
		},
	})
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.here[id].Close() // perhaps of an earlier try
	d.here[id] = opened
	return nil
}

func (d *doors) close(id participant.WorkerID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.here[id].Close()
	delete(d.here, id)
}

// tell tells a worker where its door is, and lets it find the program that knocks, if that
// has a place among what the worker is shown.
func (d *doors) tell(env map[string]string, root string, spec *jobs.Spec, shown ...string) {
	if !d.has(spec) {
		return
	}
	env[workerapi.Variable] = filepath.Join(root, workerapi.Dir, workerapi.Name)
	if sandbox.HasProgram(shown...) {
		env["PATH"] += ":" + sandbox.ProgramDir
	}
}
