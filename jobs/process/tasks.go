package process

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"zorilla/jobs/sandbox"
)

// tasks runs the commands of an array in the supervisor: one thread, confined
// once, forks and awaits one task after the other, so that a task costs little
// more than its fork and exec.
type tasks struct {
	s       *supervisor
	numbers TaskNumbers
	lines   *lineFile // nil without lines
	results *os.File
	files   [3]*os.File
	dir     *taskDir
	pack    *bufio.Writer // of files, into the stream of standard error
	path    string        // of the command, once it was found
	oom     *os.File      // nil if the kernel does not let us choose
	calm    []byte        // what stands there for the supervisor itself
	wrote   [2]int64      // by tasks that have ended
	wake    chan struct{}

	mu      sync.Mutex // guards what follows; held while a task is forked
	queue   *TaskQueue
	ended   int
	halted  bool // no more tasks begin
	pid     int  // of the task that runs; 0 = none
	killed  int  // code of the task that runs and is being ended; 0 = none
	message string
}

// sweepEvery is how often processes that outlive their task are looked for.
const sweepEvery = time.Millisecond

// newTasks takes what tasks need from Root. The caller is not confined.
func newTasks(s *supervisor, files [3]*os.File) (*tasks, error) {
	t := &tasks{s: s, numbers: NumberTasks(s.order.Spec.Tasks.IDs), files: files, wake: make(chan struct{}, 1)}
	t.queue = NewTaskQueue(t.numbers.Count())
	root := s.order.Spec.Root
	var err error
	if name := s.order.Spec.Tasks.Lines; name != "" {
		path := filepath.Join(root, linesFile)
		if err := os.Rename(filepath.Join(root, workDir, name), path); err != nil {
			return nil, fmt.Errorf("lines of tasks: %w", err)
		}
		if t.lines, err = openLines(path); err != nil {
			return nil, fmt.Errorf("lines of tasks: %w", err)
		}
	}
	if t.dir, err = newTaskDir(&s.order.Spec); err != nil {
		return nil, err
	}
	t.pack = bufio.NewWriterSize(packer{t}, packSize)
	for _, st := range s.streams { // the confined thread could not
		if err := st.open(); err != nil {
			return nil, err
		}
	}
	t.results, err = os.OpenFile(filepath.Join(root, tasksFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("results of tasks: %w", err)
	}
	// Opened before the thread is confined: tasks are the first choice of a
	// machine that runs out of memory, see volunteer.
	if t.oom, err = os.OpenFile("/proc/self/oom_score_adj", os.O_RDWR, 0); err == nil {
		t.calm = make([]byte, 16)
		n, _ := t.oom.ReadAt(t.calm, 0)
		t.calm = t.calm[:n]
	} else {
		t.oom = nil
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
func (t *tasks) end(pid, code int, message string, sig unix.Signal) {
	t.mu.Lock()
	runs := t.pid == pid
	if runs && t.killed == 0 {
		t.killed, t.message = code, message
	}
	t.mu.Unlock()
	if runs {
		signalTree(sig)
	}
}

// exceeded says that some task was seen to use more memory than it may. It looks
// again, in case that one has ended by now and another one runs.
func (t *tasks) exceeded() {
	t.mu.Lock()
	pid := t.pid
	t.mu.Unlock()
	if pid == 0 || proportional(descendants(os.Getpid())) <= t.s.order.Spec.Memory {
		return
	}
	t.end(pid, codeKilled, overMemory(t.s.order.Spec.Memory), unix.SIGKILL)
}

// run confines a thread and runs tasks on it until there are no more. It
// returns at once.
func (t *tasks) run() {
	spec := &t.s.order.Spec
	sandbox.OnOwnThread(func() {
		err := confine(spec, t.dir.access())
		if err != nil {
			t.s.post(func(time.Time) { t.s.life.Fail(err) })
		}
		for err == nil {
			place, ok := t.next()
			if !ok {
				break
			}
			if err = t.do(place); err != nil {
				t.s.post(func(time.Time) { t.s.life.Fail(err) })
			}
		}
		t.sweep()
		t.s.post(func(time.Time) { t.s.life.Finished() })
	})
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
	pid, halted, err := t.fork(args, env)
	if halted {
		return nil
	}
	code := 0
	if err != nil {
		e := verdict(err)
		if code = e.Code; e.Cause == Failed {
			return err
		}
		t.say(e.Detail)
	} else {
		code = t.await(pid)
	}
	t.mu.Lock()
	t.pid = 0
	halted, killed, message := t.halted, t.killed, t.message
	t.mu.Unlock()
	if halted {
		return nil
	}
	id := t.numbers.ID(place)
	if killed != 0 {
		code = killed
		t.say(fmt.Sprintf("task %d %s", id, message))
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

// await waits for a task's end, and ends what it leaves behind.
func (t *tasks) await(pid int) (code int) {
	if limit := t.s.order.Spec.Walltime; limit > 0 {
		why := overTime(limit)
		soft := time.AfterFunc(limit, func() { t.end(pid, codeTimeout, why, unix.SIGTERM) })
		hard := time.AfterFunc(limit+t.s.order.Grace, func() { t.end(pid, codeTimeout, why, unix.SIGKILL) })
		defer soft.Stop()
		defer hard.Stop()
	}
	var status syscall.WaitStatus
	for {
		if _, err := syscall.Wait4(pid, &status, 0, nil); err != syscall.EINTR {
			break
		}
	}
	t.sweep()
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

// sweep returns when this process has no child. It kills what there is, unless
// the worker is ended politely: then the supervisor's loop does in time.
func (t *tasks) sweep() {
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG|unix.WALL, nil)
		switch {
		case err == syscall.EINTR || pid > 0:
			continue
		case err != nil:
			return
		}
		t.mu.Lock()
		halted := t.halted
		t.mu.Unlock()
		if !halted {
			t.s.aside(func() { signalTree(unix.SIGKILL) })
		}
		time.Sleep(sweepEvery)
	}
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
	spec, id := &t.s.order.Spec, t.numbers.ID(place)
	args = spec.Args
	env = append(slices.Clip(spec.Env), "ZORILLA_TASK_ID="+strconv.Itoa(id), "ZORILLA_TASK_COUNT="+strconv.Itoa(t.numbers.Count()))
	if t.lines == nil {
		return args, env, nil
	}
	line, err := t.lines.line(id)
	if err != nil {
		return nil, nil, fmt.Errorf("line %d of tasks: %w", id, err)
	}
	return FillIn(args, line), append(env, "ZORILLA_TASK_LINE="+line), nil
}

// fork starts a task, unless no more may begin.
func (t *tasks) fork(args, env []string) (pid int, halted bool, err error) {
	spec := &t.s.order.Spec
	path := t.path
	if path == "" || args[0] != spec.Args[0] {
		if path, err = lookup(args[0], env); err != nil {
			return 0, false, err
		}
	}
	// From Root/work, where the supervisor is: it may lie where the worker's user
	// could not go from above.
	attr := &syscall.ProcAttr{Env: env, Dir: "../" + TaskDir, Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}}
	for _, f := range t.files {
		attr.Files = append(attr.Files, f.Fd())
	}
	if runsAs(spec) {
		attr.Sys.Credential = &syscall.Credential{Uid: uint32(spec.UID), Gid: uint32(spec.GID)}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.halted {
		return 0, true, nil
	}
	t.killed, t.message = 0, ""
	if t.oom != nil {
		_, _ = t.oom.WriteAt([]byte("500"), 0)
		defer t.oom.WriteAt(t.calm, 0)
	}
	pid, err = syscall.ForkExec(path, args, attr)
	for end := time.Now().Add(busyFor); err == unix.ETXTBSY && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
		pid, err = syscall.ForkExec(path, args, attr)
	}
	if err == nil {
		t.pid = pid
		if args[0] == spec.Args[0] {
			t.path = path
		}
		return pid, false, nil
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		t.s.aside(func() { err = explainExec(args[0], path, errno) })
	}
	return 0, false, err
}

// aside runs f on a thread that is not confined, and waits for it.
func (s *supervisor) aside(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}
