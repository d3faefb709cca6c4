package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"zorilla/jobs"
)

// later reads what comes, and returns it when asked.
func later(r *bufio.Reader) func() string {
	text := make(chan string, 1)
	go func() {
		b, _ := io.ReadAll(r) // a torn end shows as a missing line
		text <- string(b)
	}()
	return func() string { return <-text }
}

// byRank sorts lines of the form "RANK: LINE".
func byRank(text string) map[string][]string {
	by := map[string][]string{}
	for line := range strings.Lines(text) {
		rank, line, _ := strings.Cut(strings.TrimSpace(line), ": ")
		by[rank] = append(by[rank], line)
	}
	return by
}

// The node of run is killed, and stopped, and started again: nobody who waits for
// run notices, but on its standard error.
func TestRunOutlivesItsNode(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	options := []string{"--slots", "2", "--expose", g.dir, "--node-limit", "10m"}
	net := realNet(t, 2, options...)
	node := net.nodes[1]
	dir := t.TempDir()
	run := node.command(t, "run", "-n", "4", "-o", "by-*", "--into", dir, "--kill-on-bad-exit=false", "sh", "-c", g.chatter())
	stdout, stderr := start(t, run)
	out := later(stdout)
	begun := node.job(t, "last", "running", allRun(4))
	attach := node.command(t, "attach", "--into", filepath.Join(dir, "attached"), string(begun.ID))
	more, says := start(t, attach)
	expect(t, more, "line 1")
	also := later(more)
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		node.job(t, string(begun.ID), "running", allRun(4))
		node.ends(t, sig)
		expect(t, stderr, "lost sight of job "+begun.ID.Short()+": waiting up to 2m0s")
		expect(t, says, "lost sight of job "+begun.ID.Short())
		net.again(t, 1, options...)
		expect(t, stderr, "the node is back")
		expect(t, says, "the node is back")
	}
	said, saidToo := later(stderr), later(says)
	g.open(t)
	by, again := byRank(out()), byRank(also())
	if text := said(); !strings.Contains(text, "FAILED, exit code 3") || strings.Contains(text, "lost sight") {
		t.Errorf("run says %s", text)
	}
	ends(t, run, 3)
	saidToo()
	ends(t, attach, 3)
	total := 0
	for _, w := range begun.Workers {
		rank := w.Rank
		lines := by[fmt.Sprint(rank)]
		for i, line := range lines {
			if want := fmt.Sprintf("line %d", i+1); line != want {
				t.Fatalf("line %d of rank %d is %q", i+1, rank, line)
			}
		}
		if len(lines) < 5000 {
			t.Errorf("rank %d: %d lines, want 5000 or more", rank, len(lines))
		}
		total += len(lines)
		for _, place := range []string{"", "attached"} {
			if b, err := os.ReadFile(filepath.Join(dir, place, fmt.Sprintf("by-%d", rank))); err != nil || string(b) != fmt.Sprintln(w.Attempt) {
				t.Errorf("rank %d left %q, %v, and ran as attempt %d before", rank, b, err, w.Attempt)
			}
		}
	}
	n := 1 // that told that it is there
	for _, lines := range again {
		n += len(lines)
	}
	if n != total {
		t.Errorf("attach printed %d lines, run %d", n, total)
	}
	g.deserted(t)
}

func TestRunOfTasksOutlivesItsNode(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	options := []string{"--slots", "2", "--expose", g.dir, "--node-limit", "10m"}
	net := realNet(t, 2, options...)
	node := net.nodes[1]
	task := `i=$ZORILLA_TASK_ID; for n in 1 2 3; do echo $i: $n; done; echo $i >f; [ $i -lt 30 ] || ` + g.wait() + `; exit $((i / 40 * 4))`
	dir := t.TempDir()
	run := node.command(t, "run", "-a", "1-40", "-o", "f", "--into", dir, "sh", "-c", task)
	stdout, stderr := start(t, run)
	out := later(stdout)
	begun := node.job(t, "last", "done in part", func(st jobs.Status) bool { return st.Array != nil && st.Array.Done >= 20 })
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		node.ends(t, sig)
		expect(t, stderr, "lost sight of job "+begun.ID.Short())
		net.again(t, 1, options...)
		expect(t, stderr, "the node is back")
	}
	said := later(stderr)
	g.open(t)
	by := byRank(out())
	said()
	ends(t, run, 4)
	for i := range 40 {
		if got := strings.Join(by[fmt.Sprint(i+1)], " "); got != "1 2 3" {
			t.Errorf("task %d wrote %q", i+1, got)
		}
		if b, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("f.%d", i+1))); err != nil || string(b) != fmt.Sprintln(i+1) {
			t.Errorf("task %d left %q, %v", i+1, b, err)
		}
	}
	g.deserted(t)
}
