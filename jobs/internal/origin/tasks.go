package origin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"zorilla/jobs"
	"zorilla/jobs/internal/loop"
	"zorilla/jobs/internal/output"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/work"
)

// Tasks lists tasks of an array of this origin.
func (a *API) Tasks(id jobs.ID, q jobs.TaskQuery) (page jobs.TaskPage, err error) {
	array := false
	err = a.own.table.inJob(id, func(j *job) {
		array = j.Primary.Rec.Tasks != nil
		page = j.Primary.TaskPage(q)
	})
	if err == nil && !array {
		err = fmt.Errorf("%w: job %s has no tasks: it is not an array", jobs.ErrNotFound, id.Short())
	}
	return page, err
}

// arrayOutput reads the output of an array task by task: each as a whole once
// it has ended, in the order of their ends. It remembers where bytes lie in the
// job's output only until the task that wrote them has ended.
type arrayOutput struct {
	loop *loop.Loop
	job  *job
	want func(id int) bool
	// files: what is told is not what a task wrote but the pack of its files.
	files bool
	f     func(jobs.Output) error

	file   *os.File
	pos    int64 // of the output file, up to which pieces are known
	pieces map[output.StreamOf][]stretch
	came   int64 // when what is at pos did, as far as it is known
	next   int   // in TaskTable.Order

	replicas *replicaOutput // nil of an array
	tries    *tryOutput     // nil = the tries that count are told

	lost []string // what could not be told, at most MaxDamage
	more int      // beyond that
}

// stretch is where bytes of a worker lie in the file.
type stretch struct{ offset, size, place, at int64 }

// endedTask is a task whose output can be told.
type endedTask struct {
	id int
	record.Task
}

// late has only the end read of an array that has ended: the last tasks that wrote n bytes, if
// there are as many, and what of that lies in the end of the file. All else will count as lost.
// It waits for the loop.
func (r *arrayOutput) late(n int64) {
	files := int64(0)
	r.loop.Call(func() {
		if t := r.job.Primary.Rec.Tasks; t != nil {
			for r.next = len(t.Order); r.next > 0 && n > 0; r.next-- {
				task := &t.Tasks[t.Order[r.next-1]]
				n -= task.Wrote.Stdout + task.Wrote.Stderr
				files += task.Files
			}
		}
	})
	r.pos = max(0, r.job.output.TailStart()-min(files, maxFilesBefore))
}

// maxFilesBefore bounds how many bytes of files of the last tasks are passed over to find what
// they wrote before.
const maxFilesBefore = 256 << 20

// read tells all. With follow it waits for tasks that have not ended. It waits for the loop.
func (r *arrayOutput) read(ctx context.Context, follow bool) error {
	defer func() {
		if r.file != nil {
			r.file.Close()
		}
	}()
	for {
		changed := r.loop.Changes()
		batch, more, err := r.batch()
		if err == nil {
			err = r.scan()
		}
		for i := 0; i < len(batch) && err == nil; i++ {
			if err = ctx.Err(); err == nil {
				err = r.tell(batch[i])
			}
		}
		if err == nil && len(batch) == 0 && (!follow || !more) {
			return r.damaged()
		}
		if err != nil {
			return err
		}
		if len(batch) > 0 {
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-r.loop.Stopped.Done():
			return jobs.ErrStopped
		}
	}
}

// batch returns tasks that have ended since the last call; more tells that
// others may come.
func (r *arrayOutput) batch() (batch []endedTask, more bool, err error) {
	switch {
	case r.replicas != nil:
		return r.replicas.batch(r.job)
	case r.tries != nil:
		return r.tries.batch(r)
	}
	ok := r.loop.Call(func() {
		t := r.job.Primary.Rec.Tasks
		more = !r.job.Primary.Rec.State.Final()
		for ; r.next < len(t.Order) && len(batch) < jobs.MaxResults; r.next++ {
			place := int(t.Order[r.next])
			batch = append(batch, endedTask{t.Numbers.ID(place), t.Tasks[place]})
		}
	})
	if !ok {
		err = jobs.ErrStopped
	}
	return batch, more, err
}

// scan notes the pieces that came.
func (r *arrayOutput) scan() (err error) {
	size, _, _ := r.job.output.Spool.State()
	if size <= r.pos {
		return nil
	}
	if r.file == nil {
		r.file, err = os.Open(r.job.output.Spool.Path)
		if errors.Is(err, os.ErrNotExist) {
			return nil // who looks for a task's piece will miss it
		}
		if err != nil {
			return err
		}
	}
	in := output.NewFrames(r.job.output.Job, io.NewSectionReader(r.file, r.pos, size-r.pos), r.pos)
	in.Came = r.came
	var data []byte
	for {
		f, _, err := in.Next()
		if r.pos = in.Pos; err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("output of a job: %w", err)
		}
		var whole bool
		data, whole, err = in.Data(&f, data)
		if err != nil {
			return fmt.Errorf("output of a job: %w", err)
		}
		if r.pos, r.came = in.Pos, in.Came; whole && !f.Note() {
			r.pieces[f.Key()] = append(r.pieces[f.Key()], stretch{f.Offset, int64(f.N), f.Place, f.At})
		}
	}
}

// tell passes on what a task wrote.
func (r *arrayOutput) tell(k endedTask) error {
	worker := jobs.RankAttempt{Rank: int(k.Rank), Attempt: int(k.Try)}
	if r.files {
		return r.tellStream(k.id, output.StreamOf{RankAttempt: worker, Stream: work.Stderr}, work.Files, k.From.Stderr+k.Wrote.Stderr, k.Files)
	}
	if err := r.tellStream(k.id, output.StreamOf{RankAttempt: worker, Stream: work.Stdout}, work.Stdout, k.From.Stdout, k.Wrote.Stdout); err != nil {
		return err
	}
	return r.tellStream(k.id, output.StreamOf{RankAttempt: worker, Stream: work.Stderr}, work.Stderr, k.From.Stderr, k.Wrote.Stderr)
}

// lose notes bytes of a task that the disk lost.
func (r *arrayOutput) lose(id int, st work.Stream, from, n int64) {
	what := "task"
	if r.replicas != nil {
		what = "rank"
	}
	if len(r.lost) == output.MaxDamage {
		r.more++
		return
	}
	r.lost = append(r.lost, fmt.Sprintf("%s %d: %s: bytes %d to %d", what, id, output.StreamName(st), from, from+n-1))
}

// damaged is the error of a reader who was told all that is left.
func (r *arrayOutput) damaged() error {
	if broken := r.job.Primary.Rec.Broken; broken != "" {
		r.lost = append([]string{"its journal: " + broken}, r.lost...)
	}
	if len(r.lost) == 0 {
		return nil
	}
	if r.more > 0 {
		r.lost = append(r.lost, fmt.Sprintf("and %d more", r.more))
	}
	return fmt.Errorf("job %s is %w: %s", r.job.output.Job.Short(), jobs.ErrDamaged, strings.Join(r.lost, "; "))
}

// tellStream passes on bytes of a worker's stream, as those of another one.
func (r *arrayOutput) tellStream(id int, key output.StreamOf, as work.Stream, from, size int64) error {
	pieces := r.pieces[key]
	for done := int64(0); ; {
		for len(pieces) > 0 && pieces[0].offset+pieces[0].size <= from+done {
			pieces = pieces[1:]
		}
		r.pieces[key] = pieces
		if done == size {
			return nil
		}
		if len(pieces) == 0 || pieces[0].offset > from+done { // the disk lost it
			n := size - done
			if len(pieces) > 0 {
				n = min(n, pieces[0].offset-from-done)
			}
			if r.want(id) {
				r.lose(id, as, done, n)
			}
			done += n
			continue
		}
		skip := from + done - pieces[0].offset
		n := min(size-done, pieces[0].size-skip)
		if r.want(id) {
			data := make([]byte, n)
			_, err := r.file.ReadAt(data, pieces[0].place+skip)
			if err == io.EOF { // it was cut short since
				r.lose(id, as, done, n)
				done += n
				continue
			}
			if err != nil {
				return err
			}
			if err := r.f(jobs.Output{Rank: id, Attempt: 1, Stream: as, Offset: done, Data: data, At: pieces[0].at}); err != nil {
				return err
			}
		}
		done += n
	}
}
