package launch

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"zorilla/internal/fdpass"
	"zorilla/jobs/cgroup"
	"zorilla/jobs/proc"
)

// Use is what a command and what it started have used so far.
type Use struct {
	CPU  float64 `json:"cpu,omitempty"`  // seconds, of processes that have ended
	Peak int64   `json:"peak,omitempty"` // bytes: the highest sum that was seen, or the largest process

	// Read and Written are bytes of files from and to disks, of processes that have ended: what
	// was in memory already is not read, and what is written counts when it is.
	Read    int64 `json:"read,omitempty"`
	Written int64 `json:"written,omitempty"`
}

// Add counts what another command has used that ran after the first.
func (u *Use) Add(other Use) {
	u.CPU, u.Peak = u.CPU+other.CPU, max(u.Peak, other.Peak)
	u.Read, u.Written = u.Read+other.Read, u.Written+other.Written
}

// Observer is told what becomes of a command. Its methods are called one at a time,
// and hold up those of the launcher's other commands.
type Observer interface {
	// Started: the command of Begin without a serial number runs, and this is its
	// process number.
	Started(pid int)
	// Exited: the main process has ended; alone, nothing else is left.
	Exited(status syscall.WaitStatus, alone bool, use Use)
	// Gone: after Exited without alone, when nothing is left.
	Gone(use Use)
	// Exceeded: the command of that serial number needs more memory than it may.
	Exceeded(serial int)
	// Refused: the command of Begin could not be run; no other method is called after
	// it. An *Error says whose fault that was.
	Refused(err error)
	// Lost: the launcher has ended, which ends the command, and nothing is left. It
	// is called at most once, and no other method after it.
	Lost(err error)
}

// Launcher is a supervisor's end of a launcher process. Its methods may be called
// from any goroutine.
type Launcher struct {
	world World
	conn  *net.UnixConn
	pid   int
	done  chan struct{} // closed when the process has ended

	mu        sync.Mutex // guards what follows, and writing
	observers map[int]Observer
	answers   map[int]chan report
	sidecars  sidecars
	closed    bool
	way       cgroup.Way // the latest that the launcher knows; "" = none
}

// Ended reports whether the launcher has ended, or is about to.
func (l *Launcher) Ended() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// PID returns the launcher's process number.
func (l *Launcher) PID() int { return l.pid }

// Run starts a command with three descriptors under a number, from 1, that none has
// that runs, and returns when it runs, with its process number, which with namespaces
// is one of theirs. What becomes of it is told to o from then on. An *Error says whose
// fault it was that nothing runs.
func (l *Launcher) Run(number int, c Command, files [3]*os.File, o Observer) (pid int, err error) {
	answer := make(chan report, 1)
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return 0, errLost
	}
	l.observers[number], l.answers[number] = o, answer
	c.head = head{Op: opRun, Number: number}
	err = fdpass.Send(l.conn, &c, files[:]...)
	l.mu.Unlock()
	runtime.KeepAlive(files)
	var r report
	if err == nil {
		r = <-answer
	} else {
		r = report{Op: opRefused, Cause: Failed, Text: err.Error()}
	}
	if r.Op == opStarted && number > 0 {
		return r.PID, nil
	}
	l.mu.Lock()
	delete(l.observers, number)
	l.mu.Unlock()
	if r.Op == opStarted {
		return 0, nil
	}
	return 0, &Error{r.Cause, r.Text}
}

// Ready returns when the launcher has built its world, or why it cannot. The number,
// from 1, is one that nobody else asks with meanwhile.
func (l *Launcher) Ready(number int) error {
	_, err := l.Run(-number, Command{}, [3]*os.File{os.Stderr, os.Stderr, os.Stderr}, nil)
	return err
}

var errLost = errors.New("the launcher ended unexpectedly")

// Begin starts a command as Run does, but does not wait: that it runs, unless it has a
// serial number, or could not be run is told to o, too. Signal and Kill are heeded from
// then on.
// More descriptors, up to maxExtra, follow the first three.
func (l *Launcher) Begin(number int, c Command, files [3]*os.File, o Observer, extra ...*os.File) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return errLost
	}
	l.observers[number] = o
	c.head = head{Op: opRun, Number: number}
	err := fdpass.Send(l.conn, &c, append(files[:], extra...)...)
	runtime.KeepAlive(files)
	if err != nil {
		delete(l.observers, number)
	}
	return err
}

// Signal sends a signal to all processes of a command, and wakes those that are
// stopped.
func (l *Launcher) Signal(number int, sig unix.Signal) {
	l.ask(head{Op: opSignal, Number: number, Signal: int(sig)})
}

// Hint sends a signal to the processes of a command that handle it: others, which have
// not got so far, would be ended by it.
func (l *Launcher) Hint(number int, sig unix.Signal) {
	l.ask(head{Op: opHint, Number: number, Signal: int(sig)})
}

// Kill kills all of a command until nothing is left.
func (l *Launcher) Kill(number int) { l.ask(head{Op: opKill, Number: number}) }

// Release takes the directories of a number's commands away from those that still run.
func (l *Launcher) Release(number int, c Command) {
	c.head = head{Op: opRelease, Number: number}
	l.ask(&c)
}

// Join has all commands of a number start in a control group.
func (l *Launcher) Join(number int, g *cgroup.Group) error {
	files, err := g.JoinFiles()
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if way := g.Way(); way != l.way {
		back, err := way.Files()
		if err == nil {
			err = l.give(head{Op: opWay}, back)
		}
		if err != nil {
			closeAll(files)
			return err
		}
		l.way = way
	}
	return l.give(head{Op: opJoin, Number: number}, files)
}

// give sends files, and closes them. mu is held.
func (l *Launcher) give(what head, files []*os.File) error {
	defer closeAll(files)
	return fdpass.Send(l.conn, what, files...)
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// ask sends a World, a Command, or the head of one.
func (l *Launcher) ask(what any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = fdpass.Send(l.conn, what) // who has ended is seen by follow
}

// Close ends the launcher and all that runs, and returns when nothing is left.
// Observers hear no more.
func (l *Launcher) Close() {
	l.mu.Lock()
	clear(l.observers)
	l.closed = true
	l.mu.Unlock()
	_ = l.conn.Close()
	<-l.done
}

// Abandon ends the launcher and all that runs, as if it had ended by itself: it does
// not do what it is asked for.
func (l *Launcher) Abandon() { _ = l.conn.Close() }

// follow passes reports on until the launcher's end.
func (l *Launcher) follow(cmd *exec.Cmd) {
	for {
		var r report
		if _, err := fdpass.Receive(l.conn, &r); err != nil {
			break
		}
		l.pass(&r)
	}
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	if l.world.Namespaces {
		_ = cmd.Process.Kill() // and with it everything
	} else { // it ends everything, and itself
		late := time.AfterFunc(endWithin, func() { _ = cmd.Process.Kill() })
		defer late.Stop()
	}
	_ = cmd.Wait()
	if !l.world.Namespaces {
		bury()
	}
	l.mu.Lock()
	lost, waiting := l.observers, l.answers
	l.observers, l.answers = nil, nil
	l.sidecars.lost()
	l.mu.Unlock()
	close(l.done)
	for n, c := range waiting {
		c <- report{Op: opRefused, Cause: Failed, Text: errLost.Error()}
		delete(lost, n)
	}
	for _, o := range lost {
		o.Lost(fmt.Errorf("%w (%v)", errLost, cmd.ProcessState))
	}
}

func (l *Launcher) pass(r *report) {
	l.mu.Lock()
	if r.Sidecar > 0 {
		l.sidecars.end(r)
		l.mu.Unlock()
		return
	}
	if r.Op == opStarted || r.Op == opRefused {
		c, o := l.answers[r.Number], l.observers[r.Number]
		delete(l.answers, r.Number)
		if c == nil && r.Op == opRefused {
			delete(l.observers, r.Number)
		}
		l.mu.Unlock()
		switch {
		case c != nil:
			c <- *r
		case o == nil:
		case r.Op == opStarted:
			o.Started(r.PID)
		default:
			o.Refused(&Error{r.Cause, r.Text})
		}
		return
	}
	o := l.observers[r.Number]
	if r.Op == opGone || r.Op == opExited && r.Alone {
		delete(l.observers, r.Number)
	}
	l.mu.Unlock()
	if o == nil {
		return
	}
	switch r.Op {
	case opExited:
		o.Exited(syscall.WaitStatus(r.Status), r.Alone, r.Use)
	case opGone:
		o.Gone(r.Use)
	case opExceeded:
		o.Exceeded(r.Serial)
	}
}

// bury kills all that is below this process, and returns when nothing is left.
func bury() {
	for {
		switch _, err := syscall.Wait4(-1, nil, syscall.WNOHANG|unix.WALL, nil); {
		case err == syscall.ECHILD:
			return
		case err == nil:
			for _, pid := range proc.Descendants(os.Getpid()) {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
			time.Sleep(time.Millisecond)
		}
	}
}

// Try reports whether a world can be made here, by making it and having it run a
// command, in a group unless that is nil.
func Try(w World, c Command, group *cgroup.Group, files [3]*os.File, env []string) error {
	l, err := Start(w, env)
	if err != nil {
		return err
	}
	defer l.Close()
	if group != nil {
		if err := l.Join(1, group); err != nil {
			return err
		}
	}
	ended := make(tried, 1)
	if _, err := l.Run(1, c, files, ended); err != nil {
		return err
	}
	return <-ended
}

// tried is the observer of a trial.
type tried chan error

func (t tried) Exited(status syscall.WaitStatus, _ bool, _ Use) {
	if status != 0 {
		t <- fmt.Errorf("a trial ended with %d", status)
		return
	}
	t <- nil
}
func (t tried) Started(int)    {}
func (t tried) Gone(Use)       {}
func (t tried) Exceeded(int)   {}
func (t tried) Refused(error)  {}
func (t tried) Lost(err error) { t <- err }
