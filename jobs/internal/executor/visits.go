package executor

import (
	"zorilla/jobs/internal/participant"
	"zorilla/jobs/process"
)

// Visits are of those who want to run something beside a worker.
type Visits struct{ x *Executor }

// NewVisits returns those of an executor's workers. Their methods run in the loop.
func NewVisits(x *Executor) Visits { return Visits{x} }

// Find returns the process of a worker that was begun here, or nil.
func (v Visits) Find(id participant.WorkerID) process.Worker {
	if r := v.x.procs[id]; r != nil {
		return r.Worker
	}
	return nil
}
