package bench

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// span is when something began and ended, in seconds.
type span struct{ begin, end float64 }

var (
	syncLine    = regexp.MustCompile(`^(\d+) +(\d+\.\d+) f\w+\(.*\) += \S+.* <(\d+\.\d+)>$`)
	syncBegins  = regexp.MustCompile(`^(\d+) +(\d+\.\d+) f\w+\(.*<unfinished \.\.\.>$`)
	syncResumes = regexp.MustCompile(`^(\d+) +(\d+\.\d+) <\.\.\. f\w+ resumed>.* <(\d+\.\d+)>$`)
)

// syncs reads what strace wrote of syncs to the disk.
func syncs(text string) ([]span, error) {
	var all []span
	begun := map[string]float64{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		for _, form := range []*regexp.Regexp{syncBegins, syncLine, syncResumes} {
			m := form.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			at, err := strconv.ParseFloat(m[2], 64)
			if err != nil {
				return nil, err
			}
			if form == syncBegins {
				begun[m[1]] = at
				break
			}
			took, err := strconv.ParseFloat(m[3], 64)
			if err != nil {
				return nil, err
			}
			if was, ok := begun[m[1]]; ok && form == syncResumes {
				at = was
			}
			all = append(all, span{at, at + took})
			break
		}
	}
	return all, nil
}

// row returns how many of them can follow each other, none beginning before the one
// in front has ended.
func row(all []span) int {
	n, end := 0, 0.0
	for _, s := range slices.SortedFunc(slices.Values(all), func(a, b span) int {
		if a.end < b.end {
			return -1
		}
		return 1
	}) {
		if s.begin >= end {
			n, end = n+1, s.end
		}
	}
	return n
}

// BenchmarkSyncs is how many times a job waits for the disk, from the client's
// start to its end: all syncs of all nodes and supervisors, and how many of them
// come one after the other, which is an upper bound of those that wait for each
// other. It needs strace. Target: at most 6 in a row for one worker.
func BenchmarkSyncs(b *testing.B) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		b.Skip("strace is not there")
	}
	for _, c := range []struct{ nodes, workers int }{{1, 1}, {3, 6}} {
		b.Run(fmt.Sprintf("%d-nodes-%d-workers", c.nodes, c.workers), func(b *testing.B) {
			n := start(b, c.nodes, 2)
			defer n.stop()
			job := func() error {
				return n.command("run", "-q", "--stdin", "none", "-n", strconv.Itoa(c.workers), "--", "hostname").Run()
			}
			if err := job(); err != nil { // directories are made once
				b.Fatal(err)
			}
			var all, rows []int
			measure := func() {
				some, err := n.trace(strace, job)
				if err != nil {
					b.Fatal(err)
				}
				all, rows = append(all, len(some)), append(rows, row(some))
			}
			for b.Loop() {
				measure()
			}
			for len(all) < 5 {
				measure()
			}
			slices.Sort(all)
			slices.Sort(rows)
			b.ReportMetric(float64(all[len(all)/2]), "syncs")
			b.ReportMetric(float64(rows[len(rows)/2]), "in-a-row")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// trace returns the syncs of all nodes, and of what they start, during a job.
func (n *network) trace(strace string, job func() error) ([]span, error) {
	out := filepath.Join(n.b.TempDir(), "trace")
	args := []string{"-f", "-ttt", "-T", "-e", "trace=fsync,fdatasync", "-o", out}
	pids := n.pids()
	for _, pid := range pids {
		args = append(args, "-p", strconv.Itoa(pid))
	}
	cmd := exec.Command(strace, args...)
	said, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(said)
	for attached := 0; attached < len(pids); {
		if !lines.Scan() {
			return nil, fmt.Errorf("strace does not attach: %w", cmd.Wait())
		}
		if strings.Contains(lines.Text(), "attached") {
			attached++
		}
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		for lines.Scan() { // threads come and go
		}
	}()
	begun := time.Now()
	err = job()
	ended := time.Now()
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		return nil, err
	}
	<-drained
	_ = cmd.Wait() // it was told to end
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(out)
	if err != nil {
		return nil, err
	}
	all, err := syncs(string(text))
	seconds := func(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }
	return slices.DeleteFunc(all, func(s span) bool { return s.begin < seconds(begun) || s.begin > seconds(ended) }), err
}

func TestSyncs(t *testing.T) {
	all, err := syncs(`10 100.000 fsync(3) = 0 <0.010>
11 100.001 fdatasync(4 <unfinished ...>
10 100.020 fsync(5</x/y>) = 0 <0.005>
11 100.031 <... fdatasync resumed>) = 0 <0.030>
12 100.040 fsync(3) = -1 EIO (Input/output error) <0.001>
12 100.050 +++ exited with 0 +++
`)
	if err != nil || len(all) != 4 || row(all) != 3 {
		t.Errorf("%d in a row of %v, %v", row(all), all, err)
	}
}
