package quota

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What the kernel has for quotas of projects, from linux/quota.h, linux/dqblk_xfs.h and
// linux/fs.h.
const (
	project    = 2 // kind of quota
	getQuota   = 0x800007
	setQuota   = 0x800008
	getState   = 'X'<<8 + 5
	blockLimit = 1 // of dqblk.valid
	limitUnit  = 1024
	enforced   = 1 << 5 // FS_QUOTA_PDQ_ENFD

	getAttributes = 0x801c581f // FS_IOC_FSGETXATTR
	setAttributes = 0x401c5820
	inherit       = 0x200
)

// dqblk is struct if_dqblk.
type dqblk struct {
	hard, soft              uint64 // limitUnit
	used                    uint64 // bytes
	inodesHard, inodesSoft  uint64
	inodes                  uint64
	spaceUntil, inodesUntil uint64
	valid                   uint32
	_                       uint32
}

// attributes is struct fsxattr.
type attributes struct {
	flags, extent, extents, project, copyExtent uint32
	_                                           [8]byte
}

// state is struct fs_quota_stat, as far as it is of use.
type state struct {
	version uint8
	flags   uint16
	_       [124]byte
}

// quotactl asks about the file system of an open file.
func quotactl(f *os.File, command, id uint32, data unsafe.Pointer) error {
	_, _, errno := unix.Syscall6(unix.SYS_QUOTACTL_FD, f.Fd(), uintptr(command<<8|project), uintptr(id), uintptr(data), 0, 0)
	if errno != 0 {
		return os.NewSyscallError("quotactl_fd", errno)
	}
	return nil
}

// get returns what a project has; one that is not known has nothing.
func get(f *os.File, id uint32) (q dqblk, err error) {
	err = quotactl(f, getQuota, id, unsafe.Pointer(&q))
	if e, ok := err.(*os.SyscallError); ok && (e.Err == unix.ENOENT || e.Err == unix.ESRCH && enforces(f)) {
		err = nil
	}
	return q, err
}

// limit sets how much a project may have; 0 = anything.
func limit(f *os.File, id uint32, bytes int64) error {
	q := dqblk{hard: uint64(bytes+limitUnit-1) / limitUnit, valid: blockLimit}
	return quotactl(f, setQuota, id, unsafe.Pointer(&q))
}

// enforces reports whether the file system keeps projects within their limits.
func enforces(f *os.File) bool {
	s := state{version: 1}
	return quotactl(f, getState, 0, unsafe.Pointer(&s)) == nil && s.flags&enforced != 0
}

func attributesOf(f *os.File) (a attributes, err error) {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), getAttributes, uintptr(unsafe.Pointer(&a)))
	if errno != 0 {
		err = &os.PathError{Op: "project of", Path: f.Name(), Err: errno}
	}
	return a, err
}

// assign puts a file or directory, with what is made in it, into a project.
func assign(f *os.File, id uint32, dir bool) error {
	a, err := attributesOf(f)
	if err != nil {
		return err
	}
	if a.project = id; dir {
		a.flags |= inherit
	}
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), setAttributes, uintptr(unsafe.Pointer(&a)))
	if errno != 0 {
		return &os.PathError{Op: "set project of", Path: f.Name(), Err: errno}
	}
	return nil
}
