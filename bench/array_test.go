package bench

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

const (
	tasks     = 10_000
	manyTasks = 100_000
)

// array runs a command for each of so many tasks.
func (n *network) array(tasks int, args ...string) *exec.Cmd {
	return n.command(append([]string{"run", "-q", "-a", "1-" + strconv.Itoa(tasks)}, args...)...)
}

// xargs does the same without a network.
func xargs(tasks int, args ...string) *exec.Cmd {
	var lines bytes.Buffer
	for i := range tasks {
		fmt.Fprintln(&lines, i)
	}
	cmd := exec.Command("xargs", append([]string{"-P2"}, args...)...)
	cmd.Stdin = &lines
	return cmd
}

// BenchmarkArray is an array of 10 000 times /bin/true on one node with two slots
// beside xargs. Target: the rate of xargs, a ratio of at most 1.
func BenchmarkArray(b *testing.B) {
	n := start(b, 1, 2)
	defer n.stop()
	compete(b, 3,
		rival{"zorilla", timed(func() error { return quiet(n.array(tasks, "--", "/bin/true")) })},
		rival{"xargs", timed(func() error { return quiet(xargs(tasks, "-n1", "/bin/true")) })})
}

// BenchmarkArrayFiles is an array whose 10 000 tasks each leave a file, which comes
// home, beside one of which no file does, and xargs. Target: half the rate of
// those without or more, a ratio of at most 2.
func BenchmarkArrayFiles(b *testing.B) {
	n := start(b, 1, 2)
	defer n.stop()
	dir, ours, theirs := b.TempDir(), "", ""
	filled := func(dir *string, run func() *exec.Cmd) func() (time.Duration, error) {
		return func() (time.Duration, error) {
			var err error
			if *dir, err = os.MkdirTemp(filepath.Dir(*dir), ""); err != nil {
				return 0, err
			}
			took, err := timed(func() error { return quiet(run()) })()
			if err != nil {
				return 0, err
			}
			if files, err := os.ReadDir(*dir); err != nil || len(files) != tasks {
				return 0, fmt.Errorf("%d files, want %d: %v", len(files), tasks, err)
			}
			return took, nil
		}
	}
	ours, theirs = filepath.Join(dir, "ours"), filepath.Join(dir, "theirs")
	copies := []string{"/bin/cp", "/etc/hostname"}
	compete(b, 3,
		rival{"zorilla-files", filled(&ours, func() *exec.Cmd {
			return n.array(tasks, append([]string{"-o", "out", "--into", ours, "--"}, append(copies, "out")...)...)
		})},
		rival{"zorilla-none", timed(func() error {
			return quiet(n.array(tasks, append([]string{"--"}, append(copies, "out")...)...))
		})},
		rival{"xargs", filled(&theirs, func() *exec.Cmd {
			return xargs(tasks, append([]string{"-I{}"}, append(copies, theirs+"/{}")...)...)
		})})
}

// BenchmarkArrayMemory is how the memory of the origin grows with the 100 000 tasks
// of an array. Target: less than 1000 bytes a task.
func BenchmarkArrayMemory(b *testing.B) {
	n := start(b, 1, 2)
	defer n.stop()
	pid := n.pids()[0]
	before := usageOf(b, pid).own
	most, last := before, before
	for b.Loop() {
		run := n.array(manyTasks, "--", "/bin/true")
		ended := make(chan error, 1)
		go func() { ended <- quiet(run) }()
		for tick, over := time.NewTicker(time.Second), false; !over; {
			select {
			case <-tick.C:
				most = max(most, usageOf(b, pid).own)
			case err := <-ended:
				if over = true; err != nil {
					b.Fatalf("zorilla run -a: %v", err)
				}
				tick.Stop()
			}
		}
		last = usageOf(b, pid).own
	}
	b.ReportMetric(float64(before)/1e6, "MB-before")
	b.ReportMetric(float64(most-before)/manyTasks, "B-most/task")
	b.ReportMetric(float64(last-before)/manyTasks, "B-after/task")
}
