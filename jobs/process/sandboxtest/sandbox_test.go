package sandboxtest

import (
	_ "embed"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"zorilla/internal/needs"
)

//go:embed testdata/attacks.py
var attacks []byte

// calls are the numbers that this machine has for system calls.
var calls = map[string]int{
	"unshare": unix.SYS_UNSHARE, "setns": unix.SYS_SETNS, "kill": unix.SYS_KILL, "tkill": unix.SYS_TKILL, "tgkill": unix.SYS_TGKILL,
	"rt_sigqueueinfo": unix.SYS_RT_SIGQUEUEINFO, "rt_tgsigqueueinfo": unix.SYS_RT_TGSIGQUEUEINFO, "timer_create": unix.SYS_TIMER_CREATE,
	"pidfd_open": unix.SYS_PIDFD_OPEN, "pidfd_getfd": unix.SYS_PIDFD_GETFD, "pidfd_send_signal": unix.SYS_PIDFD_SEND_SIGNAL,
	"ptrace": unix.SYS_PTRACE, "process_vm_readv": unix.SYS_PROCESS_VM_READV, "process_vm_writev": unix.SYS_PROCESS_VM_WRITEV,
	"kcmp": unix.SYS_KCMP, "move_pages": unix.SYS_MOVE_PAGES, "get_robust_list": unix.SYS_GET_ROBUST_LIST,
	"setpriority": unix.SYS_SETPRIORITY, "ioprio_set": unix.SYS_IOPRIO_SET, "sched_setscheduler": unix.SYS_SCHED_SETSCHEDULER,
	"sched_setparam": unix.SYS_SCHED_SETPARAM, "sched_setattr": unix.SYS_SCHED_SETATTR,
	"mount": unix.SYS_MOUNT, "umount2": unix.SYS_UMOUNT2, "pivot_root": unix.SYS_PIVOT_ROOT, "fsopen": unix.SYS_FSOPEN, "fspick": unix.SYS_FSPICK,
	"open_tree": unix.SYS_OPEN_TREE, "open_tree_attr": unix.SYS_OPEN_TREE_ATTR, "move_mount": unix.SYS_MOVE_MOUNT, "mount_setattr": unix.SYS_MOUNT_SETATTR,
	"setuid": unix.SYS_SETUID, "setgid": unix.SYS_SETGID, "setresuid": unix.SYS_SETRESUID, "setgroups": unix.SYS_SETGROUPS,
	"clock_settime": unix.SYS_CLOCK_SETTIME, "settimeofday": unix.SYS_SETTIMEOFDAY, "sethostname": unix.SYS_SETHOSTNAME, "setdomainname": unix.SYS_SETDOMAINNAME,
	"syslog": unix.SYS_SYSLOG, "acct": unix.SYS_ACCT, "swapoff": unix.SYS_SWAPOFF, "reboot": unix.SYS_REBOOT,
	"init_module": unix.SYS_INIT_MODULE, "delete_module": unix.SYS_DELETE_MODULE, "kexec_load": unix.SYS_KEXEC_LOAD, "kexec_file_load": unix.SYS_KEXEC_FILE_LOAD,
	"bpf": unix.SYS_BPF, "perf_event_open": unix.SYS_PERF_EVENT_OPEN, "userfaultfd": unix.SYS_USERFAULTFD, "io_uring_setup": unix.SYS_IO_URING_SETUP,
	"fchmodat2": unix.SYS_FCHMODAT2, "setxattrat": unix.SYS_SETXATTRAT, "memfd_secret": unix.SYS_MEMFD_SECRET, "vhangup": unix.SYS_VHANGUP, "open_by_handle_at": unix.SYS_OPEN_BY_HANDLE_AT, "fanotify_init": unix.SYS_FANOTIFY_INIT,
	"lookup_dcookie": unix.SYS_LOOKUP_DCOOKIE, "add_key": unix.SYS_ADD_KEY, "keyctl": unix.SYS_KEYCTL, "request_key": unix.SYS_REQUEST_KEY,
	"mq_open": unix.SYS_MQ_OPEN, "shmget": unix.SYS_SHMGET, "semget": unix.SYS_SEMGET, "msgget": unix.SYS_MSGGET,
}

// outside is what is not a worker's, and how attackers are told of it.
type outside struct {
	victim int
	before [3]string // state, nice value and policy of it
	env    []string
}

// surround makes a process, sockets and a secret file of a user's.
func surround(t *testing.T, uid int) outside {
	t.Helper()
	dir, err := os.MkdirTemp("", "wall") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	opened(t, dir)
	socket, secret, abstract := filepath.Join(dir, "socket"), filepath.Join(dir, "secret"), "sandboxtest-"+strconv.Itoa(os.Getpid())
	for _, path := range []string{socket, "@" + abstract} {
		ln, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = ln.Close() })
	}
	if err := os.WriteFile(secret, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	nameless, err := os.CreateTemp(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	defer nameless.Close()
	if err := os.Remove(nameless.Name()); err != nil {
		t.Fatal(err)
	}
	victim := exec.Command("sleep", "3600")
	victim.Args[0], victim.ExtraFiles = "victim", []*os.File{nameless}
	if victim.SysProcAttr = (&syscall.SysProcAttr{Setpgid: true}); uid >= 0 {
		victim.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}
		if err := errors.Join(os.Chown(socket, uid, uid), os.Chown(secret, uid, uid), nameless.Chown(uid, uid)); err != nil {
			t.Fatal(err)
		}
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = victim.Process.Kill()
		_ = victim.Wait()
	})
	numbers, err := json.Marshal(calls)
	if err != nil {
		t.Fatal(err)
	}
	pid := victim.Process.Pid
	for state := ""; state != "S"; {
		state = stateOf(t, pid)[0]
	}
	return outside{pid, stateOf(t, pid), []string{"CALLS=" + string(numbers), "NODE=" + strconv.Itoa(os.Getpid()), "VICTIM=" + strconv.Itoa(pid),
		"SOCKET=" + socket, "ABSTRACT=" + abstract, "SECRET=" + secret}}
}

// stateOf returns the state, the nice value and the policy of a process.
func stateOf(t *testing.T, pid int) [3]string {
	t.Helper()
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	_, rest, _ := strings.Cut(string(b), ") ")
	f := strings.Fields(rest)
	if err != nil || len(f) < 40 {
		t.Fatalf("%v %q", err, b)
	}
	return [3]string{f[0], f[16], f[38]}
}

// unharmed makes sure that nothing has changed for the victim.
func (o *outside) unharmed(t *testing.T) {
	t.Helper()
	if now := stateOf(t, o.victim); now != o.before {
		t.Errorf("another process of the user had %q, has %q", o.before, now)
	}
}

// A worker wins nothing by what others have won walls by. Only the processors that others
// of its user run on can be changed, without namespaces, and what the kernel lets a user set
// of his processes in /proc: docs/sandbox.md says so.
func TestNothingIsWon(t *testing.T) {
	eachWay(t, func(t *testing.T, w way) {
		o := surround(t, w.uid)
		spec := w.spec(t, map[string][]byte{"attacks.py": attacks}, "python3", "attacks.py")
		spec.Env = append(spec.Env, o.env...)
		e, out := run(t, w.runner(t), spec)
		tried := 0
		for line := range strings.Lines(out) {
			name, got, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
			_, got, _ = strings.Cut(got, "\t")
			if open := w.basic && (w.uid >= 0 || os.Geteuid() != 0) && (name == "processors_of_others" || name == "settings_of_others"); !ok || (got != "") != open {
				t.Errorf("%s: %s", name, got)
			}
			tried++
		}
		if e.Code != 0 || tried < 20 {
			t.Errorf("%d attacks, %+v", tried, e)
		}
		o.unharmed(t)
	})
}

//go:embed testdata/changes.py
var changes []byte

// Whatever judges them: changes of its own files are a worker's as without walls.
func TestChangesOfOwnFiles(t *testing.T) {
	eachWay(t, func(t *testing.T, w way) {
		e, out := run(t, w.runner(t), w.spec(t, map[string][]byte{"changes.py": changes}, "python3", "changes.py"))
		if e.Code != 0 || out != "all tried\n" {
			t.Errorf("%+v: %s", e, out)
		}
	})
}

// The attacks are some: who is not confined wins by them.
func TestAttacksWinOutside(t *testing.T) {
	needs.Programs(t, "python3")
	uid := -1
	if os.Geteuid() == 0 {
		uid = strangerUID
	}
	o := surround(t, uid)
	dir := opened(t, t.TempDir())
	if err := os.WriteFile(filepath.Join(dir, "attacks.py"), attacks, 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/usr/bin/python3", filepath.Join(dir, "attacks.py"), "outside")
	cmd.Dir, cmd.Env = "/tmp", append([]string{"PATH=/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE=1"}, o.env...)
	if uid >= 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) != 3 || f[2] == "" || strings.Contains(f[2], "(broken") {
			t.Errorf("won nothing: %q", line)
		}
	}
}

// Nodes are ordinary users' mostly: where the tests run as root, they run as one, too.
func TestAsAnOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("this user is one: all tests run anyway")
		return
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	dir := opened(t, t.TempDir())
	program, tmp := filepath.Join(dir, "sandboxtest"), filepath.Join(dir, "tmp")
	if err := errors.Join(os.WriteFile(program, b, 0o755), os.Mkdir(tmp, 0o755), os.Chown(tmp, strangerUID, strangerUID)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program)
	cmd.Dir, cmd.Env = tmp, []string{"PATH=/usr/bin:/bin", "TMPDIR=" + tmp, "HOME=" + tmp, "GORACE=atexit_sleep_ms=0"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(strangerUID), Gid: uint32(strangerUID)}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
