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
	"zorilla/jobs/session/door"
)

// VisitFunc passes on what a process inside a worker wants of another one of its job.
type VisitFunc func(ctx context.Context, from participant.WorkerID, a door.Ask, in io.Reader, out io.Writer) error

// doors are those of the workers that are here. A worker has one if it can make unix
// sockets, and has others of its job.
type doors struct {
	visit    VisitFunc // nil = nobody has one
	enforces func() []string

	mu   sync.Mutex // guards here
	here map[participant.WorkerID]*door.Door
}

func newDoors(visit VisitFunc, enforces func() []string) *doors {
	return &doors{visit: visit, enforces: enforces, here: map[participant.WorkerID]*door.Door{}}
}

// has reports whether workers of a job have one.
func (d *doors) has(spec *jobs.Spec) bool {
	return d.visit != nil && spec.Array == nil && slices.Contains(d.enforces(), process.Namespaces)
}

// open opens the door of a worker, if it has one. It stays until close.
func (d *doors) open(root string, id participant.WorkerID, spec *jobs.Spec) error {
	if !d.has(spec) {
		return nil
	}
	opened, err := door.Open(root, func(ctx context.Context, a door.Ask, in io.Reader, out io.Writer) error {
		return d.visit(ctx, id, a, in, out)
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

// tell tells a worker where its door is, and lets it find the program that knocks.
func (d *doors) tell(env map[string]string, root string, spec *jobs.Spec) {
	if d.has(spec) {
		env[door.Variable] = filepath.Join(root, door.Dir, door.Name)
		env["PATH"] += ":" + sandbox.ProgramDir
	}
}
