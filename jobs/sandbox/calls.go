package sandbox

import (
	"fmt"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// deniedCalls are kernel interfaces that no job needs and that have a history of
// holes. unshare stays: browsers and nested sandboxes use it, and Landlock holds in
// what it makes.
var deniedCalls = []uint32{
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_SETNS, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT,
	unix.SYS_FSOPEN, unix.SYS_FSMOUNT, unix.SYS_MOUNT_SETATTR, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEXEC_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE,
	unix.SYS_DELETE_MODULE, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_REBOOT, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_IO_URING_SETUP,
}

// callsToOthers reach processes of the same user, or what outlives a process. Without
// namespaces they would reach the node and other jobs.
var callsToOthers = []uint32{
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_SHMGET, unix.SYS_SEMGET, unix.SYS_MSGGET,
}

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

// filter decides about a system call. It reads the first argument of some, as the
// kernel does: 32 bits of it.
func filter(others, sockets bool) []bpf.Instruction {
	deny := func(errno unix.Errno) bpf.Instruction {
		return bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(errno)}
	}
	denied := slices.Clone(deniedCalls)
	if others {
		denied = append(denied, callsToOthers...)
	}
	f := []bpf.Instruction{
		bpf.LoadAbsolute{Off: callArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: machine, SkipTrue: 1},
		deny(unix.ENOSYS),
		bpf.LoadAbsolute{Off: callNumber, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpLessThan, Val: otherABI, SkipTrue: 1},
		deny(unix.ENOSYS),
		// The limits of the caller itself; those of another process are not its own.
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SYS_PRLIMIT64, SkipTrue: 4},
		bpf.LoadAbsolute{Off: firstArg, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 1},
		deny(unix.EPERM),
		bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW},
	}
	if sockets { // who has only its own cannot be told: pairs stay
		f = append(f,
			bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SYS_SOCKET, SkipTrue: 4},
			bpf.LoadAbsolute{Off: firstArg, Size: 4},
			bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.AF_UNIX, SkipTrue: 1},
			deny(unix.EPERM),
			bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW})
	}
	for _, number := range denied {
		f = append(f, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: number, SkipTrue: 1}, deny(unix.EPERM))
	}
	return append(f, bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW})
}

// denyCalls keeps the calling thread, and what it starts, from system calls; others:
// also from those that reach other processes; sockets: from unix sockets but pairs.
func denyCalls(others, sockets bool) error {
	if machine == 0 {
		return nil // no filter is known for it
	}
	raw, err := bpf.Assemble(filter(others, sockets))
	if err != nil {
		return fmt.Errorf("seccomp: %w", err)
	}
	code := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		code[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	program := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0); err != nil {
		return fmt.Errorf("seccomp: %w", err)
	}
	return nil
}

// hasSeccomp reports whether the kernel takes filters, and one is known for it.
func hasSeccomp() bool {
	mode, err := unix.PrctlRetInt(unix.PR_GET_SECCOMP, 0, 0, 0, 0)
	return err == nil && mode >= 0 && machine != 0
}
