package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"zorilla/jobs"
)

// openDir makes a directory that the workers' user can write to and that is
// gone after the test.
func openDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := openTo(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return dir
}

// passedDir is openDir where only this user may write: for what nodes believe.
func passedDir(t *testing.T) string {
	t.Helper()
	dir := openDir(t)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// realNet starts a network of n real nodes for one test and waits until all
// know all.
func realNet(t *testing.T, n int, options ...string) *realNetwork {
	t.Helper()
	dir := passedDir(t)
	net := &realNetwork{dir: dir, nodes: map[int]*realNode{}}
	t.Cleanup(func() {
		net.stop()
		if t.Failed() {
			for k, node := range net.nodes { // not all, where one could not be started
				b, _ := os.ReadFile(node.log)
				t.Logf("log of node %d:\n%s", k, b)
			}
		}
	})
	for k := range n {
		if _, err := net.start(k+1, nodeEnv(), options); err != nil {
			t.Fatal(err)
		}
	}
	for _, node := range net.nodes {
		node.knows(t, n)
	}
	return net
}

// knows waits until the node has that many members, itself included.
func (n *realNode) knows(t *testing.T, count int) {
	t.Helper()
	if err := n.until(fmt.Sprintf("know %d nodes", count), func(ctx context.Context) bool {
		all, err := n.client.Nodes(ctx)
		return err == nil && len(all) == count
	}); err != nil {
		t.Fatal(err)
	}
}

// again starts a node anew after its end.
func (n *realNetwork) again(t *testing.T, number int, options ...string) {
	t.Helper()
	if _, err := n.start(number, nodeEnv(), options); err != nil {
		t.Fatal(err)
	}
}

// ends sends a signal and waits for the end.
func (n *realNode) ends(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if err := n.end(sig); err != nil {
		t.Fatal(err)
	}
}

// command is a client of the node, as a process.
func (n *realNode) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := zorilla(t, n.state, args...)
	cmd.Dir = t.TempDir()
	return cmd
}

// says runs a client of the node that must end with 0, and returns what it
// printed.
func (n *realNode) says(t *testing.T, args ...string) string {
	t.Helper()
	b, err := n.command(t, args...).Output()
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return strings.TrimSpace(string(b))
}

// job waits until a job of the node satisfies ok.
func (n *realNode) job(t *testing.T, ref, what string, ok func(jobs.Status) bool) jobs.Status {
	t.Helper()
	var st jobs.Status
	if err := n.until(fmt.Sprintf("have a job %s that is %s", ref, what), func(ctx context.Context) bool {
		var err error
		st, err = n.client.Job(ctx, ref)
		return err == nil && ok(st)
	}); err != nil {
		t.Fatalf("%v\nlatest: %+v", err, st)
	}
	return st
}

// allRun tells that as many workers run.
func allRun(count int) func(jobs.Status) bool {
	return func(st jobs.Status) bool { return running(st) == count }
}

func inState(state jobs.State) func(jobs.Status) bool {
	return func(st jobs.Status) bool { return st.State == state }
}

// gate is a file that workers wait for.
type gate struct{ dir, path string }

func newGate(t *testing.T) gate {
	t.Helper()
	dir := openDir(t)
	return gate{dir, filepath.Join(dir, "open")}
}

// wait is shell code that goes on after open. Processes that execute it can be
// found by the directory's name.
func (g gate) wait() string { return "until [ -e " + g.path + " ]; do sleep 0.1; done" }

func (g gate) open(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(g.path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
}

// deserted waits until no worker waits at the gate any more. The clients have
// to have ended before: they are found, too.
func (g gate) deserted(t *testing.T) {
	t.Helper()
	var left []string
	if !within(func() bool { left = processes(g.path); return len(left) == 0 }) {
		t.Fatalf("processes are left: %q", left)
	}
}

// elsewhere returns the number of a node other than the given ones that runs
// workers of the job.
func (n *realNetwork) elsewhere(t *testing.T, st jobs.Status, not ...int) int {
	t.Helper()
next:
	for _, w := range st.Workers {
		number, err := strconv.Atoi(strings.TrimPrefix(w.Name, "node"))
		if err != nil || w.State != jobs.WorkerRunning {
			continue
		}
		for _, k := range not {
			if k == number {
				continue next
			}
		}
		return number
	}
	t.Fatalf("all workers are at %v: %+v", not, st.Workers)
	return 0
}

// rest reads to the end.
func rest(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	var b strings.Builder
	if _, err := r.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// faster fails the test if it took longer since start.
func faster(t *testing.T, since time.Time, limit time.Duration, what string) {
	t.Helper()
	if d := time.Since(since); d > limit {
		t.Errorf("%s took %v, want at most %v", what, d, limit)
	}
}
