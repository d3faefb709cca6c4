package process

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"zorilla/internal/needs"
	"zorilla/jobs/launch"
	"zorilla/jobs/proc"
	"zorilla/jobs/work"
)

// oneAfterTheOther runs workers of different jobs, and returns their launchers and the
// supervisor of the last one.
func oneAfterTheOther(t *testing.T, node *Runner, specs ...Spec) (launchers []int, supervisor int) {
	t.Helper()
	for _, s := range specs {
		w := startAt(t, node, s)[0]
		if e := await(t, w); e.Code != 0 {
			t.Fatalf("%+v", e)
		}
		var rec record
		if err := load(s.Root, recordEntry, &rec); err != nil {
			t.Fatal(err)
		}
		launchers, supervisor = append(launchers, rec.Launcher.PID), rec.Supervisor.PID
	}
	return launchers, supervisor
}

// launcherOf waits for a supervisor's launcher.
func launcherOf(t *testing.T, supervisor int) int {
	t.Helper()
	for end := time.Now().Add(deadline); time.Now().Before(end); _, _ = unix.Poll(nil, 1) {
		for _, pid := range proc.Descendants(supervisor) {
			if b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline")); err == nil && strings.HasPrefix(string(b), launch.Name) {
				return pid
			}
		}
	}
	t.Fatalf("supervisor %d has no launcher: %v", supervisor, proc.Descendants(supervisor))
	return 0
}

// A supervisor that was asked to be there has a launcher when the worker comes, and has
// another one ready when that has ended.
func TestSupervisorsAndLaunchersAreReady(t *testing.T) {
	needNamespaces(t)
	node := probed(t, Config{})
	first, second := member(t, "one", "true"), member(t, "two", "true")
	together(t, &first, &second)
	node.Warm("one", filepath.Dir(first.Root))
	node.Warm("one", filepath.Dir(first.Root))
	node.hosts.mu.Lock()
	warm := len(node.hosts.idle)
	ready := launcherOf(t, node.hosts.idle[0].cmd.Process.Pid)
	node.hosts.mu.Unlock()
	if warm != 1 {
		t.Errorf("%d supervisors were started", warm)
	}
	launchers, supervisor := oneAfterTheOther(t, node, first)
	if launchers[0] != ready {
		t.Errorf("launcher %d was ready, %d was used", ready, launchers[0])
	}
	ready = launcherOf(t, supervisor)
	launchers, again := oneAfterTheOther(t, node, second)
	if launchers[0] != ready || again != supervisor {
		t.Errorf("supervisor %d with launcher %d was ready, %d with %d was used", supervisor, ready, again, launchers[0])
	}
}

// A launcher that is ready has the network of its machine: one that is to have none does
// not get it.
func TestReadyLauncherIsNotForWorkersWithoutNetwork(t *testing.T) {
	needNamespaces(t)
	node := probed(t, Config{})
	first, second := member(t, "one", "readlink /proc/self/ns/net"), member(t, "two", "readlink /proc/self/ns/net")
	second.Alone = true
	together(t, &first, &second)
	_, supervisor := oneAfterTheOther(t, node, first)
	ready := launcherOf(t, supervisor)
	w := startAt(t, node, second)[0]
	if e := await(t, w); e.Code != 0 {
		t.Fatalf("%+v", e)
	}
	own, err := os.Readlink("/proc/self/ns/net")
	if got := strings.TrimSpace(output(t, w, work.Stdout)); err != nil || !strings.HasPrefix(got, "net:") || got == own {
		t.Errorf("its network is %s, the machine's %s, %v; launcher %d was ready", got, own, err, ready)
	}
}

// A supervisor that looks after one worker after the other does not grow with them.
func TestSupervisorsDoNotGrow(t *testing.T) {
	needs.Root(t) // which alone sees the descriptors of a supervisor
	needNamespaces(t)
	node := probed(t, Config{})
	specs := make([]Spec, 24)
	all := make([]*Spec, len(specs))
	for i := range specs {
		specs[i] = member(t, strconv.Itoa(i), "echo x; echo y >&2")
		all[i] = &specs[i]
	}
	together(t, all...)
	_, before := oneAfterTheOther(t, node, specs[:4]...)
	threads, files := entriesOf(t, before, "task"), entriesOf(t, before, "fd")
	_, after := oneAfterTheOther(t, node, specs[4:]...)
	if before != after {
		t.Fatalf("supervisor %d, then %d", before, after)
	}
	if more := entriesOf(t, after, "task") - threads; more > 8 {
		t.Errorf("%d threads more", more)
	}
	if more := entriesOf(t, after, "fd") - files; more > 8 {
		t.Errorf("%d descriptors more", more)
	}
}

// Workers that overlap have one control socket, however many have ended between: the one
// that stays can be adopted, and the supervisor does not grow.
func TestWorkersThatOverlapShareASocket(t *testing.T) {
	needs.Root(t)
	needNamespaces(t)
	node := probed(t, Config{})
	specs := make([]Spec, 24)
	all := make([]*Spec, len(specs))
	for i := range specs {
		specs[i] = member(t, "job", "true")
		all[i] = &specs[i]
	}
	together(t, all...)
	specs[0].Args = []string{"/bin/sh", "-c", "echo started; " + gateText}
	stays, err := node.Start(t.Context(), specs[0]) // which nobody awaits: it is left
	if err != nil {
		t.Fatal(err)
	}
	awaitOutput(t, stays, 8)
	_, supervisor := oneAfterTheOther(t, node, specs[1:4]...)
	before := entriesOf(t, supervisor, "fd")
	_, again := oneAfterTheOther(t, node, specs[4:]...)
	if more := entriesOf(t, again, "fd") - before; again != supervisor || more > 8 {
		t.Errorf("supervisors %d and %d, %d descriptors more", supervisor, again, more)
	}
	stays.Leave()
	adopted := adopt(t, specs[0].Root) // and removes it at the end
	openGate(t, specs[0].Root)
	if e := await(t, adopted); e.Cause != work.Exited || e.Code != 0 {
		t.Errorf("%+v", e)
	}
}

// entriesOf counts what a directory of a process in /proc holds.
func entriesOf(t *testing.T, pid int, what string) int {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(pid), what))
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
