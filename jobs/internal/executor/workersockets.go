package executor

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"

	"zorilla/jobs"
	"zorilla/jobs/internal/participant"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/process"
	"zorilla/jobs/session/workerapi"
)

// WorkerRequests carries out what processes inside workers ask of their node. Its functions are
// called in goroutines of their own.
type WorkerRequests struct {
	// Enter connects a process with another worker of its job.
	Enter func(ctx context.Context, from participant.WorkerID, a workerapi.Ask, in io.Reader, out io.Writer) error
	// Resize asks for another number of workers.
	Resize func(ctx context.Context, from participant.WorkerID, q jobs.Resize) (jobs.Size, error)
	// Checkpoint makes a checkpoint of the worker.
	Checkpoint func(ctx context.Context, from participant.WorkerID, q jobs.CheckpointAsk) (jobs.CheckpointAnswer, error)
	// Acknowledged takes what the origin has of the checkpoints of a worker, Forget that a worker is not here any
	// more. Both return at once.
	Acknowledged func(participant.WorkerID, wire.CheckpointAck)
	Forget       func(participant.WorkerID)
}

// workerSockets are the API sockets of the workers that are here. A worker has one where there
// are namespaces; tasks of an array have none.
type workerSockets struct {
	requests *WorkerRequests // nil = no worker has one
	enforces func() []string

	mu   sync.Mutex // guards here
	here map[participant.WorkerID]*workerapi.Server
}

func newWorkerSockets(requests *WorkerRequests, enforces func() []string) *workerSockets {
	return &workerSockets{requests: requests, enforces: enforces, here: map[participant.WorkerID]*workerapi.Server{}}
}

// has reports whether workers of a job have one.
func (d *workerSockets) has(spec *jobs.Spec) bool {
	return d.requests != nil && spec.Array == nil && slices.Contains(d.enforces(), process.Namespaces)
}

// open opens the socket of a worker, if it has one. It stays until close.
func (d *workerSockets) open(root string, id participant.WorkerID, spec *jobs.Spec) error {
	if !d.has(spec) {
		return nil
	}
	opened, err := workerapi.Open(root, workerapi.Handlers{
		Enter: func(ctx context.Context, a workerapi.Ask, in io.Reader, out io.Writer) error {
			return d.requests.Enter(ctx, id, a, in, out)
		},
		Resize: func(ctx context.Context, workers int, release []int) (any, error) {
			return d.requests.Resize(ctx, id, jobs.Resize{Workers: workers, Release: release})
		},
		Checkpoint: func(ctx context.Context, c workerapi.Checkpoint) (any, error) {
			if spec.ShareWork {
				return nil, errors.New("workers of this job share a directory (--share-work): no checkpoint can be made of one of them")
			}
			return d.requests.Checkpoint(ctx, id, jobs.CheckpointAsk(c))
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

func (d *workerSockets) close(id participant.WorkerID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.here[id].Close()
	delete(d.here, id)
}
