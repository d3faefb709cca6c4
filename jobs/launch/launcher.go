package launch

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"zorilla/internal/fdpass"
	"zorilla/jobs/cgroup"
	"zorilla/jobs/proc"
	"zorilla/jobs/sandbox"
)

const (
	// Name is the first argument of a launcher, as ps shows it; the other is the base
	// of its world.
	Name     = "zorilla-launcher"
	socketFD = 3
	// huntEvery is how often processes that shall die are looked for, at most.
	huntEvery = 10 * time.Millisecond
)

// launcher is the state of a launcher process.
type launcher struct {
	conn    *fdpass.Blocking
	world   World
	broken  error // why nothing can be run
	outside *sandbox.Outside
	inside  *sandbox.Inside
	brought map[int][]string       // directories of commands, by their number
	joiners map[int]*cgroup.Joiner // by the number of commands
	way     []int                  // from the groups that they lead into
	forker  forker
	newest  int // a descriptor of the latest command, whose end the serving thread awaits; -1 = of none

	writing sync.Mutex // of reports

	mu       sync.Mutex // guards what follows
	runs     map[int]*run
	sidecars map[int]*sidecar
	reaps    bool // a goroutine awaits children
	watch    bool // a goroutine watches memory
}

// run is a command that runs, or of which something is left.
type run struct {
	number int
	pid    int
	uts    string // the namespace of its processes; "" = they cannot be told by it
	pin    int    // a descriptor of that; 0 = none
	memory int64
	serial int
	ended  bool // the main process
	killed bool // a goroutine hunts what is left
	told   bool // that it needs too much memory
	used   Use
}

// unpin gives the number of the command's namespace back.
func (w *run) unpin() {
	if w.pin > 0 {
		_ = unix.Close(w.pin)
	}
}

// Main is a launcher's whole life.
func Main() error {
	if err := proc.Guard(); err != nil {
		return err
	}
	conn, err := fdpass.Block(os.NewFile(socketFD, "supervisor"))
	if err != nil {
		return err
	}
	l := &launcher{conn: conn, newest: -1, runs: map[int]*run{}, sidecars: map[int]*sidecar{}, brought: map[int][]string{}, joiners: map[int]*cgroup.Joiner{}}
	switch _, err := l.conn.Receive(&l.world); {
	case errors.Is(err, io.EOF): // nobody needed it
		return nil
	case err != nil:
		return fmt.Errorf("launcher: no world: %w", err)
	}
	l.broken = l.build()
	done := make(chan struct{})
	sandbox.OnOwnThread(func() {
		l.serve()
		close(done)
	})
	<-done
	if !l.world.Namespaces { // else the kernel does
		l.endAll()
	}
	return nil
}

// serve obeys until nobody asks any more, on the one thread that starts commands: what
// it is confined to holds for them, and for no other thread. That it reads, too, saves
// each command two switches of threads.
func (l *launcher) serve() {
	proc.Hurry()
	for {
		l.attend()
		var c Command
		fds, err := l.conn.Receive(&c)
		if err != nil {
			l.mu.Lock()
			l.seeTo()
			l.mu.Unlock()
			return
		}
		if l.obey(&c, fds) {
			continue
		}
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
	}
}

// aside runs f on a thread that is not confined, and waits for it.
func aside(f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	return <-done
}

// build makes the world.
func (l *launcher) build() error {
	if err := closeOnExec(); err != nil {
		return err
	}
	if err := limits(&l.world); err != nil {
		return err
	}
	if !l.world.Namespaces {
		if l.world.Alone {
			return errors.New("no namespaces, without which there is no network apart")
		}
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return fmt.Errorf("become subreaper: %w", err)
		}
		return nil
	}
	if os.Getpid() != 1 {
		return errors.New("no PID namespace")
	}
	if err := deafen(); err != nil {
		return err
	}
	if l.world.Alone {
		if err := loopback(); err != nil {
			return fmt.Errorf("loopback interface: %w", err)
		}
	}
	// A network of its own would give a worker powers over the kernel's packet filters.
	_ = os.WriteFile("/proc/sys/user/max_net_namespaces", []byte("0"), 0)
	var err error
	if l.outside, err = sandbox.NewOutside(); err != nil {
		return fmt.Errorf("mount namespace: %w", err)
	}
	root := sandbox.Root{
		Base: l.world.at(), Expose: l.world.Expose, Writable: l.world.Writable, Devices: l.world.Devices, Hide: append([]string{l.world.Base}, l.world.Hide...),
		UID: os.Geteuid(), GID: os.Getegid(),
	}
	if l.world.UID > 0 && root.UID == 0 {
		root.UID, root.GID = l.world.UID, l.world.GID
	}
	l.inside, err = root.Enter()
	l.forker.inside = l.inside
	return err
}

// loopback switches the only interface of a new network namespace on.
func loopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
}

// limits bounds what every process of the commands inherits.
func limits(w *World) error {
	if err := syscall.Setrlimit(unix.RLIMIT_CORE, &syscall.Rlimit{}); err != nil {
		return fmt.Errorf("forbid core dumps: %w", err)
	}
	// As many files as parallel programs use; few enough for those that close all.
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err == nil {
		files.Cur = min(files.Max, openFiles)
		_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &files)
	}
	proc.Warm(ownThreads) // before the commands can have used up all there are
	if w.Processes > 0 {
		var now syscall.Rlimit
		if err := syscall.Getrlimit(unix.RLIMIT_NPROC, &now); err == nil {
			n := min(uint64(w.Processes+w.others()), now.Max)
			_ = syscall.Setrlimit(unix.RLIMIT_NPROC, &syscall.Rlimit{Cur: n, Max: n})
		}
	}
	return nil
}

// others is how many processes and threads the user of the commands has that are not theirs.
func (w *World) others() int {
	if !w.Besides {
		return 0
	}
	uid := os.Geteuid()
	if uid == 0 && w.UID > 0 {
		uid = w.UID
	}
	return proc.Threads(uid)
}

// openFiles is the soft limit on descriptors that a command finds, or the node's
// hard limit if that is lower.
const openFiles = 65536

// ownThreads is how many a launcher may need beside those that it begins with.
const ownThreads = 6

// closeOnExec marks all descriptors but the first three: what the node's own parent
// left open must not reach a command.
func closeOnExec() error {
	err := unix.CloseRange(3, 1<<31-1, unix.CLOSE_RANGE_CLOEXEC)
	if err == nil {
		return nil
	}
	entries, err := os.ReadDir("/proc/self/fd") // before Linux 5.11
	if err != nil {
		return err
	}
	for _, e := range entries {
		var fd int
		if _, err := fmt.Sscan(e.Name(), &fd); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}

// obey does what the supervisor asks for, and reports whether it keeps the descriptors.
func (l *launcher) obey(c *Command, fds []int) (keeps bool) {
	if c.Sidecar > 0 {
		l.obeySidecar(c, fds)
		return false
	}
	switch c.Op {
	case opWay:
		l.way = fds // earlier joiners keep theirs
		return true
	case opJoin:
		return l.join(c.Number, fds)
	case opRun:
		l.run(c, fds)
	case opSignal:
		l.signal(c.Number, func(pid int) {
			_ = unix.Kill(pid, unix.Signal(c.Signal))
			_ = unix.Kill(pid, unix.SIGCONT) // what is stopped could not follow
		})
	case opHint:
		l.signal(c.Number, func(pid int) {
			if proc.Heeds(pid, unix.Signal(c.Signal)) {
				_ = unix.Kill(pid, unix.Signal(c.Signal))
			}
		})
	case opKill:
		l.kill(c.Number)
	case opRelease:
		l.release(c)
	}
	return false
}

func (l *launcher) report(r report) {
	l.writing.Lock()
	defer l.writing.Unlock()
	_ = l.conn.Send(r) // nobody is there any more: receive sees that, too
}

// run starts a command.
func (l *launcher) run(c *Command, fds []int) {
	w := &run{number: c.Number, memory: c.Memory, serial: c.Serial}
	err := l.broken
	if err == nil && c.Number < 0 { // it was only asked
		l.report(report{Op: opStarted, Number: c.Number})
		return
	}
	if err == nil && (len(fds) < 3 || len(fds) > 3+maxExtra) {
		err = errors.New("launcher: want a command with three descriptors or a few more")
	}
	if err == nil {
		err = l.start(w, c, fds)
	}
	if err != nil {
		refused := report{Op: opRefused, Number: c.Number, Cause: Failed, Text: err.Error()}
		if e, ok := errors.AsType[*Error](err); ok {
			refused.Cause, refused.Text = e.Cause, e.Text
		}
		l.report(refused)
	}
}

// start starts a command. Only forking itself holds the others up: what the job has a
// say in, as its path, is looked at before and after.
func (l *launcher) start(w *run, c *Command, fds []int) error {
	l.mu.Lock()
	busy := l.runs[w.number] != nil || len(l.runs) > 0 && !l.world.shared()
	l.mu.Unlock()
	if busy {
		return errors.New("launcher: another command runs")
	}
	if err := l.bring(w.number, c); err != nil {
		return err
	}
	l.refresh(c)
	path, err := l.forker.find(&l.world, c)
	if err != nil {
		return err
	}
	if err := l.forker.mark(w, &l.world); err != nil {
		w.unpin()
		return err
	}
	if err := unlessBusy(func() error { return l.fork(w, c, path, fds) }); err != nil {
		w.unpin()
		return l.forker.refused(&l.world, c, err)
	}
	return nil
}

// fork forks a command, so that its end cannot be told before its beginning, and none
// of its processes be found before it is known whose they are.
func (l *launcher) fork(w *run, c *Command, path string, fds []int) (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seeTo()
	if w.pid, err = clone(&l.world, c, path, fds, l.joiners[w.number], &l.newest); err != nil {
		return err
	}
	l.runs[w.number] = w
	if l.newest < 0 {
		l.reapAside()
	}
	if w.memory > 0 && !l.watch {
		l.watch = true
		go l.watchMemory()
	}
	if w.serial == 0 {
		l.report(report{Op: opStarted, Number: w.number, PID: w.pid})
	}
	return nil
}
