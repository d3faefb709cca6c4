package cgroup

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestMain makes the test binary a command that moves itself nowhere: it only waits, or
// needs memory.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "hog" {
		block := make([]byte, 256<<20)
		for i := 0; i < len(block); i += 4096 {
			block[i] = 1
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestParse(t *testing.T) {
	const (
		v1  = "25 1 0:22 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n26 1 0:23 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
		v2  = "30 1 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
		odd = "30 1 0:26 / /a\\040b rw - cgroup2 cgroup2 rw\nbroken\n31 1 0:27 / /x rw - ext4 /dev/x rw,memory\n"
	)
	for _, c := range []struct{ name, groups, info, want string }{
		{"version 1", "4:memory:/a/b\n1:cpu,cpuacct:/\n0::/\n", v1, "cpu=/sys/fs/cgroup/cpu,cpuacct cpuacct=/sys/fs/cgroup/cpu,cpuacct memory=/sys/fs/cgroup/memory/a/b"},
		{"version 2", "0::/user.slice/a:b\n", v2, "unified=/sys/fs/cgroup/user.slice/a:b"},
		{"a container that sees its own part", "4:memory:/docker/1/x\n", "25 1 0:22 /docker/1 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n", "memory=/sys/fs/cgroup/memory/x"},
		{"a part that is not seen", "4:memory:/other\n", "25 1 0:22 /docker/1 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n", ""},
		{"a path with a space", "0::/c\n", odd, "unified=/a b/c"},
		{"nothing", "", "", ""},
	} {
		m := parse(c.groups, c.info)
		got := map[string]string{}
		for name, h := range m.legacy {
			got[name] = h.own
		}
		if m.unified != nil {
			got["unified"] = m.unified.own
		}
		var text []string
		for _, k := range sorted(got) {
			text = append(text, k+"="+got[k])
		}
		if s := strings.Join(text, " "); s != c.want {
			t.Errorf("%s: %q, want %q", c.name, s, c.want)
		}
	}
}

func sorted(m map[string]string) []string { return (&Place{Dirs: m}).controllers() }

// place makes one for a test. Only root can count on that.
func place(t *testing.T, all Limits) *Place {
	t.Helper()
	p, err := Make(fmt.Sprintf("%s-%d", strings.ReplaceAll(t.Name(), "/", "-"), os.Getpid()), all)
	if err != nil && os.Geteuid() != 0 && errors.Is(err, ErrNone) {
		t.Skip(err) // it is root's to show
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Remove()
		for _, d := range append(p.dirs(), p.Plain) {
			if _, err := os.Lstat(d); err == nil {
				t.Errorf("%s is left", d)
			}
		}
	})
	return &p
}

// begin starts a command in a group, by the way that a launcher takes.
func begin(t *testing.T, g *Group, args ...string) (pid int, err error) {
	t.Helper()
	files, err := g.JoinFiles()
	if err != nil {
		t.Fatal(err)
	}
	back, err := g.Way().Files()
	if err != nil {
		t.Fatal(err)
	}
	way := numbersOf(t, back)
	defer func() {
		for _, fd := range way {
			_ = unix.Close(fd)
		}
	}()
	joiner, err := NewJoiner(numbersOf(t, files), way)
	if err != nil {
		t.Fatal(err)
	}
	defer joiner.Close()
	path, err := exec.LookPath(args[0])
	if err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	attr := &syscall.ProcAttr{Env: os.Environ(), Sys: &syscall.SysProcAttr{}}
	return joiner.Fork(attr.Sys, func() (int, error) { return syscall.ForkExec(path, args, attr) })
}

// numbersOf returns descriptors of files, and closes the files.
func numbersOf(t *testing.T, files []*os.File) (fds []int) {
	t.Helper()
	for _, f := range files {
		fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 3)
		if err != nil {
			t.Fatal(err)
		}
		fds = append(fds, fd)
	}
	closeAll(files)
	return fds
}

func wait(t *testing.T, pid int) syscall.WaitStatus {
	t.Helper()
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &status, 0, nil); err != nil {
		t.Fatal(err)
	}
	return status
}

// members lists the processes of a group in each hierarchy.
func members(g *Group) map[string]string {
	all := map[string]string{}
	for _, dir := range g.all {
		b, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		all[dir] = strings.TrimSpace(string(b))
	}
	return all
}

// What counts is the scheduler that a disk has, not those that it could have.
func TestWeighs(t *testing.T) {
	disks := t.TempDir()
	for i, c := range []struct {
		scheduler string
		want      bool
	}{{"[none] mq-deadline kyber bfq\n", false}, {"none mq-deadline kyber [bfq]\n", true}} {
		queue := filepath.Join(disks, fmt.Sprint("sd", i), "queue")
		if err := errors.Join(os.MkdirAll(queue, 0o755), os.WriteFile(filepath.Join(queue, "scheduler"), []byte(c.scheduler), 0o644)); err != nil {
			t.Fatal(err)
		}
		if got := weighs(disks); got != c.want {
			t.Errorf("with %q: %t", c.scheduler, got)
		}
	}
}

// A command is in its group from its beginning on, who starts it is not, and the group
// goes with the last process.
func TestDoor(t *testing.T) {
	p := place(t, Limits{})
	g, err := p.New("one", Limits{Memory: 64 << 20, Processes: 10, Shares: 3})
	if err != nil {
		t.Fatal(err)
	}
	pid, err := begin(t, g, "sleep", "1000")
	if err != nil {
		t.Fatal(err)
	}
	for dir, got := range members(g) {
		if got != fmt.Sprint(pid) {
			t.Errorf("%s: %q, want %d alone", dir, got, pid)
		}
	}
	if g.Remove() {
		t.Error("a group with a process was removed")
	}
	for _, dir := range g.all { // what is half gone does not matter to Kill
		if _, err := os.Lstat(dir); err != nil {
			t.Error(err)
		}
	}
	p.Kill("one")
	if s := wait(t, pid); !s.Signaled() {
		t.Errorf("status %#x", s)
	}
	p.Kill("one")
	for _, dir := range g.all {
		if _, err := os.Lstat(dir); err == nil {
			t.Errorf("%s is left", dir)
		}
	}
}

func TestMemory(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name     string
		all, one int64
		own      bool
	}{{"its own limit", 1 << 30, 64 << 20, true}, {"that of all", 64 << 20, 1 << 30, false}, {"none of its own", 64 << 20, 0, false}} {
		t.Run(c.name, func(t *testing.T) {
			p := place(t, Limits{Memory: c.all})
			g, err := p.New("hog", Limits{Memory: c.one})
			if err != nil {
				t.Fatal(err)
			}
			defer g.Remove()
			neighbour, err := p.New("neighbour", Limits{})
			if err != nil {
				t.Fatal(err)
			}
			calm, err := begin(t, neighbour, "sleep", "1000")
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if pid, _ := syscall.Wait4(calm, nil, syscall.WNOHANG, nil); pid != 0 {
					t.Error("another group was ended, too")
				}
				p.Kill("neighbour")
				_, _ = syscall.Wait4(calm, nil, 0, nil)
			}()
			if kills, _ := g.OutOfMemory(); kills != 0 {
				t.Errorf("%d kills before", kills)
			}
			pid, err := begin(t, g, exe, "hog")
			if err != nil {
				t.Fatal(err)
			}
			if s := wait(t, pid); s.Signal() != unix.SIGKILL {
				t.Errorf("status %#x", s)
			}
			if kills, own := g.OutOfMemory(); kills == 0 || own != c.own {
				t.Errorf("%d kills, by its own limit %v", kills, own)
			}
			if counts := p.Unified || p.Dirs["cpuacct"] != ""; counts != (g.CPU() > 0) {
				t.Errorf("%v of the processors", g.CPU())
			}
		})
	}
}

func TestProcesses(t *testing.T) {
	p := place(t, Limits{})
	g, err := p.New("bomb", Limits{Processes: 8})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Remove()
	pid, err := begin(t, g, "sh", "-c", "for i in 1 2 3 4 5 6 7 8 9; do sleep 1000 & done 2>/dev/null; wait")
	if err != nil {
		t.Fatal(err)
	}
	wait(t, pid) // a shell that cannot fork gives up
	for dir, got := range members(g) {
		if n := len(strings.Fields(got)); n < 1 || n > 8 {
			t.Errorf("%s: %d processes", dir, n)
		}
	}
	p.Kill("bomb")
	for dir, got := range members(g) {
		if got != "" {
			t.Errorf("%s: %q is left", dir, got)
		}
	}
}

// A group with three shares has three times the time of one with one, where both want
// the processors.
func TestShares(t *testing.T) {
	p := place(t, Limits{})
	if p.Dirs["cpu"] == "" {
		t.Fatal("no controller of processors")
	}
	got := map[int]time.Duration{}
	groups := map[int]*Group{}
	pids := map[int][]int{}
	for _, shares := range []int{1, 3} {
		g, err := p.New(fmt.Sprint(shares), Limits{Shares: shares})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Kill(fmt.Sprint(shares))
		groups[shares] = g
	}
	for _, shares := range []int{2, 1} { // the group of a worker that is tried again
		g, err := p.New("again", Limits{Shares: shares})
		if err != nil {
			t.Fatal(err)
		}
		defer g.Remove()
		file, want := "cpu.shares", int64(cpuShares*shares)
		if p.Unified {
			file, want = "cpu.weight", int64(weight*shares)
		}
		if got := number(filepath.Join(g.dirs["cpu"], file)); got != want {
			t.Errorf("%d shares: %s %d, want %d", shares, file, got, want)
		}
	}
	// On one processor: where others have some as well, which of the groups is on which is not
	// balanced by their shares.
	var all, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	for i := range 1024 {
		if all.IsSet(i) {
			one.Set(i)
			break
		}
	}
	for range 2 {
		for shares := range maps.Keys(groups) {
			pid, err := begin(t, groups[shares], "sh", "-c", "ulimit -t 20; while :; do :; done")
			if err == nil {
				err = unix.SchedSetaffinity(pid, &one)
			}
			if err != nil {
				t.Fatal(err)
			}
			pids[shares] = append(pids[shares], pid)
		}
	}
	for got[3] < 1500*time.Millisecond { // measured in what they get, however busy the machine is
		_, _ = unix.Poll(nil, 20)
		clear(got)
		for shares, all := range pids {
			for _, pid := range all {
				got[shares] += used(t, pid)
			}
		}
	}
	for shares := range groups {
		p.Kill(fmt.Sprint(shares))
		for _, pid := range pids[shares] {
			_, _ = syscall.Wait4(pid, nil, 0, nil)
		}
	}
	if ratio := got[3].Seconds() / got[1].Seconds(); ratio < 1.5 {
		t.Errorf("%v and %v: ratio %.1f, want about 3", got[3], got[1], ratio)
	}
}

// used returns the processor time of a process, see clock_getcpuclockid(3).
func used(t *testing.T, pid int) time.Duration {
	t.Helper()
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|2), &ts); err != nil {
		t.Fatal("it ended too early")
	}
	return time.Duration(ts.Nano())
}

// Places that are empty go when another is made, and come back when they are wanted.
func TestPlaceIsSweptAway(t *testing.T) {
	p := place(t, Limits{Processes: 100})
	second := place2(t)
	for _, dir := range p.dirs() {
		if _, err := os.Lstat(dir); err == nil {
			t.Errorf("%s was not swept away", dir)
		}
	}
	g, err := p.New("worker", Limits{})
	if err != nil {
		t.Fatal(err)
	}
	sweep(filepath.Dir(second.Dirs["pids"]))
	if b, err := os.ReadFile(filepath.Join(p.Dirs["pids"], "pids.max")); err != nil || strings.TrimSpace(string(b)) != "100" {
		t.Errorf("%q %v", b, err)
	}
	if !g.Remove() {
		t.Error("not removed")
	}
}

func place2(t *testing.T) *Place {
	p, err := Make(fmt.Sprintf("second-%d", os.Getpid()), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Remove)
	return &p
}

func TestMakeRefusesBadNames(t *testing.T) {
	for _, name := range []string{"", "a/b", "a\x00"} {
		if _, err := Make(name, Limits{}); !errors.Is(err, ErrNone) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// Nodes that start sweep, while others make groups, which find a place all the same.
func TestGroupsWhileOthersSweep(t *testing.T) {
	p := place(t, Limits{})
	for i := range 200 {
		var nodes sync.WaitGroup
		for range 4 {
			nodes.Go(func() {
				for _, dir := range p.dirs() {
					sweep(filepath.Dir(dir))
				}
			})
		}
		g, err := p.New(fmt.Sprint(i), Limits{Processes: 5})
		nodes.Wait()
		if err != nil {
			t.Fatal(err)
		}
		if !g.Remove() {
			t.Error("not removed")
		}
	}
}
