package sandbox

import (
	"encoding/binary"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// decide runs the filter as the kernel would; the machine of the test reads numbers in
// network order.
func decide(t *testing.T, others, sockets bool, arch, number, arg uint32) uint32 {
	t.Helper()
	vm, err := bpf.NewVM(filter(others, sockets))
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, 64)
	binary.BigEndian.PutUint32(data[callNumber:], number)
	binary.BigEndian.PutUint32(data[callArch:], arch)
	binary.BigEndian.PutUint32(data[firstArg:], arg)
	n, err := vm.Run(data)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(n)
}

func TestFilter(t *testing.T) {
	const allow = unix.SECCOMP_RET_ALLOW
	eperm, enosys := unix.SECCOMP_RET_ERRNO|uint32(unix.EPERM), unix.SECCOMP_RET_ERRNO|uint32(unix.ENOSYS)
	for name, c := range map[string]struct {
		others, sockets   bool
		arch, number, arg uint32
		want              uint32
	}{
		"write":                  {true, true, machine, unix.SYS_WRITE, 7, allow},
		"mount":                  {false, false, machine, unix.SYS_MOUNT, 0, eperm},
		"io_uring":               {false, false, machine, unix.SYS_IO_URING_SETUP, 0, eperm},
		"own limits":             {true, true, machine, unix.SYS_PRLIMIT64, 0, allow},
		"limits of another":      {false, false, machine, unix.SYS_PRLIMIT64, 42, eperm},
		"ptrace":                 {true, true, machine, unix.SYS_PTRACE, 0, eperm},
		"ptrace, alone":          {false, false, machine, unix.SYS_PTRACE, 0, allow},
		"memory of a rank":       {false, false, machine, unix.SYS_PROCESS_VM_READV, 9, allow},
		"shared memory":          {true, true, machine, unix.SYS_SHMGET, 0, eperm},
		"unix socket":            {true, true, machine, unix.SYS_SOCKET, unix.AF_UNIX, eperm},
		"unix socket, alone":     {false, false, machine, unix.SYS_SOCKET, unix.AF_UNIX, allow},
		"internet socket":        {true, true, machine, unix.SYS_SOCKET, unix.AF_INET, allow},
		"pair of sockets":        {true, true, machine, unix.SYS_SOCKETPAIR, unix.AF_UNIX, allow},
		"mount, by 32 bits":      {false, false, unix.AUDIT_ARCH_I386, 21, 0, enosys},
		"another ABI's number":   {false, false, machine, otherABI | unix.SYS_WRITE, 0, enosys},
		"unshare, for sandboxes": {true, true, machine, unix.SYS_UNSHARE, unix.CLONE_NEWUSER, allow},
	} {
		if got := decide(t, c.others, c.sockets, c.arch, c.number, c.arg); got != c.want {
			t.Errorf("%s: got %#x, want %#x", name, got, c.want)
		}
	}
}
