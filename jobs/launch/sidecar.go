package launch

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"zorilla/internal/fdpass"
	"zorilla/jobs/proc"
	"zorilla/jobs/session"
)

// Sidecar is a command that runs beside that of a number, as in an exec session: it sees the same, counts with it, and
// ends with it. When its main process ends, what that has started is killed, without
// namespaces but for what has made a session of its own and lost its parent. Its methods
// may be called from any goroutine.
type Sidecar struct {
	l      *Launcher
	id     int
	done   chan struct{}
	status syscall.WaitStatus
	err    error
}

// sidecars are the commands of StartSidecar that have not ended; guarded by Launcher.mu.
type sidecars struct {
	last int
	all  map[int]*Sidecar
}

func (x *sidecars) end(r *report) {
	e := x.all[r.Sidecar]
	if e == nil {
		return
	}
	delete(x.all, r.Sidecar)
	if e.status = syscall.WaitStatus(r.Status); r.Cause != "" {
		e.err = &Error{r.Cause, r.Text}
	}
	close(e.done)
}

func (x *sidecars) lost() {
	for _, e := range x.all {
		e.err = errLost
		close(e.done)
	}
	x.all = nil
}

// StartSidecar starts a command with three descriptors beside that of a number, which was begun, and
// returns before it runs. With Command.Terminal the first descriptor is an end of a pair of
// sockets, over which the other end of the terminal comes, and the others are not used.
func (l *Launcher) StartSidecar(number int, c Command, files [3]*os.File) (*Sidecar, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, errLost
	}
	l.sidecars.last++
	e := &Sidecar{l: l, id: l.sidecars.last, done: make(chan struct{})}
	c.head = head{Op: opSidecar, Number: number, Sidecar: e.id}
	err := fdpass.Send(l.conn, &c, files[:]...)
	runtime.KeepAlive(files)
	if err != nil {
		return nil, err
	}
	if l.sidecars.all == nil {
		l.sidecars.all = map[int]*Sidecar{}
	}
	l.sidecars.all[e.id] = e
	return e, nil
}

// Signal sends a signal to all of it.
func (e *Sidecar) Signal(sig unix.Signal) {
	e.l.ask(head{Op: opSignal, Sidecar: e.id, Signal: int(sig)})
}

// Kill kills all of it until nothing is left.
func (e *Sidecar) Kill() { e.l.ask(head{Op: opKill, Sidecar: e.id}) }

// Done is closed when nothing of it is left.
func (e *Sidecar) Done() <-chan struct{} { return e.done }

// Result returns, after Done, how its main process has ended, or why that is not known: an
// *Error says why it could not be run.
func (e *Sidecar) Result() (syscall.WaitStatus, error) { return e.status, e.err }

// sidecar is a Sidecar in the launcher.
type sidecar struct {
	id     int
	mark   run // whose it is, and what its processes are told by
	pid    int
	ended  bool // the main process
	status syscall.WaitStatus
	hunted bool
}

// obeySidecar does what is asked of a command of StartSidecar.
func (l *launcher) obeySidecar(c *Command, fds []int) {
	if c.Op == opSidecar {
		if err := l.runSidecar(c, fds); err != nil {
			refused := report{Op: opEnded, Sidecar: c.Sidecar, Cause: Failed, Text: err.Error()}
			if e, ok := errors.AsType[*Error](err); ok {
				refused.Cause, refused.Text = e.Cause, e.Text
			}
			l.report(refused)
		}
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.sidecars[c.Sidecar]
	switch {
	case e == nil:
	case c.Op == opSignal:
		for _, pid := range l.tree(e) {
			_ = unix.Kill(pid, unix.Signal(c.Signal))
			_ = unix.Kill(pid, unix.SIGCONT)
		}
	case c.Op == opKill:
		l.hunt(e)
	}
}

var errOver = errors.New("the worker has ended")

func (l *launcher) runSidecar(c *Command, fds []int) error {
	if len(fds) != 3 {
		return errors.New("launcher: want a command with three descriptors")
	}
	if c.Terminal != nil {
		var own int
		err := aside(func() (err error) {
			own, err = terminal(&l.world, fds[0], c.Terminal)
			return err
		})
		if err != nil {
			return fmt.Errorf("terminal: %w", err)
		}
		defer unix.Close(own)
		fds = []int{own, own, own}
	}
	path, err := l.forker.find(&l.world, c)
	if err != nil {
		return err
	}
	e := &sidecar{id: c.Sidecar, mark: run{number: c.Number}}
	if err := l.forker.mark(&e.mark, &l.world); err != nil {
		e.mark.unpin()
		return err
	}
	if err := unlessBusy(func() error { return l.forkSidecar(e, c, path, fds) }); err == errOver {
		e.mark.unpin()
		return err
	} else if err != nil {
		e.mark.unpin()
		return l.forker.refused(&l.world, c, err)
	}
	return nil
}

// forkSidecar forks a command beside one that runs.
func (l *launcher) forkSidecar(e *sidecar, c *Command, path string, fds []int) (err error) {
	number := e.mark.number
	l.mu.Lock()
	defer l.mu.Unlock()
	if w := l.runs[number]; w == nil || w.ended || w.killed {
		return errOver
	}
	if e.pid, err = clone(&l.world, c, path, fds, l.joiners[number], nil); err == nil {
		l.sidecars[e.id] = e
	}
	return err
}

// unlessBusy starts a command, whose program somebody may just be writing, or forking with it open.
func unlessBusy(start func() error) error {
	err := start()
	for end := time.Now().Add(busyFor); err == unix.ETXTBSY && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
		err = start()
	}
	return err
}

// terminal makes a terminal, sends one end of it over a socket, and returns the other, which
// belongs to the user of the commands.
func terminal(w *World, socket int, size *session.Size) (own int, err error) {
	master, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: "/dev/ptmx", Err: err}
	}
	defer unix.Close(master)
	if err := unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0); err != nil {
		return -1, err
	}
	if own, err = openPeer(master); err != nil {
		return -1, err
	}
	err = unix.IoctlSetWinsize(master, unix.TIOCSWINSZ, &unix.Winsize{Row: size.Rows, Col: size.Columns})
	if err == nil && w.UID > 0 && os.Geteuid() == 0 {
		err = unix.Fchown(own, w.UID, w.GID)
	}
	if err == nil {
		err = unix.Sendmsg(socket, []byte{0}, unix.UnixRights(master), nil, unix.MSG_NOSIGNAL)
	}
	if err != nil {
		_ = unix.Close(own)
	}
	return own, err
}

// openPeer opens the other end of a terminal.
func openPeer(master int) (int, error) {
	fd, _, errno := syscall.Syscall(unix.SYS_IOCTL, uintptr(master), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if errno == 0 {
		return int(fd), nil
	}
	n, err := unix.IoctlGetInt(master, unix.TIOCGPTN)
	if err != nil {
		return -1, err
	}
	return unix.Open("/dev/pts/"+strconv.Itoa(n), unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
}

// tree returns the processes of a command that are alive. The caller holds mu.
func (l *launcher) tree(e *sidecar) (pids []int) {
	below := map[int]bool{}
	if !e.ended {
		for _, pid := range append(proc.Descendants(e.pid), e.pid) {
			below[pid] = true
		}
	}
	all := proc.All
	if !l.world.Namespaces {
		all = func() []int { return proc.Descendants(os.Getpid()) }
	}
	for _, pid := range all() {
		st, err := proc.ReadStat(pid)
		if err != nil || !alive(&st) || pid == os.Getpid() {
			continue
		}
		if below[pid] || st.Session == e.pid || e.mark.uts != "" && markOf(pid) == e.mark.uts {
			pids = append(pids, pid)
		}
	}
	return pids
}

// hunt kills all of a command until nothing is left, and tells that. The caller holds mu.
func (l *launcher) hunt(e *sidecar) {
	if e.hunted {
		return
	}
	e.hunted = true
	go func() {
		for pace := time.Millisecond; ; pace = min(2*pace, huntEvery) {
			l.mu.Lock()
			over := l.sidecars[e.id] != e
			if !over {
				pids := l.tree(e)
				for _, pid := range pids {
					_ = unix.Kill(pid, unix.SIGKILL)
				}
				if over = e.ended && len(pids) == 0; over {
					l.over(e)
				}
			}
			l.mu.Unlock()
			if over {
				return
			}
			time.Sleep(pace)
		}
	}()
}

// over tells that nothing of a command is left. The caller holds mu.
func (l *launcher) over(e *sidecar) {
	delete(l.sidecars, e.id)
	e.mark.unpin()
	if !e.ended { // nobody has waited for it yet
		e.status = syscall.WaitStatus(unix.SIGKILL)
	}
	l.report(report{Op: opEnded, Sidecar: e.id, Status: int(e.status)})
}

// sidecarReaped takes the end of a process that may be the main one of a command of StartSidecar, and
// returns whose it was. The caller holds mu.
func (l *launcher) sidecarReaped(pid int, status syscall.WaitStatus) *run {
	for _, e := range l.sidecars {
		if e.pid == pid && !e.ended {
			e.ended, e.status = true, status
			if len(l.tree(e)) == 0 {
				l.over(e)
			} else {
				l.hunt(e)
			}
			return l.runs[e.mark.number]
		}
	}
	return nil
}
