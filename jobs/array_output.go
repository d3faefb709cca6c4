package jobs

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"

	"zorilla/jobs/process"
)

// Tasks lists tasks of an array of this origin.
func (s *Service) Tasks(id ID, q TaskQuery) (page TaskPage, err error) {
	array := false
	err = s.inJob(id, func(j *job) {
		array = j.core.rec.tasks != nil
		page = j.core.taskPage(q)
	})
	if err == nil && !array {
		err = fmt.Errorf("%w: job %s has no tasks: it is not an array", ErrNotFound, id)
	}
	return page, err
}

// arrayOutput reads the output of an array task by task: each as a whole once
// it has ended, in the order of their ends. It remembers where bytes lie in the
// job's output only until the task that wrote them has ended.
type arrayOutput struct {
	s    *Service
	job  *job
	want func(id int) bool
	f    func(Output) error

	file   *os.File
	pos    int64 // of the output log, up to which pieces are known
	pieces map[streamOf][]stretch
	next   int          // in taskTable.order
	told   map[int]bool // tasks that may be done again, by place

	replicas *replicaOutput // nil of an array
}

type streamOf struct {
	RankAttempt
	stream process.Stream
}

// stretch is where bytes of a worker lie in the log.
type stretch struct{ offset, size, at int64 }

// endedTask is a task whose output can be told.
type endedTask struct {
	id    int
	place int
	taskRecord
}

// readTasks calls f with the output of tasks.
func (s *Service) readTasks(ctx context.Context, j *job, task int, follow bool, f func(Output) error) error {
	r := &arrayOutput{s: s, job: j, f: f, want: func(id int) bool { return task < 0 || id == task }, pieces: map[streamOf][]stretch{}, told: map[int]bool{}}
	if j.core.rec.spec.Replicas > 1 {
		r.replicas = &replicaOutput{s: s, told: map[RankAttempt]bool{}}
	}
	defer func() {
		if r.file != nil {
			r.file.Close()
		}
	}()
	for {
		changed := s.Changes()
		batch, more, err := r.batch()
		if err == nil {
			err = r.scan()
		}
		for i := 0; i < len(batch) && err == nil; i++ {
			if err = ctx.Err(); err == nil {
				err = r.tell(batch[i])
			}
		}
		if err != nil || len(batch) == 0 && (!follow || !more) {
			return err
		}
		if len(batch) > 0 {
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-s.stopped:
			return errStopped
		}
	}
}

// batch returns tasks that have ended since the last call; more tells that
// others may come.
func (r *arrayOutput) batch() (batch []endedTask, more bool, err error) {
	if r.replicas != nil {
		return r.replicas.batch(r.job)
	}
	ok := r.s.call(func() {
		t := r.job.core.rec.tasks
		more = !r.job.core.rec.state.Final()
		for ; r.next < len(t.order) && len(batch) < maxResults; r.next++ {
			place := int(t.order[r.next])
			if k := t.tasks[place]; k.done && int(k.at) == r.next && !r.told[place] {
				if !t.keep {
					r.told[place] = true
				}
				batch = append(batch, endedTask{t.numbers.ID(place), place, k})
			}
		}
	})
	if !ok {
		err = errStopped
	}
	return batch, more, err
}

// scan notes the pieces that came.
func (r *arrayOutput) scan() (err error) {
	size, _, _ := r.job.output.spool.state()
	if size <= r.pos {
		return nil
	}
	if r.file == nil {
		if r.file, err = os.Open(r.job.output.spool.path); err != nil {
			return err
		}
	}
	in := bufio.NewReaderSize(io.NewSectionReader(r.file, r.pos, size-r.pos), 1<<16)
	for r.pos < size {
		o, n, err := readOutputHeader(in)
		if err != nil {
			return fmt.Errorf("output of a job: %w", err)
		}
		if _, err := in.Discard(n); err != nil {
			return fmt.Errorf("output of a job: %w", err)
		}
		key := streamOf{RankAttempt{o.Rank, o.Attempt}, o.Stream}
		r.pieces[key] = append(r.pieces[key], stretch{o.Offset, int64(n), r.pos + outputHeader})
		r.pos += outputHeader + int64(n)
	}
	return nil
}

// tell passes on what a task wrote.
func (r *arrayOutput) tell(k endedTask) error {
	worker := RankAttempt{int(k.rank), int(k.try)}
	if err := r.tellStream(k.id, streamOf{worker, process.Stdout}, k.from.stdout, k.wrote.stdout); err != nil {
		return err
	}
	return r.tellStream(k.id, streamOf{worker, process.Stderr}, k.from.stderr, k.wrote.stderr)
}

func (r *arrayOutput) tellStream(id int, key streamOf, from, size int64) error {
	pieces := r.pieces[key]
	for done := int64(0); ; {
		for len(pieces) > 0 && pieces[0].offset+pieces[0].size <= from+done {
			pieces = pieces[1:]
		}
		r.pieces[key] = pieces
		if done == size {
			return nil
		}
		if len(pieces) == 0 || pieces[0].offset > from+done {
			return fmt.Errorf("output of task %d is missing: the disk lost it", id)
		}
		skip := from + done - pieces[0].offset
		n := min(size-done, pieces[0].size-skip)
		if r.want(id) {
			data := make([]byte, n)
			if _, err := r.file.ReadAt(data, pieces[0].at+skip); err != nil {
				return err
			}
			if err := r.f(Output{Rank: id, Attempt: 1, Stream: key.stream, Offset: done, Data: data}); err != nil {
				return err
			}
		}
		done += n
	}
}
