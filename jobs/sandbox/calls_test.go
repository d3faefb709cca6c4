package sandbox

import (
	"encoding/binary"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// decide runs the filter as the kernel would; the machine of the test reads numbers in
// network order.
func decide(t *testing.T, others, sockets bool, arch, number uint32, args ...uint32) uint32 {
	t.Helper()
	vm, err := bpf.NewVM(filter(denials{others: others, sockets: sockets, truncate: others && sockets, judged: others}))
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, 64)
	binary.BigEndian.PutUint32(data[callNumber:], number)
	binary.BigEndian.PutUint32(data[callArch:], arch)
	for i, a := range args {
		binary.BigEndian.PutUint32(data[firstArg+8*i:], a)
	}
	n, err := vm.Run(data)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(n)
}

// Where Landlock does not keep workers from abstract sockets, those that are to stay in the
// network of their group have none.
func TestDenials(t *testing.T) {
	for _, c := range []struct {
		a        Access
		landlock int
		want     denials
	}{
		{Access{}, 0, denials{true, true, true, false}},
		{Access{}, 8, denials{true, true, false, false}},
		{Access{}, 9, denials{true, false, false, false}},
		{Access{Among: true}, 8, denials{true, true, false, false}},
		{Access{Alone: true}, 0, denials{}},
		{Access{Alone: true, Among: true}, 0, denials{sockets: true}},
		{Access{Alone: true, Among: true}, 5, denials{sockets: true}},
		{Access{Alone: true, Among: true}, 6, denials{}},
		{Access{Judge: func(int, []string) error { return nil }}, 9, denials{others: true, judged: true}},
	} {
		if got := c.a.denials(c.landlock); got != c.want {
			t.Errorf("%+v, version %d: %+v, want %+v", c.a, c.landlock, got, c.want)
		}
	}
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
		"chmod":                  {true, false, machine, unix.SYS_FCHMODAT, 0, unix.SECCOMP_RET_USER_NOTIF},
		"chmod in namespaces":    {false, false, machine, unix.SYS_FCHMODAT, 0, allow},
		"setxattrat":             {true, false, machine, unix.SYS_SETXATTRAT, 0, enosys},
		"own limits":             {true, true, machine, unix.SYS_PRLIMIT64, 0, allow},
		"limits of another":      {false, false, machine, unix.SYS_PRLIMIT64, 42, eperm},
		"ptrace":                 {true, true, machine, unix.SYS_PTRACE, 0, eperm},
		"ptrace, alone":          {false, false, machine, unix.SYS_PTRACE, 0, allow},
		"memory of a rank":       {false, false, machine, unix.SYS_PROCESS_VM_READV, 9, allow},
		"shared memory":          {true, true, machine, unix.SYS_SHMGET, 0, eperm},
		"unix socket":            {true, true, machine, unix.SYS_SOCKET, unix.AF_UNIX, eperm},
		"unix socket, alone":     {false, false, machine, unix.SYS_SOCKET, unix.AF_UNIX, allow},
		"internet socket":        {true, true, machine, unix.SYS_SOCKET, unix.AF_INET, allow},
		"emptying a file":        {true, true, machine, unix.SYS_TRUNCATE, 0, eperm},
		"emptying one, alone":    {false, false, machine, unix.SYS_TRUNCATE, 0, allow},
		"mount, by 32 bits":      {false, false, unix.AUDIT_ARCH_I386, 21, 0, enosys},
		"another ABI's number":   {false, false, machine, otherABI | unix.SYS_WRITE, 0, enosys},
		"a socket to the host":   {false, false, machine, unix.SYS_SOCKET, unix.AF_VSOCK, unix.SECCOMP_RET_ERRNO | uint32(unix.EAFNOSUPPORT)},
		"own nice value":         {true, true, machine, unix.SYS_SETPRIORITY, unix.PRIO_PROCESS, allow},
		"nice values of a user":  {true, true, machine, unix.SYS_SETPRIORITY, unix.PRIO_USER, eperm},
		"the same, alone":        {false, false, machine, unix.SYS_SETPRIORITY, unix.PRIO_USER, allow},
		"queue":                  {true, true, machine, unix.SYS_MQ_OPEN, 0, eperm},
		"queue, alone":           {false, false, machine, unix.SYS_MQ_OPEN, 0, allow},
		"memory that is secret":  {false, false, machine, unix.SYS_MEMFD_SECRET, 0, eperm},
		"being traced":           {true, true, machine, unix.SYS_PRCTL, unix.PR_GET_DUMPABLE, allow},
		"being no more traced":   {false, false, machine, unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, unix.SECCOMP_RET_ERRNO},
		"unshare, for sandboxes": {true, true, machine, unix.SYS_UNSHARE, unix.CLONE_NEWUSER, allow},
	} {
		if got := decide(t, c.others, c.sockets, c.arch, c.number, c.arg); got != c.want {
			t.Errorf("%s: got %#x, want %#x", name, got, c.want)
		}
	}
}

// Of some calls later arguments decide.
func TestFilterOfLaterArguments(t *testing.T) {
	const allow = unix.SECCOMP_RET_ALLOW
	for name, c := range map[string]struct {
		number uint32
		args   []uint32
		errno  unix.Errno
	}{
		"a connected pair":         {unix.SYS_SOCKETPAIR, []uint32{unix.AF_UNIX, unix.SOCK_STREAM | unix.SOCK_CLOEXEC}, 0},
		"a pair for datagrams":     {unix.SYS_SOCKETPAIR, []uint32{unix.AF_UNIX, unix.SOCK_DGRAM | unix.SOCK_CLOEXEC}, unix.EPERM},
		"a unix socket":            {unix.SYS_SOCKET, []uint32{unix.AF_UNIX, unix.SOCK_STREAM}, unix.EPERM},
		"routes":                   {unix.SYS_SOCKET, []uint32{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE}, 0},
		"packet filters":           {unix.SYS_SOCKET, []uint32{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER}, unix.EPROTONOSUPPORT},
		"datagrams of a number":    {unix.SYS_SOCKET, []uint32{unix.AF_INET, unix.SOCK_DGRAM, unix.NETLINK_NETFILTER}, 0},
		"nice of itself":           {unix.SYS_SETPRIORITY, []uint32{unix.PRIO_PROCESS, 0, 5}, 0},
		"nice of another":          {unix.SYS_SETPRIORITY, []uint32{unix.PRIO_PROCESS, 42, 5}, unix.EPERM},
		"a thread's usual policy":  {unix.SYS_SCHED_SETSCHEDULER, []uint32{42, unix.SCHED_NORMAL}, 0},
		"its own for long work":    {unix.SYS_SCHED_SETSCHEDULER, []uint32{0, unix.SCHED_BATCH}, 0},
		"another's, too":           {unix.SYS_SCHED_SETSCHEDULER, []uint32{42, unix.SCHED_BATCH}, unix.EPERM},
		"a policy that starves":    {unix.SYS_SCHED_SETSCHEDULER, []uint32{42, unix.SCHED_IDLE}, unix.EPERM},
		"own attributes":           {unix.SYS_SCHED_SETATTR, []uint32{0}, 0},
		"attributes of another":    {unix.SYS_SCHED_SETATTR, []uint32{42}, unix.EPERM},
		"disk priority of itself":  {unix.SYS_IOPRIO_SET, []uint32{ioprioProcess, 0}, 0},
		"disk priority of a user":  {unix.SYS_IOPRIO_SET, []uint32{3, 0}, unix.EPERM},
		"disk priority of another": {unix.SYS_IOPRIO_SET, []uint32{ioprioProcess, 42}, unix.EPERM},
	} {
		want := uint32(allow)
		if c.errno != 0 {
			want = unix.SECCOMP_RET_ERRNO | uint32(c.errno)
		}
		if got := decide(t, true, true, machine, c.number, c.args...); got != want {
			t.Errorf("%s: got %#x, want %#x", name, got, want)
		}
	}
}
