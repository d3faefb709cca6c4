package testnet

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"zorilla/jobs/process"
	"zorilla/jobs/work"
	"zorilla/transfer"
)

// tasks runs a Program for each task of a worker, one after the other. queue,
// results and now are guarded by supervisor.mu.
type tasks struct {
	s       *supervisor
	numbers work.TaskNumbers
	lines   []string
	made    transfer.Manifest // links to inputs, which each task finds
	wake    chan struct{}     // capacity 1

	queue   *process.TaskQueue
	results []process.TaskResult
	now     *tree // of the task that runs
}

// running returns the processes that run now, nil for none. The caller holds mu.
func (s *supervisor) running() *tree {
	if s.tasks != nil {
		return s.tasks.now
	}
	return s.main
}

// newTasks takes what tasks need from the work directory.
func newTasks(s *supervisor) (*tasks, error) {
	t := &tasks{s: s, numbers: work.NumberTasks(s.spec.Tasks.IDs), wake: make(chan struct{}, 1)}
	t.queue = process.NewTaskQueue(t.numbers.Count())
	dir := filepath.Join(s.spec.Root, workDir)
	if name := s.spec.Tasks.Lines; name != "" {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil {
			err = os.Remove(filepath.Join(dir, name))
		}
		if err != nil {
			return nil, err
		}
		t.lines = strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	}
	inputs, err := os.ReadDir(dir)
	for _, e := range inputs {
		t.made.Entries = append(t.made.Entries, transfer.Entry{Path: e.Name(), Link: filepath.Join("..", workDir, e.Name())})
	}
	return t, err
}

// run runs the tasks that come until the last.
func (t *tasks) run(program Program) {
	main := t.s.main
	for {
		t.s.mu.Lock()
		place, ok, over := 0, false, main.life.Phase() != process.Running
		if !over {
			place, ok, over = t.queue.Next()
		}
		t.s.mu.Unlock()
		switch {
		case over:
			main.tell(func(l *process.Life, _ time.Time) { l.Finished() })
			return
		case !ok:
			select {
			case <-t.wake:
			case <-main.ctx.Done():
			}
			continue
		}
		if err := t.do(place, program); err != nil {
			main.tell(func(l *process.Life, _ time.Time) { l.Fail(err) })
		}
	}
}

// do runs one task. One that is interrupted by the end of its worker has no
// result.
func (t *tasks) do(place int, program Program) error {
	spec, id := t.s.spec, t.numbers.ID(place)
	if err := t.fill(); err != nil {
		return err
	}
	spec.Tasks = nil
	run := t.s.newTree(t.s.main.ctx, &spec, func() { t.now = nil })
	view := run.view(filepath.Join(spec.Root, process.TaskDir))
	view.env = append(slices.Clip(view.env), fmt.Sprint("ZORILLA_TASK_ID=", id), fmt.Sprint("ZORILLA_TASK_COUNT=", t.numbers.Count()))
	if t.lines != nil {
		if id < 1 || id > len(t.lines) {
			return fmt.Errorf("line %d of tasks: there are %d lines", id, len(t.lines))
		}
		line := strings.TrimSuffix(t.lines[id-1], "\r")
		view.Args, view.env = process.FillIn(view.Args, line), append(view.env, "ZORILLA_TASK_LINE="+line)
	}
	t.s.mu.Lock()
	t.now = run
	r := process.TaskResult{Place: place, Stdout: t.s.out[0].written(), Stderr: t.s.out[1].written()}
	t.s.mu.Unlock()
	begin := time.Now()
	exit, said := process.Refused(work.NotFound, spec.Args[0]+": no such program"), ""
	if program != nil {
		run.start(program, view)
		<-run.killed
		exit = run.life.Exit()
	}
	r.Code, r.Took = exit.Code, time.Since(begin)
	switch exit.Cause {
	case work.NotFound:
		said = fmt.Sprintf("zorilla: %s\n", exit.Detail)
	case work.Walltime, work.Memory, work.Disk, work.Output:
		said = fmt.Sprintf("zorilla: task %d %s\n", id, exit.Detail)
	}
	if t.s.main.ctx.Err() != nil {
		return nil
	}
	return t.record(r, said)
}

// fill makes the directories that a task finds: empty, but for its inputs.
func (t *tasks) fill() error {
	for _, name := range []string{process.TaskDir, tmpDir} {
		dir := filepath.Join(t.s.spec.Root, name)
		if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o755)); err != nil {
			return err
		}
	}
	for _, e := range t.made.Entries {
		if err := os.Symlink(e.Link, filepath.Join(t.s.spec.Root, process.TaskDir, e.Path)); err != nil {
			return err
		}
	}
	return nil
}

// record puts a line of the supervisor and the files of a task behind what it
// wrote, and keeps its result, in which Stdout and Stderr are where that begins.
func (t *tasks) record(r process.TaskResult, said string) error {
	errs := writer{t.s.main, work.Stderr}
	if _, err := errs.Write([]byte(said)); err != nil {
		return nil // the worker ends
	}
	stdout, stderr := t.s.written()
	r.Stdout, r.Stderr = stdout-r.Stdout, stderr-r.Stderr
	if globs := t.s.spec.Tasks.Outputs; len(globs) > 0 {
		pack, _, err := transfer.Gather(context.Background(), filepath.Join(t.s.spec.Root, process.TaskDir), globs, &t.made)
		if err != nil {
			return err
		}
		defer pack.Close()
		if !pack.Empty() && pack.Write(bufio.NewWriter(errs)) != nil {
			return nil
		}
		_, after := t.s.written()
		r.Files = after - stderr
	}
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	t.results = append(t.results, r)
	t.s.moved()
	return nil
}

func (s *supervisor) written() (stdout, stderr int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out[0].written(), s.out[1].written()
}

// feed is a process.TaskFeed.
type feed struct{ w *worker }

// Tasks implements process.Worker.
func (w *worker) Tasks() process.TaskFeed {
	if w.s.tasks == nil {
		return nil
	}
	return feed{w}
}

// Add implements process.TaskFeed.
func (f feed) Add(before int, ranges []process.TaskRange, last bool) {
	t := f.w.s.tasks
	f.w.tell(func(*process.Life, time.Time) {
		t.queue.Add(before, ranges, last)
		t.s.moved()
	})
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// Counts implements process.TaskFeed.
func (f feed) Counts() (added, ended int) {
	f.w.s.mu.Lock()
	defer f.w.s.mu.Unlock()
	return f.w.s.tasks.queue.Added(), len(f.w.s.tasks.results)
}

// Results implements process.TaskFeed.
func (f feed) Results(from, limit int) ([]process.TaskResult, error) {
	f.w.s.mu.Lock()
	defer f.w.s.mu.Unlock()
	all := f.w.s.tasks.results
	n := min(len(all)-from, limit)
	switch {
	case f.w.closed:
		return nil, os.ErrClosed
	case from < 0 || n <= 0:
		return nil, nil
	}
	return slices.Clone(all[from : from+n]), nil
}
