package process

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"zorilla/jobs/proc"
	"zorilla/jobs/work"
)

// member is the spec of a worker that shares the namespaces of a group: the node is
// not root, or the worker is another user.
func member(t *testing.T, group, text string) Spec {
	spec := script(t, text)
	spec.Group = group
	if os.Geteuid() == 0 {
		spec.UID, spec.GID = nobody, nobody
	}
	spec.Env = []string{"PATH=/usr/bin:/bin", "TMPDIR=" + filepath.Join(spec.Root, tmpDir)}
	return spec
}

// together makes one directory hold the roots of the specs, as that of a node does.
func together(t *testing.T, specs ...*Spec) {
	t.Helper()
	dir := t.TempDir()
	for i, s := range specs {
		root := filepath.Join(dir, string(rune('a'+i)))
		if err := MakeRoot(root, "test"); err != nil {
			t.Fatal(err)
		}
		s.Root = root
		s.Env = []string{"PATH=/usr/bin:/bin", "TMPDIR=" + filepath.Join(root, tmpDir)}
	}
}

func needNamespaces(t *testing.T) {
	t.Helper()
	if known, err := enforced(); err != nil || !slices.Contains(known.enforces, Namespaces) {
		t.Fatalf("this machine has no namespaces for its users: what this test shows cannot be shown here (%v, %v)", known.enforces, err)
	}
}

// startAll starts workers at one node.
func startAll(t *testing.T, specs ...Spec) []Worker {
	t.Helper()
	return startAt(t, probed(t, Config{}), specs...)
}

func startAt(t *testing.T, r *Runner, specs ...Spec) []Worker {
	t.Helper()
	var all []Worker
	for _, s := range specs {
		w, err := r.Start(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			w.Stop(0, 0)
			await(t, w)
		})
		all = append(all, w)
	}
	return all
}

// Workers of one job at one node see each other's processes, shared memory and
// temporary files, as the ranks of a parallel program must, and those of no other.
func TestWorkersOfAJobShareTheirNamespaces(t *testing.T) {
	needNamespaces(t)
	see := `echo $$ >/dev/shm/$0; until test -e /dev/shm/one -a -e /dev/shm/two; do sleep 0.01; done
kill -0 $(cat /dev/shm/one) && kill -0 $(cat /dev/shm/two) && echo both; sleep 0.3`
	one, two := member(t, "job", see), member(t, "job", see)
	other := member(t, "other", `sleep 0.1; ls /dev/shm; echo /proc/[0-9]* | wc -w`)
	one.Args, two.Args = append(one.Args, "one"), append(two.Args, "two")
	together(t, &one, &two, &other)
	all := startAll(t, one, two, other)
	for i, w := range all[:2] {
		if e := await(t, w); e.Code != 0 || output(t, w, work.Stdout) != "both\n" {
			t.Errorf("worker %d: %+v %q %q", i, e, output(t, w, work.Stdout), output(t, w, work.Stderr))
		}
	}
	// The launcher, a shell or two, and what counts.
	if e, out := await(t, all[2]), output(t, all[2], work.Stdout); e.Code != 0 || out != "3\n" && out != "4\n" {
		t.Errorf("the other job: %+v %q %q", e, output(t, all[2], work.Stdout), output(t, all[2], work.Stderr))
	}
}

// The end of a worker is that of all it has started, and of nothing else of its job.
func TestWorkersOfAJobEndOneByOne(t *testing.T) {
	needNamespaces(t)
	stays, goes, killed := member(t, "job", runaway+gateText+"echo done"), member(t, "job", runaway+"exit 3"), member(t, "job", runaway+"wait")
	cleaned := member(t, "job", runaway+"wait")
	together(t, &stays, &goes, &killed, &cleaned)
	all := startAll(t, stays, goes, killed, cleaned)
	awaitOutput(t, all[0], 8)
	awaitOutput(t, all[2], 8)
	left, its := pids(t, stays.Root, "left"), pids(t, killed.Root, "left")
	if e := await(t, all[1]); e.Code != 3 || e.Cause != work.Exited {
		t.Errorf("%+v", e)
	}
	all[2].Stop(0, 0)
	if e := await(t, all[2]); e.Cause != work.Stopped {
		t.Errorf("%+v", e)
	}
	mustBeGone(t, its)
	awaitOutput(t, all[3], 8)
	its = pids(t, cleaned.Root, "left")
	if err := CleanRoot(cleaned.Root, nil); err != nil {
		t.Error(err)
	}
	mustBeGone(t, its)
	var rec record
	if err := load(stays.Root, recordEntry, &rec); err != nil {
		t.Fatal(err)
	}
	for _, pid := range proc.Descendants(rec.Launcher.PID) {
		env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err == nil && len(env) > 0 && !strings.Contains(string(env), stays.Root) {
			t.Errorf("process %d is left: %q", pid, env)
		}
	}
	for _, p := range left {
		if !p.Alive() {
			t.Errorf("process %d of another worker was killed", p.PID)
		}
	}
	for _, s := range []Spec{goes, killed} {
		if err := CleanRoot(s.Root, nil); err != nil {
			t.Error(err)
		}
	}
	openGate(t, stays.Root)
	if e := await(t, all[0]); e.Code != 0 || output(t, all[0], work.Stdout) != "started\ndone\n" {
		t.Errorf("%+v %q", e, output(t, all[0], work.Stdout))
	}
	mustBeGone(t, append(left, rec.Launcher))
}

// A supervisor is one for all workers of a job, and waits a moment for those of
// another one. Whoever kills it ends them all, and no other job.
func TestSupervisorOfAJobIsKilled(t *testing.T) {
	needNamespaces(t)
	text := "echo started; sleep 1000"
	a, b, other := member(t, "job", text), member(t, "job", text), member(t, "other", text)
	together(t, &a, &b, &other)
	all := startAll(t, a, b, other)
	for _, w := range all {
		awaitOutput(t, w, 8)
	}
	pid := SupervisorOf(a.Root)
	if pid == 0 || SupervisorOf(b.Root) != pid || SupervisorOf(other.Root) == pid {
		t.Fatalf("supervisors are %d, %d and %d", pid, SupervisorOf(b.Root), SupervisorOf(other.Root))
	}
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for _, w := range all[:2] {
		if e := await(t, w); e.Cause != work.Lost || !strings.Contains(e.Detail, "killed") {
			t.Errorf("%+v", e)
		}
	}
	if isClosed(all[2].Done()) {
		t.Error("a worker of another job has ended")
	}
}

// Workers that share a launcher run their tasks beside each other, and never wait for
// what another one does.
func TestTasksOfWorkersOfAJob(t *testing.T) {
	needNamespaces(t)
	const n = 300
	var specs []Spec
	for range 3 {
		s := member(t, "job", "")
		s.Args = []string{"true"}
		s.Tasks = &TaskSpec{IDs: []work.TaskIDs{{First: 1, Last: n, Step: 1}}}
		specs = append(specs, s)
	}
	together(t, &specs[0], &specs[1], &specs[2])
	all := startAll(t, specs...)
	for _, w := range all {
		w.Tasks().Add(0, []TaskRange{{0, n}}, true)
	}
	for i, w := range all {
		if e := await(t, w); e.Code != 0 || e.Cause != work.Exited {
			t.Errorf("worker %d: %+v", i, e)
		}
		all, _, _ := results(t, w)
		for j, r := range all {
			if r.Code != 0 {
				t.Errorf("worker %d: task %d ended with %d", i, j+1, r.Code)
			}
		}
	}
}

// What one of several workers starts and hides in namespaces of its own, without a parent,
// is in nobody's limits: it has no time to use them.
func TestOrphanInNamespacesOfItsOwn(t *testing.T) {
	needNamespaces(t)
	hide := `mkfifo held; (unshare -U -u setsid sh -c 'echo $$ >left; exec sleep 1005' >held &); `
	gone := member(t, "job", hide+`cat held; echo gone; exit 3`)
	ends := member(t, "job", hide+`exec 3<held; until test -s left; do sleep 0.01; done; exit 4`)
	other := member(t, "job", gateText+"echo done")
	gone.Memory = 1 << 30 // is watched
	together(t, &gone, &ends, &other)
	node := probed(t, Config{})
	all := startAt(t, node, other, gone)
	if e := await(t, all[1]); e.Code != 3 || output(t, all[1], work.Stdout) != "gone\n" {
		t.Errorf("a hidden process goes on: %+v %q", e, output(t, all[1], work.Stderr))
	}
	var rec record
	if err := load(other.Root, recordEntry, &rec); err != nil {
		t.Fatal(err)
	}
	all = append(all, startAt(t, node, ends)...)
	if e := await(t, all[2]); e.Code != 4 {
		t.Errorf("%+v %q", e, output(t, all[2], work.Stderr))
	}
	for _, pid := range proc.Descendants(rec.Launcher.PID) {
		if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && strings.Contains(string(b), "1005") {
			t.Errorf("process %d is left: %q", pid, b)
		}
	}
	openGate(t, other.Root)
	if e := await(t, all[0]); e.Code != 0 || output(t, all[0], work.Stdout) != "done\n" {
		t.Errorf("%+v %q", e, output(t, all[0], work.Stdout))
	}
}

// A launcher that is caught in the start of a worker is ended with it when its time is up.
func TestWalltimeHoldsAtTheStart(t *testing.T) {
	needNamespaces(t)
	first, second := member(t, "job", "echo started; sleep 1000"), member(t, "job", "exit 3")
	second.Walltime = 50 * time.Millisecond
	together(t, &first, &second)
	node := probed(t, Config{})
	one := startAt(t, node, first)[0]
	awaitOutput(t, one, 8)
	var rec record
	if err := load(first.Root, recordEntry, &rec); err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(rec.Launcher.PID, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if rec.Launcher.Alive() {
			_ = unix.Kill(rec.Launcher.PID, unix.SIGCONT)
		}
	})
	if e := await(t, startAt(t, node, second)[0]); e.Cause != work.Walltime || e.Code != codeTimeout {
		t.Errorf("%+v", e)
	}
	if e := await(t, one); e.Cause != work.Failed {
		t.Errorf("%+v", e)
	}
}

// A worker whose end cannot be written down takes none of its job along.
func TestEndThatCannotBeWrittenDown(t *testing.T) {
	needNamespaces(t)
	first, second := member(t, "job", "echo started; "+gateText), member(t, "job", "echo started; "+gateText)
	together(t, &first, &second)
	all := startAll(t, first, second)
	for _, w := range all {
		awaitOutput(t, w, 8)
	}
	var rec record
	if err := load(first.Root, recordEntry, &rec); err != nil {
		t.Fatal(err)
	}
	var before unix.Rlimit
	few := func(now *unix.Rlimit) {
		if err := unix.Prlimit(rec.Supervisor.PID, unix.RLIMIT_NOFILE, now, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Prlimit(rec.Supervisor.PID, unix.RLIMIT_NOFILE, nil, &before); err != nil {
		t.Fatal(err)
	}
	few(&unix.Rlimit{Cur: 3, Max: before.Max})
	openGate(t, first.Root)
	if e := await(t, all[0]); e.Cause != work.Lost {
		t.Errorf("%+v", e)
	}
	few(&before)
	openGate(t, second.Root)
	if e := await(t, all[1]); e.Cause != work.Exited || e.Code != 0 {
		t.Errorf("%+v", e)
	}
}
