package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// feed is the node's view of a worker's tasks. Its fields are guarded by
// worker.mu.
type feed struct {
	w     *worker
	added int
	ended int
	file  *os.File // the results
}

// Add implements TaskFeed.
func (f *feed) Add(before int, ranges []TaskRange, last bool) {
	m := message{Kind: kindTasks, Added: before, Ranges: ranges, Last: last}
	if m.check() != nil {
		return
	}
	f.w.mu.Lock()
	f.w.outbox.add(m)
	f.w.mu.Unlock()
	f.w.poke()
}

// Counts implements TaskFeed.
func (f *feed) Counts() (added, ended int) {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	return f.added, f.ended
}

// advance takes what the supervisor tells, and reports whether it is news. The
// caller holds worker.mu.
func (f *feed) advance(added, ended int) bool {
	if f == nil || added <= f.added && ended <= f.ended {
		return false
	}
	f.ended = max(f.ended, ended)
	f.added = max(f.added, added, f.ended)
	return true
}

// Results implements TaskFeed.
func (f *feed) Results(from, limit int) ([]TaskResult, error) {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	n := min(f.ended-from, limit)
	switch {
	case f.w.output.closed:
		return nil, os.ErrClosed
	case from < 0 || n <= 0:
		return nil, nil
	}
	if f.file == nil {
		file, err := os.OpenFile(filepath.Join(f.w.spec.Root, tasksFile), os.O_RDONLY|unix.O_NOFOLLOW, 0)
		if err != nil {
			return nil, err
		}
		f.file = file
	}
	tasks := f.w.spec.Tasks
	size := tasks.resultSize()
	b := make([]byte, n*size)
	if _, err := f.file.ReadAt(b, int64(from)*int64(size)); err != nil {
		if errors.Is(err, io.EOF) {
			err = fmt.Errorf("%w: results of tasks are missing", errMalformed)
		}
		return nil, err
	}
	results := make([]TaskResult, n)
	for i := range results {
		var err error
		if results[i], err = tasks.parseResult(b[i*size:]); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// measure takes what the file holds as ended, and reports whether that is so
// many. The caller holds worker.mu.
func (f *feed) measure(least int) bool {
	if f == nil {
		return true
	}
	n := 0
	if info, err := os.Lstat(filepath.Join(f.w.spec.Root, tasksFile)); err == nil {
		n = int(info.Size()) / f.w.spec.Tasks.resultSize()
	}
	f.advance(n, n)
	return n >= least
}

func (f *feed) close() {
	if f != nil && f.file != nil {
		_ = f.file.Close()
		f.file = nil
	}
}
