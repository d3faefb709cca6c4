package api

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"

	"zorilla/jobs"
	"zorilla/transfer"
)

// ErrEnough is how a function that is told of files says that it needs no more, and how
// WalkTaskFiles says that there are more.
var ErrEnough = errors.New("there is more than was wanted")

// WalkTaskFiles calls f with the output files of the tasks of an array that have ended, task by
// task, or of one (-1 = all), which may be none's. What a file consists of is in put by then. It
// reads so many bytes at most, and ends with ErrEnough if there are more, or if f says so. With an
// error that wraps jobs.ErrDamaged f was told of all that is left.
func WalkTaskFiles(
	ctx context.Context, s outputTeller, st *jobs.Status, task int, most int64, put transfer.Putter, f func(task int, e transfer.Entry) error,
) error {
	if st.Spec.Array == nil {
		return nil
	}
	t := newTaskFetch(st, task, put)
	t.most = most
	t.each = func(task int, e transfer.Entry) error {
		if !t.named(e.Path) {
			return nil
		}
		return f(task, e)
	}
	return t.run(ctx, s, st)
}

// outputTeller is the part of a Service that tells of the files of tasks.
type outputTeller interface {
	Output(ctx context.Context, job string, q OutputQuery, f func(jobs.Output) error) error
}

// TaskFile is what is told of an output file of a task.
type TaskFile struct {
	Task int
	Path string
	Size int64
	Mode fs.FileMode // 0 = not known: no file is without all permissions
}

// Limits of what is read to list files of tasks, which come as a whole.
const (
	maxListed = 32 << 20 // bytes of files, unless one task is asked for
	maxModes  = 1 << 16  // the modes of so many files of a task are looked for
)

// TaskFiles lists the first output files of the tasks of an array that have ended, or of the one
// that is wanted: so many at most, and only as many as a bounded number of bytes tells of; more
// tells that these are not all. With an error that wraps jobs.ErrDamaged they are all that is left.
func TaskFiles(ctx context.Context, s outputTeller, st *jobs.Status, want Wanted, limit int) (list []TaskFile, more bool, err error) {
	if st.Spec.Array == nil {
		return nil, false, nil
	}
	l := &taskLister{want: want, limit: limit, task: -1}
	t := newTaskFetch(st, want.Rank, transfer.PutterFunc(func(transfer.Hash, []byte) error { return nil }))
	t.each, t.modes, l.named = l.add, l.ended, t.named
	if want.Rank < 0 {
		t.most = maxListed
	}
	err = t.run(ctx, s, st)
	slices.SortFunc(l.list, func(a, b TaskFile) int { // they come as tasks ended, and as they are on a disk
		return cmp.Or(cmp.Compare(a.Task, b.Task), cmp.Compare(a.Path, b.Path))
	})
	if errors.Is(err, ErrEnough) {
		return l.list, true, nil
	}
	return l.list, l.full, err
}

// taskLister makes a list of files of tasks.
type taskLister struct {
	want  Wanted
	named func(path string) bool // by the job's patterns
	limit int
	list  []TaskFile
	full  bool  // there are more files than may be in the list
	over  int64 // bytes of these

	// Of the task that comes: its entries, without what they consist of, for their modes, which
	// come last, and where those of files in the list are.
	task    int
	entries []transfer.Entry
	places  map[int]int
}

// add takes the next file.
func (l *taskLister) add(task int, e transfer.Entry) error {
	if task != l.task { // the one before may have been cut short
		l.task, l.entries, l.places = task, l.entries[:0], nil
	}
	place := len(l.entries)
	if place < maxModes {
		l.entries = append(l.entries, transfer.Entry{Dir: e.Dir, Exec: e.Exec})
	}
	if e.Dir || !l.named(e.Path) || len(l.want.only([]transfer.Entry{e})) == 0 {
		return nil
	}
	if l.full = l.full || len(l.list) == l.limit; l.full {
		if l.over += e.Size; l.over > maxListed {
			return ErrEnough // and no modes
		}
		return nil // until all modes of this task are known
	}
	if place < maxModes {
		if l.places == nil {
			l.places = map[int]int{}
		}
		l.places[place] = len(l.list)
	}
	l.list = append(l.list, TaskFile{Task: task, Path: e.Path, Size: e.Size})
	return nil
}

// ended takes the modes of the files of a task.
func (l *taskLister) ended(pack *transfer.PackReader) error {
	pack.Modes(l.entries)
	for place, i := range l.places {
		l.list[i].Mode = l.entries[place].FileMode()
	}
	if l.full {
		return ErrEnough
	}
	return nil
}
