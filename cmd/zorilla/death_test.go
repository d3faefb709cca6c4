package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"zorilla/internal/seeds"
	"zorilla/jobs"
)

func TestKilledNodeOfAMalleableJob(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	net := realNet(t, 3, "--slots", "2", "--expose", g.dir)
	cmd := net.nodes[1].command(t, "run", "-n", "3..4", "-o", "by-*", "sh", "-c", "echo up; "+g.wait()+"; echo $ZORILLA_ATTEMPT >by-$ZORILLA_RANK")
	stdout, stderr := start(t, cmd)
	expect(t, stdout, "up")
	st := net.nodes[1].job(t, "last", "running", allRun(4))
	victim := net.elsewhere(t, st, 1)
	net.nodes[victim].ends(t, syscall.SIGKILL)

	line := expect(t, stderr, " again (attempt ")
	if !strings.Contains(line, "(attempt 2)") {
		t.Errorf("run says %q", line)
	}
	again := net.nodes[1].job(t, "last", "running again", allRun(4))
	for i, w := range again.Workers {
		lost := st.Workers[i].Name == "node"+strconv.Itoa(victim)
		if lost != (w.Attempt == 2) || lost && w.Node == st.Workers[i].Node {
			t.Errorf("rank %d: attempt %d at %s, before that attempt %d at %s", w.Rank, w.Attempt, w.Name, st.Workers[i].Attempt, st.Workers[i].Name)
		}
	}
	g.open(t)
	rest(t, stdout)
	ends(t, cmd, 0)
	for i, w := range again.Workers {
		b, err := os.ReadFile(filepath.Join(cmd.Dir, "by-"+strconv.Itoa(i)))
		if err != nil || strings.TrimSpace(string(b)) != strconv.Itoa(w.Attempt) {
			t.Errorf("rank %d left %q, %v, want attempt %d", i, b, err, w.Attempt)
		}
	}
	g.deserted(t)
}

func TestKilledNodeOfARigidJob(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	net := realNet(t, 3, "--slots", "2", "--expose", g.dir)
	cmd := net.nodes[1].command(t, "run", "-n", "6", "sh", "-c", "echo up; "+g.wait())
	stdout, stderr := start(t, cmd)
	for range 6 {
		expect(t, stdout, "up")
	}
	began := time.Now()
	net.nodes[2].ends(t, syscall.SIGKILL)
	line := expect(t, stderr, "NODE_FAIL")
	faster(t, began, seeds.Longer(20*time.Second), "NODE_FAIL")
	if !strings.Contains(line, "exit code 125") || !strings.Contains(line, "node2") {
		t.Errorf("run says %q", line)
	}
	rest(t, stdout)
	ends(t, cmd, 125)
	net.nodes[1].job(t, "last", "NODE_FAIL", inState(jobs.NodeFail))
	// Those of the living nodes are ended by their nodes, those of the dead
	// one end by themselves.
	g.deserted(t)
	faster(t, began, seeds.Longer(60*time.Second), "the end of all workers")
}

// The job's only worker cannot be at the origin, which is killed.
func TestKilledOrigin(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	net := realNet(t, 1, "--slots", "1", "--expose", g.dir)
	if _, err := net.start(2, nodeEnv(), []string{"--slots", "4", "--expose", g.dir}); err != nil {
		t.Fatal(err)
	}
	origin, other := net.nodes[1], net.nodes[2]
	origin.knows(t, 2)
	done := origin.says(t, "submit", "-n", "2", "--kill-on-bad-exit=false", "-o", "out-*", "sh", "-c", "echo log of $ZORILLA_RANK; echo $ZORILLA_RANK >out-$ZORILLA_RANK; exit $ZORILLA_RANK")
	origin.job(t, done, "FAILED", inState(jobs.Failed))
	later := origin.says(t, "submit", "-c", "3", "-o", "out", "sh", "-c", "echo up; "+g.wait()+"; echo late; echo x >out; exit 0")
	origin.job(t, later, "running", allRun(1))
	want := origin.says(t, "logs", "-l", done)

	origin.ends(t, syscall.SIGKILL)
	if line := other.says(t, "status", later); !strings.Contains(line, "last known") {
		t.Errorf("with a dead origin the status is %q", line)
	}
	net.again(t, 1, "--slots", "1", "--expose", g.dir)
	if got := origin.says(t, "logs", "-l", done); got != want || !strings.Contains(got, "log of 1") {
		t.Errorf("after the restart the log is %q, was %q", got, want)
	}
	get := origin.command(t, "get", done)
	if err := get.Run(); err != nil {
		t.Fatal(err)
	}
	for _, rank := range []string{"0", "1"} {
		if b, err := os.ReadFile(filepath.Join(get.Dir, "out-"+rank)); err != nil || string(b) != rank+"\n" {
			t.Errorf("after the restart out-%s is %q, %v", rank, b, err)
		}
	}
	wait := origin.command(t, "wait", "-q", done)
	if err := wait.Start(); err != nil {
		t.Fatal(err)
	}
	ends(t, wait, 1)

	origin.job(t, later, "running", allRun(1))
	g.open(t)
	opened := time.Now()
	st := origin.job(t, later, "COMPLETED", inState(jobs.Completed))
	faster(t, opened, seeds.Longer(10*time.Second), "the end after the restart")
	if st.Workers[0].Attempt != 1 || st.ExitCode != 0 {
		t.Errorf("after the restart the job ended as %+v", st)
	}
	if got := origin.says(t, "logs", later); got != "up\nlate" {
		t.Errorf("its log is %q", got)
	}
	origin.says(t, "get", later)
	g.deserted(t)
}

func TestNodeThatTakesItsWorkersAlong(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	net := realNet(t, 3, "--slots", "2", "--expose", g.dir)
	cmd := net.nodes[1].command(t, "run", "-n", "6", "sh", "-c", "echo up; "+g.wait())
	stdout, stderr := start(t, cmd)
	for range 6 {
		expect(t, stdout, "up")
	}
	began := time.Now()
	net.nodes[2].ends(t, syscall.SIGTERM)
	if code := net.nodes[2].code; code != 0 {
		t.Errorf("the node ended with %d", code)
	}
	for _, k := range []int{1, 3} {
		net.nodes[k].knows(t, 2)
	}
	faster(t, began, seeds.Longer(10*time.Second), "leaving")
	line := expect(t, stderr, "NODE_FAIL")
	faster(t, began, seeds.Longer(10*time.Second), "NODE_FAIL")
	if !strings.Contains(line, "leaving") || !strings.Contains(line, "node2") {
		t.Errorf("run says %q, want that node2 is leaving", line)
	}
	rest(t, stdout)
	ends(t, cmd, 125)
	g.deserted(t)
	faster(t, began, seeds.Longer(20*time.Second), "the end of all workers")
}
