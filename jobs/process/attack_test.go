package process

import (
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"zorilla/jobs/proc"
	"zorilla/jobs/sandbox"
	"zorilla/jobs/work"
)

// attacks are what a worker tries; each returns what it got, "" if that was nothing.
var attacks = map[string]func(args []string) string{
	"ptrace": func([]string) string {
		return reached(func(pid int) error {
			_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(pid), 0, 0, 0, 0)
			return failed(errno)
		})
	},
	"prlimit": func([]string) string {
		return reached(func(pid int) error { return unix.Prlimit(pid, unix.RLIMIT_CPU, nil, &unix.Rlimit{}) })
	},
	"memory of others": func([]string) string {
		return reached(func(pid int) error {
			f, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
			if err == nil {
				_ = f.Close()
			}
			return err
		})
	},
	"environment of others": func([]string) string {
		return reached(func(pid int) error {
			b, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
			if err == nil && len(b) == 0 { // as of the kernel's own
				err = io.EOF
			}
			return err
		})
	},
	"root of others": func([]string) string {
		return reached(func(pid int) error {
			_, err := os.ReadDir(fmt.Sprintf("/proc/%d/root/", pid))
			return err
		})
	},
	"unix socket": func(args []string) string {
		var got []string
		for _, path := range args {
			if conn, err := net.Dial("unix", path); err == nil {
				_ = conn.Close()
				got = append(got, path)
			}
		}
		return strings.Join(got, " ")
	},
	"mount": func([]string) string {
		if unix.Mount("tmpfs", "/tmp", "tmpfs", 0, "") == nil {
			return "mounted"
		}
		return ""
	},
	"user namespace": func([]string) string { // it may make one, and win nothing by it
		if unix.Unshare(unix.CLONE_NEWUSER|unix.CLONE_NEWNS) == nil && unix.Mount("tmpfs", "/etc", "tmpfs", 0, "") == nil {
			return "mounted"
		}
		return ""
	},
	"other namespaces": func([]string) string {
		fd, err := unix.Open("/proc/1/ns/mnt", unix.O_RDONLY, 0)
		if err == nil && unix.Setns(fd, unix.CLONE_NEWNS) == nil {
			return "entered"
		}
		return ""
	},
	"control groups": func([]string) string {
		var got []string
		_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() && (e.Name() == "tasks" || e.Name() == "cgroup.procs" || e.Name() == "release_agent") {
				if f, err := os.OpenFile(path, os.O_WRONLY, 0); err == nil {
					_ = f.Close()
					got = append(got, path)
				}
			}
			return nil
		})
		return strings.Join(got, " ")
	},
	"the machine in proc": func([]string) string {
		var got []string
		entries, _ := os.ReadDir("/proc")
		for _, e := range entries {
			if _, err := strconv.Atoi(e.Name()); err == nil || e.Name() == "pressure" || e.Type()&fs.ModeSymlink != 0 {
				continue // a process; how loaded the machine is, which anybody may have watched
			}
			_ = filepath.WalkDir("/proc/"+e.Name(), func(path string, d fs.DirEntry, err error) error {
				if err != nil || !d.Type().IsRegular() || path == "/proc/sys/kernel/ns_last_pid" { // which the kernel opens for all, and lets nobody write
					return nil
				}
				if f, err := os.OpenFile(path, os.O_WRONLY, 0); err == nil {
					_ = f.Close()
					got = append(got, path)
				}
				return nil
			})
		}
		return strings.Join(got, " ")
	},
	"io_uring": func([]string) string {
		var params [120]byte
		if fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 4, uintptr(unsafe.Pointer(&params)), 0); errno == 0 {
			return "ring " + strconv.Itoa(int(fd))
		}
		return ""
	},
	"system": func([]string) string {
		var got []string
		for _, f := range []string{"/etc/zorilla-test", "/usr/zorilla-test", "/proc/sysrq-trigger", "/proc/sys/kernel/hostname", "/sys/kernel/profiling"} {
			if file, err := os.OpenFile(f, os.O_WRONLY|os.O_CREATE, 0o644); err == nil {
				_ = file.Close()
				got = append(got, f)
			}
		}
		return strings.Join(got, " ")
	},
}

// reached tries something with every process but this one.
func reached(try func(pid int) error) string {
	var got []string
	for _, pid := range proc.All() {
		if pid != os.Getpid() && try(pid) == nil {
			got = append(got, strconv.Itoa(pid))
		}
	}
	return strings.Join(got, " ")
}

func failed(errno syscall.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}

// attack is a helper: it tries the named attacks with arguments, and tells.
func attack(args []string) int {
	for name, try := range attacks {
		if got := try(args); got != "" {
			fmt.Printf("%s: %s\n", name, got)
		}
	}
	return 0
}

// eachWay runs a test for workers with and without namespaces, as the user that they
// have in this test, and as another user where the node is root.
func eachWay(t *testing.T, test func(t *testing.T, cfg Config, spec func(mode string, args ...string) Spec)) {
	users := []int{-1}
	if os.Geteuid() == 0 {
		users = append(users, strangerUID)
	}
	for _, uid := range users {
		for _, basic := range []bool{false, true} {
			t.Run(fmt.Sprintf("another user %v, basic %v", uid >= 0, basic), func(t *testing.T) {
				needLandlock(t)
				if !basic {
					needNamespaces(t)
				}
				test(t, Config{Basic: basic, Grace: 100 * time.Millisecond}, func(mode string, args ...string) Spec {
					s := helperSpec(t, mode, args...)
					s.UID, s.GID = uid, uid
					s.Env = []string{"PATH=/usr/bin:/bin", "TMPDIR=" + filepath.Join(s.Root, tmpDir)}
					for dir := s.Root; uid > 0 && dir != "/tmp" && len(dir) > 1; dir = filepath.Dir(dir) {
						_ = os.Chmod(dir, 0o755)
					}
					for dir := filepath.Dir(s.Args[0]); uid > 0 && dir != "/tmp" && len(dir) > 1; dir = filepath.Dir(dir) {
						_ = os.Chmod(dir, 0o755)
					}
					return s
				})
			})
		}
	}
}

// scopes is the version of Landlock from which on it keeps signals and abstract sockets
// within.
const scopes = 6

// What a worker tries against the node, its supervisor and others comes to nothing.
func TestAttacks(t *testing.T) {
	socket, abstract := filepath.Join(t.TempDir(), "socket"), "@zorilla-test-"+strconv.Itoa(os.Getpid())
	paths := []string{socket}
	if sandbox.LandlockVersion() >= scopes { // else it is open, see docs/sandbox.md
		paths = append(paths, abstract)
	}
	for _, path := range paths {
		ln, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
	}
	eachWay(t, func(t *testing.T, cfg Config, spec func(string, ...string) Spec) {
		e, out, stderr := run(t, cfg, spec("attack", paths...))
		if e.Code != 0 || out != "" {
			t.Errorf("%+v\n%s%s", e, out, stderr)
		}
	})
}

// A bomb of processes ends with its worker, all of it, at once.
func TestForkBomb(t *testing.T) {
	eachWay(t, func(t *testing.T, cfg Config, spec func(string, ...string) Spec) {
		s := spec("none")
		s.Args = []string{"/bin/sh", "-c", `ulimit -u 300 2>/dev/null; i=0; while test $i -lt 100; do (echo x; trap "" TERM; while :; do (sleep 0.05 &) & sleep 0.02; done) & i=$((i+1)); done 2>/dev/null; wait`}
		w := start(t, cfg, s)
		awaitOutput(t, w, 100)
		w.Stop(0, 0)
		if e := await(t, w); e.Cause != work.Stopped {
			t.Errorf("%+v", e)
		}
		nothingOf(t, s.Root)
	})
}

// A worker that kills whatever it can reach, its launcher above all, takes nobody
// along, and leaves nobody behind.
func TestWorkerKillsAllItCan(t *testing.T) {
	eachWay(t, func(t *testing.T, cfg Config, spec func(string, ...string) Spec) {
		if cfg.Basic && sandbox.LandlockVersion() < scopes {
			return // who has the same user would be killed, see docs/sandbox.md
		}
		s := spec("none")
		s.Args = []string{"/bin/sh", "-c", `env -i setsid sleep 3011 & (env -i setsid sh -c 'sleep 3012 & sleep 3013' &); echo begun; sleep 0.1; kill -9 -1; kill -9 $PPID; sleep 0.2`}
		other := spec("none")
		other.Args = []string{"/bin/sh", "-c", gateText}
		neighbour := start(t, cfg, other)
		w := start(t, cfg, s)
		await(t, w)
		nothingOf(t, s.Root)
		for _, pid := range proc.All() {
			if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && strings.HasPrefix(string(b), "sleep\x00301") {
				t.Errorf("process %d is left: %q", pid, b)
			}
		}
		openGate(t, other.Root)
		if e := await(t, neighbour); e.Code != 0 {
			t.Errorf("another worker: %+v", e)
		}
	})
}

// Who is the same user, and no worker, can neither trace a supervisor nor read what it
// has in memory; a launcher only without namespaces, since those are the user's.
func TestAttacksFromOutside(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Log("root may do all that: what this test shows is shown as an ordinary user")
		return
	}
	eachWay(t, func(t *testing.T, cfg Config, spec func(string, ...string) Spec) {
		s := spec("none")
		s.Args = []string{"/bin/sh", "-c", "echo started; " + gateText}
		w := start(t, cfg, s)
		awaitOutput(t, w, 8)
		var rec record
		if err := load(s.Root, recordEntry, &rec); err != nil {
			t.Fatal(err)
		}
		guarded := map[string]int{"supervisor": rec.Supervisor.PID}
		if cfg.Basic {
			guarded["launcher"] = rec.Launcher.PID
		}
		for who, pid := range guarded {
			if _, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(pid), 0, 0, 0, 0); errno == 0 {
				t.Errorf("the %s can be traced", who)
			}
			for _, name := range []string{"mem", "environ", "root/etc"} {
				if f, err := os.Open(fmt.Sprintf("/proc/%d/%s", pid, name)); err == nil {
					_ = f.Close()
					t.Errorf("%s of the %s is open", name, who)
				}
			}
		}
		openGate(t, s.Root)
		if e := await(t, w); e.Code != 0 {
			t.Errorf("%+v", e)
		}
	})
}

// nothingOf makes sure that no process is in a root.
func nothingOf(t *testing.T, root string) {
	t.Helper()
	for _, pid := range proc.All() {
		at, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
		if st, serr := proc.ReadStat(pid); err == nil && serr == nil && st.State != 'Z' && strings.HasPrefix(at, root) {
			t.Errorf("process %d is left in %s", pid, at)
		}
	}
}

// What a worker may have at most is set before it begins.
func TestLimitsOfAWorker(t *testing.T) {
	eachWay(t, func(t *testing.T, cfg Config, spec func(string, ...string) Spec) {
		s := spec("none")
		s.Args = []string{"/bin/sh", "-c", "grep -E 'core|processes' /proc/self/limits"}
		e, out, _ := run(t, cfg, s)
		limits := map[string]string{}
		for line := range strings.Lines(out) {
			if f := strings.Fields(line); len(f) > 4 {
				limits[f[1]] = f[len(f)-2]
			}
		}
		if e.Code != 0 || len(limits) != 2 || limits["core"] != "0" {
			t.Errorf("%+v %q", e, out)
		}
		n, err := strconv.Atoi(limits["processes"])
		switch {
		case !cfg.Basic:
			if n != maxProcesses {
				t.Errorf("%v processes", limits)
			}
		case !hasGroups(t): // its user has others, above all this one
			if err != nil || n <= maxProcesses || n > 2*maxProcesses {
				t.Errorf("%v processes", limits)
			}
		}
	})
}
