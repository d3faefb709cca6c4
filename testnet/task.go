package testnet

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"zorilla/jobs/process"
	"zorilla/transfer"
)

// feed is a process.TaskFeed: it runs a Program for each task.
type feed struct {
	w       *worker
	numbers process.TaskNumbers
	wake    chan struct{}

	mu      sync.Mutex // guards what follows
	queue   []int      // places of all tasks that came
	last    bool
	results []process.TaskResult
}

func newFeed(w *worker) *feed {
	return &feed{w: w, numbers: process.NumberTasks(w.spec.Tasks.IDs), wake: make(chan struct{}, 1)}
}

// Tasks implements process.Worker.
func (w *worker) Tasks() process.TaskFeed {
	if w.feed == nil {
		return nil
	}
	return w.feed
}

// run runs the tasks that come until the last.
func (f *feed) run(ctx context.Context, program Program) int {
	for n := 0; ; {
		f.mu.Lock()
		some, last := n < len(f.queue), f.last
		f.mu.Unlock()
		switch {
		case some:
			if !f.do(ctx, program, n) {
				return -sigTerm
			}
			n++
			continue
		case last:
			return 0
		}
		select {
		case <-f.wake:
		case <-ctx.Done():
			return -sigTerm
		}
	}
}

// do runs one task; false means that it was interrupted.
func (f *feed) do(ctx context.Context, program Program, n int) bool {
	f.mu.Lock()
	place := f.queue[n]
	f.mu.Unlock()
	out, errs := f.w.Written()
	begin := time.Now()
	v := f.w.view()
	if len(f.w.spec.Tasks.Outputs) > 0 {
		v.Dir = filepath.Join(f.w.spec.Root, process.TaskDir)
		if err := errors.Join(os.RemoveAll(v.Dir), os.MkdirAll(v.Dir, 0o755)); err != nil {
			return false
		}
	}
	v.env = append(slices.Clip(v.env), fmt.Sprint("ZORILLA_TASK_ID=", f.numbers.ID(place)), fmt.Sprint("ZORILLA_TASK_COUNT=", f.numbers.Count()))
	code := program(ctx, v)
	if ctx.Err() != nil {
		return false
	}
	if code < 0 {
		code = 128 - code
	}
	r := process.TaskResult{Place: place, Code: code & 0xff, Took: time.Since(begin)}
	r.Stdout, r.Stderr = f.w.Written()
	r.Stdout, r.Stderr = r.Stdout-out, r.Stderr-errs
	if len(f.w.spec.Tasks.Outputs) > 0 {
		if err := f.leave(v.Dir, &r); err != nil {
			return false
		}
	}
	f.mu.Lock()
	f.results = append(f.results, r)
	f.mu.Unlock()
	f.changed()
	return true
}

// leave puts the files of a task behind what it wrote.
func (f *feed) leave(dir string, r *process.TaskResult) error {
	pack, _, err := transfer.Gather(context.Background(), dir, f.w.spec.Tasks.Outputs, nil)
	if err != nil {
		return err
	}
	defer pack.Close()
	_, before := f.w.Written()
	if err := pack.Write(bufio.NewWriter(writer{f.w, process.Stderr})); err != nil {
		return err
	}
	_, after := f.w.Written()
	r.Files = after - before
	return nil
}

// changed tells those who wait for a change of the worker.
func (f *feed) changed() {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	if !f.w.over {
		close(f.w.changed)
		f.w.changed = make(chan struct{})
	}
}

// Add implements process.TaskFeed.
func (f *feed) Add(before int, ranges []process.TaskRange, last bool) {
	f.mu.Lock()
	for _, r := range ranges {
		for i := range r.Count {
			if before == len(f.queue) {
				f.queue = append(f.queue, r.From+i)
			}
			before++
		}
	}
	f.last = f.last || last && before == len(f.queue)
	f.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
	f.changed()
}

// Counts implements process.TaskFeed.
func (f *feed) Counts() (added, ended int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.queue), len(f.results)
}

// Results implements process.TaskFeed.
func (f *feed) Results(from, limit int) ([]process.TaskResult, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	from = min(max(from, 0), len(f.results))
	return slices.Clone(f.results[from:min(from+limit, len(f.results))]), nil
}
