package process

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"zorilla/jobs/launch"
	"zorilla/jobs/work"
)

// tasks runs the commands of an array, one after the other, by the launcher, so that
// a task costs little more than its fork and exec.
type tasks struct {
	s       *keeper
	numbers work.TaskNumbers
	lines   *lineFile // nil without lines
	results *os.File
	files   [3]*os.File
	dir     *taskDir
	pack    *bufio.Writer // of files, into the stream of standard error
	events  chan taskEnd
	wrote   [2]int64 // by tasks that have ended
	hints   int      // what tasks did not find, told
	left    leftovers
	wake    chan struct{}

	mu      sync.Mutex // guards what follows; held while a task is forked
	queue   *TaskQueue
	ended   int
	halted  bool // no more tasks begin
	serial  int  // of the latest task
	runs    bool // that one
	killed  int  // code of the task that runs and is being ended; 0 = none
	message string
}

// taskEnd is what a launcher tells of a task's end.
type taskEnd struct {
	status syscall.WaitStatus
	gone   bool // nothing of the task is left
	use    launch.Use
	err    error // it did not begin, or nobody knows
}

// newTasks takes what tasks need from Root. The caller is not confined.
func newTasks(s *keeper, files [3]*os.File) (*tasks, error) {
	t := &tasks{s: s, numbers: work.NumberTasks(s.spec.Tasks.IDs), files: files, wake: make(chan struct{}, 1), events: make(chan taskEnd, 4)}
	t.queue = NewTaskQueue(t.numbers.Count())
	root := s.spec.Root
	var err error
	if name := s.spec.Tasks.Lines; name != "" {
		path := filepath.Join(root, linesFile)
		if err := os.Rename(filepath.Join(root, workDir, name), path); err != nil {
			return nil, fmt.Errorf("lines of tasks: %w", err)
		}
		if t.lines, err = openLines(path); err != nil {
			return nil, fmt.Errorf("lines of tasks: %w", err)
		}
	}
	if t.dir, err = newTaskDir(&s.spec); err != nil {
		return nil, err
	}
	t.pack = bufio.NewWriterSize(packer{t}, packSize)
	s.written.over = t.overflowed
	t.results, err = os.OpenFile(filepath.Join(root, tasksFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("results of tasks: %w", err)
	}
	return t, nil
}

// add appends tasks that are new.
func (t *tasks) add(before int, ranges []TaskRange, last bool) {
	t.mu.Lock()
	t.queue.Add(before, ranges, last)
	t.mu.Unlock()
	t.poke()
	t.s.control.progress()
}

// endedSoFar returns how many tasks have a result; t may be nil.
func (t *tasks) endedSoFar() int {
	if t == nil {
		return 0
	}
	_, ended := t.counts()
	return ended
}

func (t *tasks) poke() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// counts returns how many tasks came and how many have ended.
func (t *tasks) counts() (added, ended int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.queue.Added(), t.ended
}

// halt lets no further task begin. One that is ended after that has no result.
func (t *tasks) halt() {
	t.mu.Lock()
	t.halted = true
	t.mu.Unlock()
	t.poke()
}

// end ends the task that runs, whose code is to be told with a message.
func (t *tasks) end(serial, code int, message string, sig unix.Signal) {
	t.mu.Lock()
	defer t.mu.Unlock() // no other task begins meanwhile
	if t.serial != serial || !t.runs {
		return
	}
	if t.killed == 0 {
		t.killed, t.message = code, message
	}
	if sig == unix.SIGKILL {
		t.s.world.launcher.Kill(t.s.number)
	} else {
		t.s.world.launcher.Signal(t.s.number, sig)
	}
}

// hint sends a signal to the processes of a task that handle it.
func (t *tasks) hint(serial int, sig unix.Signal) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.serial == serial && t.runs && t.killed == 0 {
		t.s.world.launcher.Hint(t.s.number, sig)
	}
}

// Started implements launch.Observer: of tasks it is not told.
func (t *tasks) Started(int) {}

// Exited implements launch.Observer.
func (t *tasks) Exited(status syscall.WaitStatus, alone bool, use launch.Use) {
	t.events <- taskEnd{status: status, gone: alone, use: use}
}

// Gone implements launch.Observer.
func (t *tasks) Gone(use launch.Use) { t.events <- taskEnd{gone: true, use: use} }

// Exceeded implements launch.Observer.
func (t *tasks) Exceeded(serial int) { // aside: who holds mu may await the launcher
	go t.end(serial, codeKilled, overMemory(t.s.spec.Memory), unix.SIGKILL)
}

// overfilled says that the files of a task take more than they may.
func (t *tasks) overfilled(serial int) {
	t.end(serial, codeKilled, overDisk(t.s.spec.Disk), unix.SIGKILL)
}

// current is the latest task.
func (t *tasks) current() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.serial
}

// starved ends the task that runs: the kernel has killed one of its processes, because
// of its own limit or not.
func (t *tasks) starved(own bool) {
	t.mu.Lock()
	serial := t.serial
	t.mu.Unlock()
	t.end(serial, codeKilled, t.whyStarved(own), unix.SIGKILL)
}

func (t *tasks) whyStarved(own bool) string {
	if own {
		return overMemory(t.s.spec.Memory)
	}
	return noMemory
}

// Refused implements launch.Observer.
func (t *tasks) Refused(err error) { t.events <- taskEnd{gone: true, err: err} }

// Lost implements launch.Observer.
func (t *tasks) Lost(err error) { t.events <- taskEnd{gone: true, err: err} }

// run runs tasks until there are no more.
func (t *tasks) run() {
	for {
		place, ok := t.next()
		if !ok {
			break
		}
		if err := t.do(place); t.stopped() {
			break
		} else if err != nil {
			t.s.post(func(time.Time) { t.s.life.Fail(err) })
			break
		}
	}
	t.s.post(func(time.Time) { t.s.life.Finished() })
}

// next waits for a task to begin. There is none after the last, or when the
// worker ends.
func (t *tasks) next() (place int, ok bool) {
	for {
		t.mu.Lock()
		over := t.halted
		if !over {
			place, ok, over = t.queue.Next()
		}
		t.mu.Unlock()
		if ok || over {
			return place, ok
		}
		<-t.wake
	}
}

// do runs one task to its end, takes its files along and writes down how it
// ended.
func (t *tasks) do(place int) error {
	begin := time.Now()
	args, env, err := t.command(place)
	if err == nil {
		err = t.dir.fill()
	}
	if err != nil {
		return err
	}
	serial, halted, err := t.fork(args, env)
	if halted {
		return nil
	}
	code := 0
	if err == nil {
		code, err = t.await(serial)
	}
	over, lost := t.finishOutput()
	if lost != nil {
		return lost
	}
	if err != nil {
		e := verdict(err)
		if code = e.Code; e.Cause == work.Failed {
			return err
		}
		t.say(e.Detail)
	}
	t.mu.Lock()
	t.runs = false
	if over && t.killed == 0 {
		t.killed, t.message = codeKilled, OverOutput(t.s.spec.MaxOutput)
	}
	halted, killed, message := t.halted, t.killed, t.message
	t.mu.Unlock()
	if halted {
		return nil
	}
	id := t.numbers.ID(place)
	if killed != 0 {
		code = killed
		t.say(fmt.Sprintf("task %d %s", id, message))
	} else if err == nil && code != 0 && time.Since(begin) < soon {
		t.explain(id, code, args)
	}
	r := TaskResult{Place: place, Code: code, Took: time.Since(begin)}
	files := t.gather(id, &r)
	if files != nil {
		defer files.Close()
	}
	if err := t.record(r, files); err != nil {
		return err
	}
	if err := t.dir.clear(); err != nil {
		return err
	}
	// Nobody may get ever further ahead of who takes the output away.
	t.awaitRoom()
	return nil
}

// await waits for a task's end, and ends what it leaves behind, unless the worker is
// ended politely: then the supervisor's loop does in time.
func (t *tasks) await(serial int) (code int, err error) {
	if limit := t.s.spec.Walltime; limit > 0 {
		why := overTime(limit, t.s.spec.Rank.Lent)
		soft := time.AfterFunc(limit, func() { t.end(serial, codeTimeout, why, unix.SIGTERM) })
		hard := time.AfterFunc(limit+t.s.spec.terms.Grace, func() { t.end(serial, codeTimeout, why, unix.SIGKILL) })
		defer soft.Stop()
		defer hard.Stop()
		if r := &t.s.spec.Rank; r.Signal > 0 && r.Notice < limit {
			notice := time.AfterFunc(limit-r.Notice, func() { t.hint(serial, unix.Signal(r.Signal)) })
			defer notice.Stop()
		}
	}
	e := <-t.events
	status := e.status
	why := ""
	if starved, own := t.s.starved(); starved {
		why = t.whyStarved(own)
	} else if status != 0 && t.s.overfull() {
		why = overDisk(t.s.spec.Disk)
	}
	t.mu.Lock()
	if why != "" && t.killed == 0 {
		t.killed, t.message = codeKilled, why
	}
	t.mu.Unlock()
	if !e.gone {
		t.mu.Lock()
		if !t.halted {
			t.s.world.launcher.Kill(t.s.number)
		}
		t.mu.Unlock()
		e = <-t.events
	}
	t.s.using.Lock()
	t.s.used.Add(e.use)
	t.s.using.Unlock()
	if e.err != nil {
		return 0, e.err
	}
	if status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return status.ExitStatus(), nil
}

// say writes a line of the supervisor's own to the task's standard error.
func (t *tasks) say(text string) {
	_, _ = t.files[2].WriteString("zorilla: " + text + "\n")
}

func (t *tasks) stopped() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.halted
}

// command returns the arguments and the environment of a task.
func (t *tasks) command(place int) (args, env []string, err error) {
	spec, id := &t.s.spec, t.numbers.ID(place)
	args = spec.Args
	env = append(slices.Clip(spec.Env), "ZORILLA_TASK_ID="+strconv.Itoa(id), "ZORILLA_TASK_COUNT="+strconv.Itoa(t.numbers.Count()))
	if t.lines == nil {
		return args, env, nil
	}
	line, err := t.lines.line(id)
	if err != nil {
		return nil, nil, fmt.Errorf("line %d of tasks: %w", id, err)
	}
	return FillIn(args, line), append(env, TaskLine+"="+line), nil
}

// fork starts a task, unless no more may begin.
func (t *tasks) fork(args, env []string) (serial int, halted bool, err error) {
	c := t.s.commandOf(args, env)
	c.Fresh = true
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.halted {
		return 0, true, nil
	}
	t.killed, t.message = 0, ""
	t.serial++
	c.Serial = t.serial
	t.s.written.begin(t.serial)
	err = t.s.world.launcher.Begin(t.s.number, c, t.files, t)
	t.runs = err == nil
	return t.serial, false, err
}
