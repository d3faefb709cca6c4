package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"zorilla/internal/built"
	"zorilla/internal/seeds"
	"zorilla/jobs"
	"zorilla/node"
)

// chatter is shell code that writes numbered lines before and while it waits at
// the gate, and after that, leaves a file and ends with 3.
func (g gate) chatter() string {
	return `i=0; say() { i=$((i+1)); echo "$RANK: line $i"; echo "$RANK: oh $i" >&2; }
while [ $i -lt 1000 ]; do say; done
until [ -e ` + g.path + ` ]; do say; sleep 0.02; done
while [ $i -lt 5000 ]; do say; done
echo $ZORILLA_ATTEMPT >by-$RANK; exit 3`
}

// allWrite tells that as many workers run and have written something.
func allWrite(count int) func(jobs.Status) bool {
	return func(st jobs.Status) bool {
		return running(st) == count && !slices.ContainsFunc(st.Workers, func(w jobs.WorkerStatus) bool { return w.Stdout == 0 })
	}
}

// unbroken fails the test unless each rank's log is what chatter writes, with no
// line missing or doubled.
func (n *realNode) unbroken(t *testing.T, job string, ranks int) {
	t.Helper()
	for rank := range ranks {
		log := n.command(t, "logs", fmt.Sprintf("%s:%d", job, rank))
		var errs strings.Builder
		log.Stderr = &errs
		out, err := log.Output()
		if err != nil {
			t.Fatal(err)
		}
		for what, text := range map[string]string{"line": string(out), "oh": errs.String()} {
			lines := strings.Split(strings.TrimSpace(text), "\n")
			for i, line := range lines {
				if want := fmt.Sprintf("%d: %s %d", rank, what, i+1); line != want {
					t.Fatalf("line %d of rank %d is %q, want %q", i+1, rank, line, want)
				}
			}
			if len(lines) < 5000 {
				t.Errorf("rank %d has %d lines, want 5000 or more", rank, len(lines))
			}
		}
	}
}

// finishes waits until a job of chatter has ended as it must, in the attempts in
// which it began to run, and fetches what it left.
func (n *realNode) finishes(t *testing.T, g gate, begun jobs.Status) {
	t.Helper()
	job, ranks := string(begun.ID), len(begun.Workers)
	attempts := make([]int, ranks)
	for _, w := range begun.Workers {
		attempts[w.Rank] = w.Attempt
	}
	g.open(t)
	st := n.job(t, job, "FAILED", inState(jobs.Failed))
	if st.ExitCode != 3 || len(st.Outputs) != ranks {
		t.Errorf("the job ended with %d and %d outputs (%s)", st.ExitCode, len(st.Outputs), st.Reason)
	}
	for _, w := range st.Workers {
		if w.Attempt != attempts[w.Rank] || w.Exit == nil || w.Exit.Code != 3 {
			t.Errorf("rank %d: %+v", w.Rank, w)
		}
	}
	n.unbroken(t, job, ranks)
	get := n.command(t, "get", job)
	if err := get.Run(); err != nil {
		t.Fatal(err)
	}
	for rank := range ranks {
		if b, err := os.ReadFile(filepath.Join(get.Dir, fmt.Sprintf("by-%d", rank))); err != nil || string(b) != fmt.Sprintln(attempts[rank]) {
			t.Errorf("rank %d left %q, %v", rank, b, err)
		}
	}
	g.deserted(t)
}

// empty waits until nothing of any worker is left in a node's state.
func (n *realNode) empty(t *testing.T) {
	t.Helper()
	if err := n.until("remove its work directories", func(context.Context) bool {
		left, err := filepath.Glob(filepath.Join(n.state, "work", "*"))
		return err == nil && len(left) == 0
	}); err != nil {
		t.Fatal(err)
	}
}

// Two ranks at each node; either node, or both, are killed or stopped, twice.
func TestNodesAreStartedAgainUnderTheirWorkers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		signal syscall.Signal
		nodes  []int
	}{
		"participant killed":  {syscall.SIGKILL, []int{2}},
		"participant stopped": {syscall.SIGTERM, []int{2}},
		"origin killed":       {syscall.SIGKILL, []int{1}},
		"both stopped":        {syscall.SIGTERM, []int{2, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGate(t)
			options := []string{"--slots", "2", "--expose", g.dir, "--node-limit", "10m"}
			net := realNet(t, 2, options...)
			job := net.nodes[1].says(t, "submit", "-n", "4", "-o", "by-*", "--kill-on-bad-exit=false", "sh", "-c", g.chatter())
			begun := net.nodes[1].job(t, job, "running", allWrite(4))
			for range 2 {
				for _, k := range c.nodes {
					net.nodes[k].ends(t, c.signal)
				}
				for _, k := range c.nodes {
					net.again(t, k, options...)
				}
				net.nodes[1].job(t, job, "running", allRun(4))
			}
			net.nodes[1].finishes(t, g, begun)
			for _, n := range net.nodes {
				n.empty(t)
			}
		})
	}
}

// A newer program takes the workers of an older one over.
func TestUpgradeUnderWorkers(t *testing.T) {
	t.Parallel()
	newer := buildRelease(t, "0.9.9")
	g := newGate(t)
	options := []string{"--slots", "2", "--expose", g.dir, "--node-limit", "10m"}
	net := realNet(t, 1, options...)
	first := net.nodes[1]
	job := first.says(t, "submit", "-n", "2", "-o", "by-*", "--kill-on-bad-exit=false", "sh", "-c", g.chatter())
	begun := first.job(t, job, "running", allWrite(2))
	first.ends(t, syscall.SIGTERM)
	if b, err := os.ReadFile(first.log); err != nil || !strings.Contains(string(b), "2 workers go on: start the node again within 2m0s") {
		t.Errorf("the node says %q, %v", b, err)
	}
	net.program = newer
	net.again(t, 1, options...)
	if info, err := first.client.Node(t.Context()); err != nil || info.Release != "0.9.9" {
		t.Errorf("the node is of release %s, %v", info.Release, err)
	}
	first.job(t, job, "running", allRun(2))
	first.finishes(t, g, begun)
	first.empty(t)
}

// Jobs that start after the program's file was replaced find the one that their node runs.
func TestProgramIsReplacedUnderItsNode(t *testing.T) {
	t.Parallel()
	path, err := exec.LookPath("zorilla")
	if err != nil {
		t.Fatal(err)
	}
	net := realNet(t, 0)
	net.program = filepath.Join(net.dir, "zorilla")
	whole, err := os.ReadFile(path)
	for _, file := range []string{net.program, net.program + ".new"} {
		if err = errors.Join(err, os.WriteFile(file, whole, 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	net.again(t, 1, "--slots", "2")
	if err := os.Rename(net.program+".new", net.program); err != nil {
		t.Fatal(err)
	}
	for _, lost := range []bool{false, true} {
		if got := net.nodes[1].says(t, "run", "-n", "2", "sh", "-c", `test $ZORILLA_RANK = 1 || zorilla-rsh localhost echo reached`); got != "reached" {
			t.Errorf("removed %t: %q", lost, got)
		}
		if err := os.Remove(net.program); err != nil && !lost {
			t.Fatal(err)
		}
	}
}

// buildRelease builds the program with another version.
func buildRelease(t *testing.T, release string) string {
	t.Helper()
	dir := openDir(t)
	const file = "../../node/service.go"
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	path, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(source), `"`+node.Release+`"`, `"`+release+`"`, 1)
	other, overlay, program := filepath.Join(dir, "service.go"), filepath.Join(dir, "overlay"), filepath.Join(dir, "zorilla-"+release)
	if err := os.WriteFile(other, []byte(changed), 0o644); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(map[string]any{"Replace": map[string]string{path: other}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(overlay, b, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := built.Program(program, ".", "GOFLAGS="+os.Getenv("GOFLAGS")+" -overlay="+overlay); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(program, "version").Output(); err != nil || !strings.Contains(string(out), release) {
		t.Fatalf("the new program is %q, %v", out, err)
	}
	return program
}

func TestNodeThatDoesNotComeBack(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	options := []string{"--slots", "2", "--expose", g.dir, "--node-limit", "5s"}
	net := realNet(t, 2, options...)
	cmd := net.nodes[1].command(t, "run", "-n", "4", "sh", "-c", "echo up; "+g.wait())
	stdout, stderr := start(t, cmd)
	for range 4 {
		expect(t, stdout, "up")
	}
	began := time.Now()
	net.nodes[2].ends(t, syscall.SIGKILL)
	expect(t, stderr, "NODE_FAIL")
	rest(t, stdout)
	ends(t, cmd, 125)
	g.deserted(t)
	faster(t, began, seeds.Longer(40*time.Second), "the end of all workers")
	net.again(t, 2, options...)
	net.nodes[2].empty(t)
}
