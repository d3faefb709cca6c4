package judge

import (
	"bytes"
	"errors"
	"path"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Judge decides about calls of the processes behind one filter.
type Judge struct {
	// Allowed are the directories, without links in their paths, in which files may be changed.
	Allowed []string
}

// notification is struct seccomp_notif: a call that waits for its end.
type notification struct {
	id   uint64
	pid  uint32 // of the thread
	_    uint32
	data struct { // struct seccomp_data
		number int32
		arch   uint32
		at     uint64
		args   [6]uint64
	}
}

// verdict is struct seccomp_notif_resp.
type verdict struct {
	id    uint64
	value int64
	errno int32 // negative
	flags uint32
}

// asked is a call that was made, with the file that it is about.
type asked struct {
	notification
	call
	memory memory
	fd     int    // of the file, by O_PATH
	at     string // a path that leads to it, and to nothing else
	given  bool   // it is what a descriptor of the caller's refers to, not found by a path
}

// arg returns an argument that the call's do wants.
func (c *asked) arg(i int) uint64 { return c.data.args[c.from+i] }

// Serve judges calls until nobody is left who could make one. It keeps the calling thread busy,
// which must not be confined itself, and closes the descriptor of the filter's notifications.
func (j *Judge) Serve(fd int) {
	defer unix.Close(fd)
	for await(fd) {
		// The kernel wants zeroes.
		var n notification
		switch err := ioctl(fd, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n)); {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.ENOENT): // the caller was killed
			continue
		case err != nil:
			return
		}
		v := verdict{id: n.id}
		if err := j.judge(fd, n); err != nil {
			errno, ok := errors.AsType[unix.Errno](err)
			if !ok {
				errno = unix.EPERM
			}
			v.errno = -int32(errno)
		}
		_ = ioctl(fd, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&v)) // who asked may be gone
	}
}

// await waits for a call. It returns false if no process is left behind the filter: before Linux
// 6.11 only poll reports that, and whoever has begun to receive waits forever.
func await(fd int) bool {
	for {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		switch _, err := unix.Poll(p, -1); {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return false
		default:
			return p[0].Revents&unix.POLLIN != 0
		}
	}
}

func ioctl(fd int, request uintptr, arg unsafe.Pointer) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(arg)); errno != 0 {
		return errno
	}
	return nil
}

// judge makes the call if it may be made.
func (j *Judge) judge(fd int, n notification) error {
	c := asked{notification: n}
	var ok bool
	if c.call, ok = calls[uint32(n.data.number)]; !ok {
		return unix.ENOSYS
	}
	mem, err := unix.Open("/proc/"+strconv.Itoa(int(n.pid))+"/mem", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(mem)
	c.memory = memory(mem)
	if err := c.open(); err != nil {
		return err
	}
	defer unix.Close(c.fd)
	// What was opened is the caller's only if it still waits: its number may be another's by now.
	if err := ioctl(fd, unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&c.id)); err != nil {
		return err
	}
	c.at = "/proc/self/fd/" + strconv.Itoa(c.fd)
	if err := j.allows(&c); err != nil {
		return err
	}
	return c.do(&c)
}

// open opens the file that the call is about, as the caller would.
func (c *asked) open() (err error) {
	proc := "/proc/" + strconv.Itoa(int(c.pid))
	descriptor := func(arg int) (string, error) {
		n := int32(c.data.args[arg])
		if n < 0 {
			return "", unix.EBADF
		}
		return proc + "/fd/" + strconv.Itoa(int(n)), nil
	}
	flags := 0
	if c.flags >= 0 {
		flags = int(int32(c.data.args[c.flags]))
	}
	name := ""
	if c.path >= 0 && (c.data.args[c.path] != 0 || c.dir < 0) { // utimensat may have none: the descriptor itself
		if name, err = c.memory.text(c.data.args[c.path], maxPath); err != nil {
			return err
		}
		if name == "" && flags&unix.AT_EMPTY_PATH == 0 {
			return unix.ENOENT
		}
	}
	at := proc + "/cwd"
	if c.dir >= 0 && int32(c.data.args[c.dir]) != unix.AT_FDCWD && !path.IsAbs(name) {
		if at, err = descriptor(c.dir); err != nil {
			return err
		}
	}
	how := unix.O_PATH | unix.O_CLOEXEC
	if name == "" {
		c.given = at != proc+"/cwd"
		c.fd, err = unix.Open(at, how, 0)
		return closed(err, c.given)
	}
	if c.stays || flags&unix.AT_SYMLINK_NOFOLLOW != 0 {
		how |= unix.O_NOFOLLOW
	}
	if path.IsAbs(name) {
		c.fd, err = unix.Open(own(name, proc, c.pid), how, 0)
		return err
	}
	dir, err := unix.Open(at, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return closed(err, true)
	}
	defer unix.Close(dir)
	c.fd, err = unix.Openat(dir, name, how, 0)
	return err
}

// closed returns the error of a descriptor that is not there.
func closed(err error, descriptor bool) error {
	if descriptor && errors.Is(err, unix.ENOENT) {
		return unix.EBADF
	}
	return err
}

// own returns a path as the caller means it: what leads to a process itself would lead to this
// one. By a link it does all the same, and so to what is not allowed.
func own(name, proc string, thread uint32) string {
	if rest, ok := strings.CutPrefix(name, "/proc/self/"); ok {
		return proc + "/" + rest
	}
	if rest, ok := strings.CutPrefix(name, "/proc/thread-self/"); ok {
		return proc + "/task/" + strconv.Itoa(int(thread)) + "/" + rest
	}
	return name
}

// allows returns an error if the file of a call must not be changed.
func (j *Judge) allows(c *asked) error {
	buf := make([]byte, 2*maxPath)
	n, err := unix.Readlink(c.at, buf)
	if err != nil {
		return err
	}
	where := string(buf[:n])
	var st unix.Stat_t
	if err := unix.Fstat(c.fd, &st); err != nil {
		return err
	}
	// A pipe, a socket or a file without a name is found by its descriptors alone. By a path in
	// /proc this thread would also find those of others, which Landlock denies the caller.
	if c.given && (!path.IsAbs(where) || st.Nlink == 0) {
		return nil
	}
	for _, dir := range j.Allowed {
		if where == dir || strings.HasPrefix(where, strings.TrimSuffix(dir, "/")+"/") {
			return nil
		}
	}
	return unix.EPERM
}

// isLink reports whether the file is a symbolic link.
func (c *asked) isLink() bool {
	var st unix.Stat_t
	return unix.Fstat(c.fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK
}

// memory is that of the caller, a descriptor of /proc/PID/mem: it stays that of the same process,
// and has nothing in it when that has ended. Whether it may be opened goes by the user as whom
// this thread looks at files, without any power over processes.
type memory int

// read fills b with what is at an address.
func (m memory) read(at uint64, b []byte) error {
	for len(b) > 0 {
		n, err := unix.Pread(int(m), b, int64(at))
		switch {
		case err != nil && err != unix.EIO:
			return err
		case err != nil, n == 0:
			return unix.EFAULT
		}
		at, b = at+uint64(n), b[n:]
	}
	return nil
}

const pageSize = 4096 // the least that there is

// text reads a text of at most size bytes, with the zero byte at its end.
func (m memory) text(at uint64, size int) (string, error) {
	var text []byte
	for len(text) < size {
		part := make([]byte, min(size-len(text), pageSize-int(at%pageSize)))
		if err := m.read(at, part); err != nil {
			return "", err
		}
		if i := bytes.IndexByte(part, 0); i >= 0 {
			return string(append(text, part[:i]...)), nil
		}
		text, at = append(text, part...), at+uint64(len(part))
	}
	return "", unix.ENAMETOOLONG
}
