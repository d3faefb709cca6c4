// Package onend runs what users want to be run at the origin of a job when it has ended
// (--on-end). Keeper has them run, Queue says which is next, and Shell runs one.
package onend

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
	known   map[jobs.ID]bool // those that wait and those that run, who may be many at a start
}

// Add takes a command in, unless the job's waits or runs already.
func (q *Queue) Add(d Due) {
	if q.known[d.Job] {
		return
	}
	if q.known == nil {
		q.known = map[jobs.ID]bool{}
	}
	q.known[d.Job] = true
	q.waiting = append(q.waiting, d)
}

// Next returns a command that is to be run now, until Done. It reports false if there is none.
func (q *Queue) Next() (d Due, ok bool) {
	if running := len(q.known) - len(q.waiting); len(q.waiting) == 0 || running >= AtOnce {
		return d, false
	}
	d = q.waiting[0]
	q.waiting = q.waiting[1:]
	return d, true
}

// Done tells that the command of a job that Next returned has ended.
func (q *Queue) Done(id jobs.ID) { delete(q.known, id) }
