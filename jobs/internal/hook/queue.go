// Package hook runs what users want to be run at the origin of a job when it has ended
// (--on-end). Queue says which command is next; Shell runs one.
package hook

import "zorilla/jobs"

// AtOnce bounds the commands of a node that run at the same time.
const AtOnce = 4

// Due is a command that is to be run.
type Due struct {
	Job     jobs.ID
	Command string
}

// Queue has the commands that are to be run, in the order in which their jobs ended. It has no
// lock, clock or I/O.
type Queue struct {
	waiting []Due
	running map[jobs.ID]bool
}

// Add takes a command in, unless the job's waits or runs already.
func (q *Queue) Add(d Due) {
	if q.Has(d.Job) {
		return
	}
	q.waiting = append(q.waiting, d)
}

// Has reports whether the command of a job waits or runs.
func (q *Queue) Has(id jobs.ID) bool {
	for _, d := range q.waiting {
		if d.Job == id {
			return true
		}
	}
	return q.running[id]
}

// Next returns a command that is to be run now, until Done. It reports false if there is none.
func (q *Queue) Next() (d Due, ok bool) {
	if len(q.waiting) == 0 || len(q.running) >= AtOnce {
		return d, false
	}
	if q.running == nil {
		q.running = map[jobs.ID]bool{}
	}
	d = q.waiting[0]
	q.waiting = q.waiting[1:]
	q.running[d.Job] = true
	return d, true
}

// Done tells that the command of a job has ended.
func (q *Queue) Done(id jobs.ID) { delete(q.running, id) }
