package judge

import (
	"encoding/binary"
	"maps"
	"slices"

	"golang.org/x/sys/unix"
)

// call says where a system call has what: numbers of arguments, -1 = it has none.
type call struct {
	dir   int  // a directory's descriptor; without a path that of the file itself
	path  int  // relative to that, or to the current directory
	flags int  // AT_*
	stays bool // a link at the end of the path is not followed
	from  int  // the first of the arguments that do wants
	do    func(c *asked) error
}

// everywhere are calls that are judged, by their numbers, which all processors have.
var everywhere = map[uint32]call{
	unix.SYS_FCHMOD:       {0, -1, -1, false, 1, chmod},
	unix.SYS_FCHMODAT:     {0, 1, -1, false, 2, chmod},
	unix.SYS_FCHMODAT2:    {0, 1, 3, false, 2, chmod},
	unix.SYS_FCHOWN:       {0, -1, -1, false, 1, chown},
	unix.SYS_FCHOWNAT:     {0, 1, 4, false, 2, chown},
	unix.SYS_UTIMENSAT:    {0, 1, 3, false, 2, utimens},
	unix.SYS_SETXATTR:     {-1, 0, -1, false, 1, setxattr},
	unix.SYS_LSETXATTR:    {-1, 0, -1, true, 1, setxattr},
	unix.SYS_FSETXATTR:    {0, -1, -1, false, 1, setxattr},
	unix.SYS_REMOVEXATTR:  {-1, 0, -1, false, 1, removexattr},
	unix.SYS_LREMOVEXATTR: {-1, 0, -1, true, 1, removexattr},
	unix.SYS_FREMOVEXATTR: {0, -1, -1, false, 1, removexattr},
}

// calls are all that are judged.
var calls = func() map[uint32]call {
	all := maps.Clone(everywhere)
	maps.Copy(all, here)
	return all
}()

// unknown are calls that do the same and that libraries do without: no such call.
var unknown = []uint32{unix.SYS_SETXATTRAT, unix.SYS_REMOVEXATTRAT, unix.SYS_FILE_SETATTR}

// Judged lists the numbers of the calls that are to be judged.
func Judged() (all []uint32) {
	for number := range calls {
		all = append(all, number)
	}
	slices.Sort(all)
	return all
}

// Unknown lists the numbers of calls that are to fail with ENOSYS, so that those of Judged are
// made instead.
func Unknown() []uint32 { return slices.Clone(unknown) }

func chmod(c *asked) error {
	if c.isLink() {
		return unix.EOPNOTSUPP // as the kernel has it
	}
	return unix.Fchmodat(unix.AT_FDCWD, c.at, uint32(c.arg(0))&0o7777, 0)
}

func chown(c *asked) error {
	return unix.Fchownat(c.fd, "", int(int32(c.arg(0))), int(int32(c.arg(1))), unix.AT_EMPTY_PATH)
}

func setxattr(c *asked) error {
	if c.isLink() {
		return unix.EPERM // users have none on links
	}
	name, err := c.memory.text(c.arg(0), maxName)
	if err != nil {
		return err
	}
	if c.arg(2) > maxValue {
		return unix.E2BIG
	}
	value := make([]byte, c.arg(2))
	if err := c.memory.read(c.arg(1), value); err != nil {
		return err
	}
	return unix.Setxattr(c.at, name, value, int(int32(c.arg(3))))
}

func removexattr(c *asked) error {
	if c.isLink() {
		return unix.EPERM
	}
	name, err := c.memory.text(c.arg(0), maxName)
	if err != nil {
		return err
	}
	return unix.Removexattr(c.at, name)
}

// utimens sets times that are two of struct timespec.
func utimens(c *asked) error {
	return c.setTimes(4, func(v []int64) [2]unix.Timespec {
		return [2]unix.Timespec{{Sec: v[0], Nsec: v[1]}, {Sec: v[2], Nsec: v[3]}}
	})
}

// setTimes sets the times that a call names, as so many numbers in its memory; none = now.
func (c *asked) setTimes(numbers int, decode func([]int64) [2]unix.Timespec) error {
	now := unix.Timespec{Nsec: unix.UTIME_NOW}
	ts := [2]unix.Timespec{now, now}
	if c.arg(0) != 0 {
		raw := make([]byte, 8*numbers)
		if err := c.memory.read(c.arg(0), raw); err != nil {
			return err
		}
		v := make([]int64, numbers)
		for i := range v {
			v[i] = int64(binary.NativeEndian.Uint64(raw[8*i:]))
		}
		ts = decode(v)
	}
	return unix.UtimesNanoAt(c.fd, "", ts[:], unix.AT_EMPTY_PATH)
}

const (
	maxPath  = 4096     // bytes, with the zero byte
	maxName  = 256      // of an attribute; the same
	maxValue = 64 << 10 // of an attribute
)
