package process

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"zorilla/internal/sanitize"
	"zorilla/jobs/work"
	"zorilla/transfer"
)

// finishOutput keeps what is left of a task's output, as far as it may be kept, and reports
// whether it wrote more than that. Nothing of the task is alive.
func (t *tasks) finishOutput() (over bool, err error) {
	if t.s.spec.MaxOutput == 0 {
		return false, nil
	}
	for _, st := range t.s.streams {
		if _, err := st.flush(); err != nil {
			return false, err
		}
	}
	return t.s.written.lift(), nil
}

// overflowed says that a task has written more output than it may.
func (t *tasks) overflowed(serial int) {
	t.end(serial, codeKilled, OverOutput(t.s.spec.MaxOutput), unix.SIGKILL)
}

// gather finds the files that a task left. One whose files cannot be had has
// failed.
func (t *tasks) gather(id int, r *TaskResult) *transfer.Pack {
	spec := t.s.spec.Tasks
	if len(spec.Outputs) == 0 {
		return t.gatherLeft(id, spec.Left)
	}
	files, warnings, err := transfer.Gather(context.Background(), t.dir.own, spec.Outputs, &t.dir.made)
	for _, w := range warnings {
		t.say(fmt.Sprintf("warning: task %d: %s", id, w))
	}
	if err != nil {
		t.say(fmt.Sprintf("task %d: its outputs are lost: %v", id, err))
		if r.Code == 0 {
			r.Code = codeFailed
		}
		return nil
	}
	return files
}

// maxLeftName bounds the name of a file that is reported, in bytes.
const maxLeftName = 200

// leftCost is what a file counts beside its bytes.
const leftCost = 256

// leftovers is what tasks of a worker have left and nobody has asked for.
type leftovers struct {
	kept    int64     // bytes that were taken along, and leftCost for each file
	removed work.Left // guarded by mu
}

// gatherLeft finds the files that a task left and that no pattern names, as far as they are to be
// taken along, and notes if others are removed.
func (t *tasks) gatherLeft(id int, limit *LeftLimit) (pack *transfer.Pack) {
	if limit == nil || t.dir.untouched() {
		return nil
	}
	left, files, bytes := transfer.FindLeft(t.dir.own, &t.dir.made, limit.Files, transfer.ForPeople)
	if files == 0 {
		return nil
	}
	removed := left
	if cost := bytes + int64(files)*leftCost; files <= limit.Files && bytes <= limit.Bytes && t.left.kept+cost <= limit.All {
		var sent, others []transfer.Left
		for _, l := range left {
			if transfer.CheckPath(l.Path) == nil {
				sent = append(sent, l)
			} else {
				others = append(others, l)
			}
		}
		if p, err := transfer.GatherLeft(context.Background(), t.dir.own, sent); err == nil {
			pack, removed = p, others
			t.left.kept += cost
		}
	}
	if len(removed) == 0 {
		return pack
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.left.removed.Tasks++; t.left.removed.Tasks == 1 {
		t.left.removed.Task, t.left.removed.Name = id, sanitize.OneLineOf(removed[0].Path, maxLeftName)
	}
	return pack
}

// removed returns what tasks have left that was removed, or nil; t may be nil.
func (t *tasks) removed() *work.Left {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.left.removed.Tasks == 0 {
		return nil
	}
	return &t.left.removed
}

// record completes a result by what the task wrote and left, and keeps it.
func (t *tasks) record(r TaskResult, files *transfer.Pack) error {
	var wrote [2]int64
	for i, st := range t.s.streams {
		var err error
		if wrote[i], err = st.flush(); err != nil {
			return err
		}
	}
	r.Stdout, r.Stderr = wrote[0]-t.wrote[0], wrote[1]-t.wrote[1]
	if files != nil && !files.Empty() {
		t.pack.Reset(packer{t})
		err := files.Write(t.pack)
		if err != nil && t.stopped() {
			return nil
		}
		if err != nil {
			return fmt.Errorf("collect outputs of task %d: %w", t.numbers.ID(r.Place), err)
		}
		r.Files = t.s.streams[1].size() - wrote[1]
		wrote[1] += r.Files
	}
	t.wrote = wrote
	b := t.s.spec.Tasks.appendResult(nil, r)
	if err := t.s.room.Try(func() error {
		n, err := t.results.Write(b)
		b = b[n:]
		return err
	}); err != nil {
		return fmt.Errorf("results of tasks: %w", err)
	}
	t.mu.Lock()
	t.ended++
	t.mu.Unlock()
	t.s.control.progress()
	return nil
}

// packSize is how much of a task's files is written at once.
const packSize = 256 << 10

// packer writes files into the stream of standard error, whose pipe is empty:
// no process of the task is alive.
type packer struct{ t *tasks }

func (p packer) Write(b []byte) (int, error) {
	p.t.awaitRoom()
	if p.t.stopped() {
		return 0, errors.New("the worker ends")
	}
	return len(b), p.t.s.streams[1].put(b)
}

// roomEvery is how often is looked whether output was taken away.
const roomEvery = time.Millisecond

// awaitRoom waits while too much of the output has not been taken away.
func (t *tasks) awaitRoom() {
	for _, st := range t.s.streams {
		for st.left() <= 0 && !t.stopped() {
			time.Sleep(roomEvery)
		}
	}
}
