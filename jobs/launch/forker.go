package launch

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

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
}

// fork starts a command with three descriptors behind a door, and tells w which
// process it is.
func (f *forker) fork(world *World, w *run, c *Command, fds []int, door *cgroup.Door) error {
	if len(c.Args) == 0 {
		return errors.New("launcher: no command")
	}
	key := []string{c.Args[0], c.Dir}
	path := f.path
	if !slices.Equal(key, f.found) {
		var err error
		if path, err = lookup(c.Args[0], c.Dir, c.Env); err != nil {
			return aside(func() error { return world.blind(c, err) })
		}
	}
	err := f.clone(world, w, c, path, fds, door)
	if err == nil {
		f.path, f.found = path, key
		return nil
	}
	f.found = nil
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return aside(func() error { return world.blind(c, world.explainExec(c, inDir(c.Dir, path), errno)) })
	}
	return err
}

// ownMark leads to the UTS namespace of the calling thread.
const ownMark = "/proc/thread-self/ns/uts"

// clone forks a command, from the thread that this makes the confined one.
func (f *forker) clone(world *World, w *run, c *Command, path string, fds []int, door *cgroup.Door) error {
	if !f.confined {
		if err := confine(world, c); err != nil {
			return fmt.Errorf("sandbox: %v", err) // its number says nothing of the command
		}
		f.confined = true
	}
	if world.shared() {
		if err := unix.Unshare(unix.CLONE_NEWUTS); err != nil {
			return fmt.Errorf("UTS namespace: %v", err)
		}
		mark, err := os.Readlink(ownMark)
		if err == nil { // as long as it is open no other one has its number
			w.pin, err = unix.Open(ownMark, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		}
		if err != nil {
			return fmt.Errorf("UTS namespace: %v", err)
		}
		w.mark = mark
	}
	// It may lie where the command's user could not go by itself.
	if err := f.enter(c.Dir); err != nil {
		return fmt.Errorf("%s: %v", c.Dir, err)
	}
	attr := &syscall.ProcAttr{Env: c.Env, Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}}
	for _, fd := range fds {
		attr.Files = append(attr.Files, uintptr(fd))
	}
	if world.UID > 0 && os.Geteuid() == 0 {
		attr.Sys.Credential = &syscall.Credential{Uid: uint32(world.UID), Gid: uint32(world.GID)}
	}
	pid, err := door.Pass(attr.Sys, func() (int, error) {
		pid, err := syscall.ForkExec(path, c.Args, attr)
		for end := time.Now().Add(busyFor); err == unix.ETXTBSY && time.Now().Before(end); {
			time.Sleep(5 * time.Millisecond)
			pid, err = syscall.ForkExec(path, c.Args, attr)
		}
		return pid, err
	})
	if w.pid = pid; err != nil {
		w.unpin()
	}
	return err
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
		Write: c.Write, Read: c.Read,
	}
	if world.Namespaces { // what the root directory has is open
		a.Write, a.Read, a.Alone = []string{world.Base, "/tmp", "/dev"}, []string{"/"}, true
	}
	// Powers over the namespaces are this thread's alone.
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil && err != unix.EINVAL {
		return err
	}
	if err := sandbox.Confine(a); err != nil {
		return err
	}
	if world.rootless() {
		return sandbox.DropCapabilities()
	}
	return nil
}
