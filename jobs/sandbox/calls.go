package sandbox

import (
	"fmt"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"zorilla/jobs/judge"
)

// deniedCalls are kernel interfaces that no job needs and that have a history of
// holes. unshare stays: browsers and nested sandboxes use it, and Landlock holds in
// what it makes.
var deniedCalls = []uint32{
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_SETNS, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT,
	unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR,
	unix.SYS_OPEN_TREE_ATTR, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE,
	unix.SYS_DELETE_MODULE, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_REBOOT, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_IO_URING_SETUP,
	unix.SYS_MEMFD_SECRET, // memory that is not counted
	unix.SYS_SYSLOG,       // tells of the machine what helps attackers of its kernel
}

// callsToOthers reach processes of the same user, or what outlives a process. Without
// namespaces they would reach the node and other jobs.
var callsToOthers = []uint32{
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_SHMGET, unix.SYS_SEMGET, unix.SYS_MSGGET,
	unix.SYS_MQ_OPEN,
}

// only allows a system call if an argument is one of some values; with a condition
// that does not hold, also otherwise.
type only struct {
	call   uint32
	when   *equal
	arg    uint32
	values []uint32
	errno  unix.Errno
}

// equal is the condition that an argument has a value.
type equal struct{ arg, value uint32 }

// rules hold for all workers.
var rules = []only{
	// The limits of the caller itself; those of another process are not its own.
	{call: unix.SYS_PRLIMIT64, arg: 0, values: []uint32{0}, errno: unix.EPERM},
	// Other families speak to the kernel or to the machine below it, not to networks, and a
	// user namespace opens even those that want powers.
	{call: unix.SYS_SOCKET, arg: 0, values: []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}, errno: unix.EAFNOSUPPORT},
	// What libraries look for interfaces, devices and their own sockets with.
	{call: unix.SYS_SOCKET, when: &equal{0, unix.AF_NETLINK}, arg: 2, errno: unix.EPROTONOSUPPORT,
		values: []uint32{unix.NETLINK_ROUTE, unix.NETLINK_SOCK_DIAG, unix.NETLINK_KOBJECT_UEVENT, unix.NETLINK_RDMA}},
	// Who cannot be traced hides what it holds open and how much memory that needs from a
	// supervisor that is not root. Programs that ask for it, for others of the same user,
	// take a refusal for a danger: they hear that it was done.
	{call: unix.SYS_PRCTL, when: &equal{0, unix.PR_SET_DUMPABLE}, arg: 1, values: []uint32{1}, errno: 0},
}

// rulesOnOthers keep priorities as they are of processes that are not the caller's own:
// without namespaces they would be all of the user. Threads may be given the usual
// policy, as by pthread_create. The processors that a thread runs on stay free to choose:
// what pins its threads names them by their numbers, which here tell nothing of whose
// they are.
var rulesOnOthers = []only{
	{call: unix.SYS_SETPRIORITY, arg: 0, values: []uint32{unix.PRIO_PROCESS}, errno: unix.EPERM},
	{call: unix.SYS_SETPRIORITY, arg: 1, values: []uint32{0}, errno: unix.EPERM},
	{call: unix.SYS_IOPRIO_SET, arg: 0, values: []uint32{ioprioProcess}, errno: unix.EPERM},
	{call: unix.SYS_IOPRIO_SET, arg: 1, values: []uint32{0}, errno: unix.EPERM},
	{call: unix.SYS_SCHED_SETSCHEDULER, arg: 1, values: []uint32{unix.SCHED_NORMAL, unix.SCHED_BATCH}, errno: unix.EPERM},
	{call: unix.SYS_SCHED_SETSCHEDULER, when: &equal{1, unix.SCHED_BATCH}, arg: 0, values: []uint32{0}, errno: unix.EPERM},
	{call: unix.SYS_SCHED_SETATTR, arg: 0, values: []uint32{0}, errno: unix.EPERM},
}

const ioprioProcess = 1 // IOPRIO_WHO_PROCESS

// machine is what the kernel calls this processor's own system calls; others, such as
// those of 32 bits, have numbers of their own.
var machine = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH]

// Places in struct seccomp_data; the low half of an argument comes first.
const (
	callNumber = 0
	callArch   = 4
	firstArg   = 16
	otherABI   = 0x40000000 // x32 on amd64
)

func deny(errno unix.Errno) bpf.Instruction {
	return bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(errno)}
}

var loadNumber = bpf.LoadAbsolute{Off: callNumber, Size: 4}

// loadArg loads an argument as the kernel reads those that are checked: 32 bits of it.
func loadArg(n uint32) bpf.Instruction {
	return bpf.LoadAbsolute{Off: firstArg + 8*n, Size: 4}
}

// instructions expects the call's number to be loaded, and leaves it so.
func (o *only) instructions() []bpf.Instruction {
	var check []bpf.Instruction
	for i, v := range o.values {
		check = append(check, bpf.JumpIf{Cond: bpf.JumpEqual, Val: v, SkipTrue: uint8(len(o.values) - i)})
	}
	check = append(append([]bpf.Instruction{loadArg(o.arg)}, check...), deny(o.errno))
	if o.when != nil {
		skip := bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: o.when.value, SkipTrue: uint8(len(check))}
		check = append([]bpf.Instruction{loadArg(o.when.arg), skip}, check...)
	}
	skip := bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: o.call, SkipTrue: uint8(len(check) + 1)}
	return append(append([]bpf.Instruction{skip}, check...), loadNumber)
}

// filter decides about a system call.
func filter(d denials) []bpf.Instruction {
	denied, checked := slices.Clone(deniedCalls), slices.Clone(rules)
	if d.others {
		denied, checked = append(denied, callsToOthers...), append(checked, rulesOnOthers...)
	}
	if d.sockets { // who has only its own cannot be told: pairs stay
		checked = append(checked, only{call: unix.SYS_SOCKET, arg: 0, values: []uint32{unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}, errno: unix.EPERM},
			only{call: unix.SYS_SOCKETPAIR, arg: 1, values: connected, errno: unix.EPERM})
	}
	if d.truncate {
		denied = append(denied, unix.SYS_TRUNCATE)
	}
	f := []bpf.Instruction{
		bpf.LoadAbsolute{Off: callArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: machine, SkipTrue: 1},
		deny(unix.ENOSYS),
		loadNumber,
		bpf.JumpIf{Cond: bpf.JumpLessThan, Val: otherABI, SkipTrue: 1},
		deny(unix.ENOSYS),
	}
	for _, c := range checked {
		f = append(f, c.instructions()...)
	}
	for _, number := range denied {
		f = append(f, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: number, SkipTrue: 1}, deny(unix.EPERM))
	}
	if d.judged {
		for _, number := range judge.Judged() {
			f = append(f, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: number, SkipTrue: 1}, bpf.RetConstant{Val: unix.SECCOMP_RET_USER_NOTIF})
		}
		for _, number := range judge.Unknown() {
			f = append(f, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: number, SkipTrue: 1}, deny(unix.ENOSYS))
		}
	}
	return append(f, bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW})
}

// denials say what a filter denies beside what it denies everybody.
type denials struct {
	others   bool // what reaches other processes
	sockets  bool // unix sockets but connected pairs
	truncate bool // to empty files by their path
	judged   bool // or not: calls of package judge
}

// connected are the kinds of sockets that speak to their other end alone: datagrams go to
// any address.
var connected = []uint32{
	unix.SOCK_STREAM, unix.SOCK_STREAM | unix.SOCK_CLOEXEC, unix.SOCK_STREAM | unix.SOCK_NONBLOCK, unix.SOCK_STREAM | unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK,
	unix.SOCK_SEQPACKET, unix.SOCK_SEQPACKET | unix.SOCK_CLOEXEC, unix.SOCK_SEQPACKET | unix.SOCK_NONBLOCK,
	unix.SOCK_SEQPACKET | unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK,
}

// denyCalls keeps the calling thread, and what it starts, from system calls. It returns the
// descriptor by which those are to be judged that may be, else -1.
func denyCalls(d denials) (listener int, err error) {
	if machine == 0 {
		return -1, nil // no filter is known for it
	}
	raw, err := bpf.Assemble(filter(d))
	if err != nil {
		return -1, fmt.Errorf("seccomp: %w", err)
	}
	code := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		code[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	program := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	if d.judged {
		const listen = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER
		// Without WAIT_KILLABLE_RECV, which Linux has since 5.19, a signal has a call made again
		// that the judge is making.
		fd, errno := setFilter(&program, listen|unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
		if errno == unix.EINVAL {
			fd, errno = setFilter(&program, listen)
		}
		switch errno {
		case 0:
			return fd, nil
		case unix.EINVAL, unix.EBUSY: // before Linux 5.0, or a container's own judge is there
			d.judged = false
			return denyCalls(d)
		}
		return -1, fmt.Errorf("seccomp: %w", errno)
	}
	if _, errno := setFilter(&program, 0); errno != 0 {
		return -1, fmt.Errorf("seccomp: %w", errno)
	}
	return -1, nil
}

// setFilter has a filter hold for the calling thread.
func setFilter(program *unix.SockFprog, flags uintptr) (fd int, errno unix.Errno) {
	r, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(program)))
	return int(r), errno
}

// hasSeccomp reports whether the kernel takes filters, and one is known for it.
func hasSeccomp() bool {
	mode, err := unix.PrctlRetInt(unix.PR_GET_SECCOMP, 0, 0, 0, 0)
	return err == nil && mode >= 0 && machine != 0
}
