package workertest

import (
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"zorilla/jobs/process"
	"zorilla/jobs/work"
	"zorilla/transfer"
)

// tasks is about workers that run the tasks of arrays.
var tasks = []test{
	{"runs tasks in the order in which they come", testTasks},
	{"passes over wrong ranges of tasks", testTaskRanges},
	{"gives lines to tasks", testTaskLines},
	{"misses a line", testTaskLineMissing},
	{"survives its tasks", testTaskTrouble},
	{"survives tasks that need too much disk space", testTaskDisk},
	{"survives tasks that write too much", testTaskTooMuch},
	{"makes room with all of its tasks", testTasksYield},
	{"does not find the command of tasks", testTaskNotFound},
	{"has no result of a task that is stopped", testTaskStop},
	{"gives each task a new directory, and keeps its files", testTaskFiles},
	{"goes on with tasks without its node", testTaskAdopt},
}

func taskSpec(n int) *process.TaskSpec {
	return &process.TaskSpec{IDs: []work.TaskIDs{{First: 1, Last: n, Step: 1}}}
}

// array is the spec of a program for n tasks.
func (s *suite) array(n int, program string, args ...string) process.Spec {
	s.Helper()
	spec := s.spec(program, args...)
	spec.Tasks = taskSpec(n)
	return spec
}

func (s *suite) awaitEnded(w process.Worker, n int) {
	s.Helper()
	s.follow(w, func() bool { _, ended := w.Tasks().Counts(); return ended >= n })
}

// result is how a task ended, and what it wrote and left.
type result struct {
	place, code           int
	stdout, stderr, files string
}

// wantTasks checks the results of a worker.
func (s *suite) wantTasks(w process.Worker, want ...result) {
	s.Helper()
	_, n := w.Tasks().Counts()
	all, err := w.Tasks().Results(0, n+1)
	if err != nil || len(all) != n || n != len(want) {
		s.Fatalf("%d of %d results, want %d: %v", len(all), n, len(want), err)
	}
	out, errs := s.output(w, work.Stdout), s.output(w, work.Stderr)
	for i, r := range all {
		files := ""
		if r.Files > 0 {
			files = s.unpack(errs[r.Stderr : r.Stderr+r.Files])
		}
		if got := (result{r.Place, r.Code, out[:r.Stdout], errs[:r.Stderr], files}); got != want[i] {
			s.Errorf("result %d is %+v, want %+v", i, got, want[i])
		}
		if r.Took < 0 || r.Took > deadline {
			s.Errorf("result %d took %v", i, r.Took)
		}
		out, errs = out[r.Stdout:], errs[r.Stderr+r.Files:]
	}
	if out != "" || errs != "" {
		s.Errorf("output of no task: %q, %q", out, errs)
	}
}

// unpack lists the files of a task, which must be small.
func (s *suite) unpack(pack string) string {
	s.Helper()
	store := transfer.NewMemStore(1 << 20)
	var all []string
	for r := transfer.NewPackReader(strings.NewReader(pack)); ; {
		e, err := r.Next(store)
		if errors.Is(err, io.EOF) {
			return strings.Join(all, " ")
		}
		if err != nil {
			s.Fatal(err)
		}
		text := ""
		for _, h := range e.Chunks {
			b, err := store.Get(h, nil)
			if err != nil {
				s.Fatal(err)
			}
			text += string(b)
		}
		all = append(all, e.Path+"="+text)
	}
}

func testTasks(s *suite) {
	w := s.start(s.array(5, "task", "0", "1", "255", "0", "0"))
	feed := w.Tasks()
	feed.Add(0, []process.TaskRange{{From: 0, Count: 2}}, false)
	s.awaitEnded(w, 2)
	feed.Add(0, []process.TaskRange{{From: 0, Count: 2}, {From: 4, Count: 1}}, false) // the first two are known
	feed.Add(4, []process.TaskRange{{From: 3, Count: 1}}, true)                       // some are missing before
	s.awaitEnded(w, 3)
	if added, ended := feed.Counts(); added != 3 || ended != 3 {
		s.Errorf("%d of %d have ended", ended, added)
	}
	feed.Add(3, []process.TaskRange{{From: 3, Count: 1}, {From: 2, Count: 1}}, true)
	s.want(w, 0, work.Exited, "")
	s.wantTasks(w,
		result{0, 0, "1 of 5\n", "err 1\n", ""}, result{1, 1, "2 of 5\n", "err 2\n", ""}, result{4, 0, "5 of 5\n", "err 5\n", ""},
		result{3, 0, "4 of 5\n", "err 4\n", ""}, result{2, 255, "3 of 5\n", "err 3\n", ""})
	for _, c := range []struct{ from, limit, want int }{{5, 1, 0}, {99, 1, 0}, {-1, 9, 0}, {0, -1, 0}, {0, 0, 0}, {3, 1, 1}, {3, 9, 2}} {
		if some, err := feed.Results(c.from, c.limit); err != nil || len(some) != c.want {
			s.Errorf("%d results from %d: %d, %v", c.limit, c.from, len(some), err)
		}
	}
	if err := w.Close(); err != nil {
		s.Fatal(err)
	}
	if _, err := feed.Results(0, 1); !errors.Is(err, os.ErrClosed) {
		s.Errorf("results of a closed worker: %v", err)
	}
}

func testTaskRanges(s *suite) {
	w := s.start(s.array(2, "task", "0", "0"))
	for _, r := range []process.TaskRange{{From: -1, Count: 1}, {From: 0, Count: 0}, {From: 1, Count: 2}, {From: 2, Count: 1}, {From: 1 << 30, Count: 1}} {
		w.Tasks().Add(0, []process.TaskRange{r}, true)
	}
	w.Tasks().Add(-1, []process.TaskRange{{From: 0, Count: 1}}, false)
	w.Tasks().Add(0, make([]process.TaskRange, 1000), true)
	w.Tasks().Add(0, []process.TaskRange{{From: 1, Count: 1}}, true)
	s.want(w, 0, work.Exited, "")
	s.wantTasks(w, result{1, 0, "2 of 2\n", "err 2\n", ""})
	none := s.start(s.array(1, "task"))
	none.Tasks().Add(0, nil, true)
	s.want(none, 0, work.Exited, "")
}

func testTaskLines(s *suite) {
	for _, c := range []struct{ args, want []string }{
		{[]string{"ZORILLA_TASK_LINE"}, []string{"ZORILLA_TASK_LINE=A\nA=\n", "ZORILLA_TASK_LINE=a b\na b=\n", "ZORILLA_TASK_LINE=\n=\n"}},
		{[]string{"{}", "x{}x"}, []string{"A=\nxAx=\n", "a b=\nxa bx=\n", "=\nxx=\n"}},
	} {
		spec := s.array(3, "env", c.args...)
		spec.Tasks.Lines = "list"
		s.put(spec, "list", "A\na b\r\n\nd")
		w := s.start(spec)
		w.Tasks().Add(0, []process.TaskRange{{From: 0, Count: 3}}, true)
		s.want(w, 0, work.Exited, "")
		s.wantTasks(w, result{0, 0, c.want[0], "", ""}, result{1, 0, c.want[1], "", ""}, result{2, 0, c.want[2], "", ""})
	}
}

func testTaskLineMissing(s *suite) {
	spec := s.array(2, "env")
	spec.Tasks.Lines = "list"
	s.put(spec, "list", "one\n")
	w := s.start(spec)
	w.Tasks().Add(0, []process.TaskRange{{From: 0, Count: 2}}, true)
	s.want(w, 125, work.Failed, "line 2 of tasks: there are 1 lines")
	s.wantTasks(w, result{0, 0, "one=\n", "", ""})
}

func testTaskTrouble(s *suite) {
	s.configure(deadline, process.DefaultSpool)
	spec := s.array(5, "trouble")
	spec.Memory, spec.Walltime = 200<<20, 2*time.Second
	w := s.start(spec)
	w.Tasks().Add(0, []process.TaskRange{{From: 0, Count: 5}}, true)
	s.want(w, 0, work.Exited, "")
	all, err := w.Tasks().Results(0, 5)
	if err != nil || len(all) != 5 {
		s.Fatalf("%d results, %v", len(all), err)
	}
	stderr := s.output(w, work.Stderr)
	for i, code := range []int{137, 137, 124, 0, 0} {
		if all[i].Place != i || all[i].Code != code {
			s.Errorf("task %d: %+v, want %d", i+1, all[i], code)
		}
	}
	if want := "zorilla: task 2 needed more than 200 MiB of memory (--mem)\nzorilla: task 3 needed more than 2s (-t)\n"; stderr != want {
		s.Errorf("it says %q, want %q", stderr, want)
	}
	if last := s.output(w, work.Stdout); !strings.HasSuffix(last, "fine\n") || all[4].Stdout != 5 {
		s.Errorf("the last task wrote %d bytes: %q", all[4].Stdout, last)
	}
}

func testTasksYield(s *suite) {
	s.configure(deadline, process.DefaultSpool)
	w := s.start(s.array(3, "idle"))
	w.Tasks().Add(0, []process.TaskRange{{From: 0, Count: 3}}, true)
	s.awaitOutput(w, "ready\n")
	w.Yield(2 << 20)
	s.want(w, 137, work.Full, "ended, since the disk of its node was nearly full: its files took 2 MiB")
	if all, err := w.Tasks().Results(0, 3); err != nil || len(all) != 0 {
		s.Errorf("%+v, %v: a task that was interrupted has no result", all, err)
	}
}

func testTaskDisk(s *suite) {
	s.configure(deadline, process.DefaultSpool)
	spec := s.array(2, "filler")
	spec.Disk = 16 << 20
	w := s.start(spec)
	w.Tasks().Add(0, []process.TaskRange{{From: 0, Count: 2}}, true)
	s.want(w, 0, work.Exited, "")
	all, err := w.Tasks().Results(0, 2)
	if err != nil || len(all) != 2 || all[0].Code != 137 || all[1].Code != 0 {
		s.Fatalf("%+v, %v", all, err)
	}
	s.wantOutput(w, "fine\n", "zorilla: task 1 needed more than 16 MiB of disk space (--disk)\n")
}

func testTaskTooMuch(s *suite) {
	s.configure(deadline, process.DefaultSpool)
	spec := s.array(3, "spouter")
	spec.MaxOutput = 12 << 10
	w := s.start(spec)
	w.Tasks().Add(0, []process.TaskRange{{From: 0, Count: 3}}, true)
	s.want(w, 0, work.Exited, "")
	noise := strings.Repeat("noise\n", 2<<10)
	s.wantTasks(w, result{0, 137, noise, "zorilla: task 1 " + tooMuch + "\n", ""}, result{1, 0, noise, "", ""},
		result{2, 137, noise, "zorilla: task 3 " + tooMuch + "\n", ""})
}

func testTaskNotFound(s *suite) {
	spec := s.array(2, "task")
	spec.Args = []string{"surely-not-there"}
	w := s.start(spec)
	w.Tasks().Add(0, []process.TaskRange{{From: 0, Count: 2}}, true)
	s.want(w, 0, work.Exited, "")
	all, err := w.Tasks().Results(0, 2)
	if err != nil || len(all) != 2 || all[0].Code != 127 || all[1].Code != 127 || all[0].Stderr != all[1].Stderr {
		s.Fatalf("%+v, %v", all, err)
	}
	if text := s.output(w, work.Stderr); !strings.HasPrefix(text, "zorilla: surely-not-there: ") || int64(len(text)) != 2*all[0].Stderr {
		s.Errorf("it says %q", text)
	}
}

func testTaskStop(s *suite) {
	for _, grace := range []time.Duration{0, deadline} {
		w := s.start(s.array(9, "idle"))
		w.Tasks().Add(0, []process.TaskRange{{From: 0, Count: 9}}, true)
		s.awaitOutput(w, "ready\n")
		w.Stop(0, grace)
		s.want(w, 143, work.Stopped, "stopped")
		if added, ended := w.Tasks().Counts(); added != 9 || ended != 0 {
			s.Errorf("%d of %d have ended", ended, added)
		}
	}
	w := s.start(s.array(1, "idle")) // of which none came
	w.Stop(0, deadline)
	s.want(w, 143, work.Stopped, "stopped")
}

func testTaskFiles(s *suite) {
	spec := s.array(2, "leaver", "input")
	spec.Tasks.Outputs = []string{"*"}
	s.put(spec, "input", "data")
	w := s.start(spec)
	w.Tasks().Add(0, []process.TaskRange{{From: 0, Count: 2}}, true)
	s.want(w, 0, work.Exited, "")
	s.wantTasks(w, result{0, 0, "input+0: data\n", "left 1\n", "out=of 1"}, result{1, 0, "input+0: data\n", "left 2\n", "out=of 2"})
	spec = s.array(1, "leaver", "input") // without outputs it is the same
	s.put(spec, "input", "data")
	w = s.start(spec)
	w.Tasks().Add(0, []process.TaskRange{{From: 0, Count: 1}}, true)
	s.want(w, 0, work.Exited, "")
	s.wantTasks(w, result{0, 0, "input+0: data\n", "left 1\n", ""})
}

func testTaskAdopt(s *suite) {
	spec := s.array(3, "listen")
	w := s.start(spec)
	w.Tasks().Add(0, []process.TaskRange{{From: 0, Count: 2}}, false)
	s.awaitOutput(w, "ready\n")
	w.Signal(10)
	s.awaitEnded(w, 1)
	s.awaitOutput(w, "ready\ntold 10\nready\n")
	w.Leave()
	w = s.adopt(spec)
	w.Tasks().Add(2, []process.TaskRange{{From: 2, Count: 1}}, true)
	w.Signal(10)
	s.awaitOutput(w, "ready\ntold 10\nready\ntold 10\nready\n")
	w.Signal(10)
	s.want(w, 0, work.Exited, "")
	w = s.adopt(spec)
	s.wantTasks(w, result{0, 4, "ready\ntold 10\n", "", ""}, result{1, 4, "ready\ntold 10\n", "", ""}, result{2, 4, "ready\ntold 10\n", "", ""})
}
