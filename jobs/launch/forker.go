package launch

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"zorilla/jobs/cgroup"
	"zorilla/jobs/sandbox"
)

// forker starts commands. All of it runs on the thread that serves.
type forker struct {
	inside   *sandbox.Inside // nil without namespaces
	confined bool
	path     string // of the latest command, and what it was found for
	found    []string
	marked   run // its number, uts and pin are those of the tasks whose mark the thread has
}

// find makes the thread ready for a command, and returns the path to run it by.
func (f *forker) find(world *World, c *Command) (path string, err error) {
	if len(c.Args) == 0 {
		return "", errors.New("launcher: no command")
	}
	if !f.confined {
		if err := confine(world, c); err != nil {
			return "", fmt.Errorf("sandbox: %v", err) // its number says nothing of the command
		}
		f.confined = true
	}
	// It may lie where the command's user could not go by itself.
	if err := f.enter(c.Dir); err != nil {
		return "", fmt.Errorf("%s: %v", c.Dir, err)
	}
	key := []string{c.Args[0], c.Dir, searched(c.Env)}
	if slices.Equal(key, f.found) {
		return f.path, nil
	}
	f.found = nil
	if unable := world.asCommand(func() { path, err = lookup(c.Args[0], c.Env) }); unable != nil {
		return "", unable
	}
	if err != nil {
		return "", aside(func() error { return world.blind(c, err) })
	}
	f.path, f.found = path, key
	return path, nil
}

// refused says why a command that was found could not be started.
func (f *forker) refused(world *World, c *Command, err error) error {
	path := f.path
	f.found = nil
	errno, ok := errors.AsType[syscall.Errno](err)
	if !ok {
		return err
	}
	var its file
	if unable := world.asCommand(func() { its = inspect(path) }); unable != nil {
		return unable
	}
	return aside(func() error { return world.blind(c, world.explainExec(c, &its, errno)) })
}

// ownMark leads to the UTS namespace of the calling thread.
const ownMark = "/proc/thread-self/ns/uts"

// mark has what the thread forks from now on be told from all else, if it has to be. The tasks
// of a number share a mark: nothing of one is left when the next one begins.
func (f *forker) mark(w *run, world *World) (err error) {
	if !world.shared() {
		return nil
	}
	if w.serial > 0 && w.number == f.marked.number {
		return f.share(w)
	}
	f.marked.unpin()
	f.marked = run{}
	if err := unix.Unshare(unix.CLONE_NEWUTS); err != nil {
		return fmt.Errorf("UTS namespace: %v", err)
	}
	w.uts, err = os.Readlink(ownMark)
	if err == nil { // as long as it is open no other one has its number
		w.pin, err = unix.Open(ownMark, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		return fmt.Errorf("UTS namespace: %v", err)
	}
	if w.serial > 0 {
		f.marked = run{number: w.number, uts: w.uts, pin: w.pin}
		return f.share(w)
	}
	return nil
}

// share gives a task the mark of those before it.
func (f *forker) share(w *run) (err error) {
	w.uts = f.marked.uts
	if w.pin, err = unix.FcntlInt(uintptr(f.marked.pin), unix.F_DUPFD_CLOEXEC, 0); err != nil {
		w.pin = 0
		return fmt.Errorf("UTS namespace: %v", err)
	}
	return nil
}

// clone forks a command with three descriptors in the group of a joiner. *end becomes a
// descriptor that tells when it has ended, or -1 where the kernel has none; nil = it is not wanted.
func clone(world *World, c *Command, path string, fds []int, joiner *cgroup.Joiner, end *int) (pid int, err error) {
	attr := &syscall.ProcAttr{Env: c.Env, Sys: &syscall.SysProcAttr{Setsid: !c.Together, Setpgid: c.Together, Pdeathsig: syscall.SIGKILL, PidFD: end}}
	for _, fd := range fds {
		attr.Files = append(attr.Files, uintptr(fd))
	}
	attr.Sys.Setctty = c.Terminal != nil // the first descriptor
	if world.UID > 0 && os.Geteuid() == 0 {
		attr.Sys.Credential = &syscall.Credential{Uid: uint32(world.UID), Gid: uint32(world.GID)}
	}
	defer bind(c.Cores)()
	return joiner.Fork(attr.Sys, func() (int, error) { return syscall.ForkExec(path, c.Args, attr) })
}

// join has the commands of a number start in a control group, and reports whether it keeps
// the descriptors that lead there.
func (l *launcher) join(number int, fds []int) bool {
	joiner, err := cgroup.NewJoiner(fds, l.way)
	if err != nil {
		l.broken = cmp.Or(l.broken, err)
		return false
	}
	l.joiners[number] = joiner
	return true
}

// bind has what the calling thread forks run on some processors, until it is undone. Where the
// machine's owner gives others to the node by now it runs on those.
func bind(cores []int) (undo func()) {
	var was, set unix.CPUSet
	for _, i := range cores {
		set.Set(i)
	}
	if len(cores) == 0 || unix.SchedGetaffinity(0, &was) != nil || unix.SchedSetaffinity(0, &set) != nil {
		return func() {}
	}
	return func() { _ = unix.SchedSetaffinity(0, &was) } // it was allowed before
}

// enter makes a directory that of the calling thread.
func (f *forker) enter(dir string) error {
	if f.inside == nil || dir == "/" {
		return unix.Chdir(dir)
	}
	fd, err := f.inside.Open(dir)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Fchdir(fd)
}

// confine restricts the calling thread, and all that it will start, for good.
func confine(world *World, c *Command) error {
	if err := unix.Unshare(unix.CLONE_FS); err != nil { // a working directory of its own
		return err
	}
	unix.Umask(0o022)
	a := sandbox.Access{
		Expose: world.Expose, Writable: world.Writable, Devices: world.Devices, Hide: append([]string{world.Base}, world.Hide...),
		Write: c.Write, Read: c.Read, Among: world.Among,
		Settings: world.Namespaces || !world.rootless(),
	}
	if world.Namespaces { // what the root directory has is open
		a.Write, a.Read, a.Alone = []string{world.at(), "/tmp", "/dev/shm", "/dev/pts"}, []string{"/"}, true
	}
	if !world.Namespaces {
		a.Judge = judged(world.UID, world.GID)
	}
	// Powers over the namespaces are this thread's alone.
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil && err != unix.EINVAL {
		return err
	}
	if world.UID > 0 && os.Geteuid() == 0 { // commands have none of them; see asCommand
		if _, _, errno := syscall.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); errno != 0 {
			return fmt.Errorf("groups: %w", errno)
		}
	}
	if err := sandbox.Confine(a); err != nil {
		return err
	}
	if world.rootless() {
		return sandbox.DropCapabilities()
	}
	return nil
}
