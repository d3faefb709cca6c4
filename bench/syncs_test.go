package bench

import (
	"fmt"
	"math"
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

// syncBegins is a line of strace at the begin of a sync; those that tell only its end
// name it otherwise.
var syncBegins = regexp.MustCompile(`^\d+ +(\d+\.\d+) f(data)?sync\(`)

// countSyncs returns how many syncs began between two moments, of those that strace wrote.
func countSyncs(text string, from, to time.Time) (n int) {
	seconds := func(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }
	for line := range strings.Lines(text) {
		m := syncBegins.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		if at, err := strconv.ParseFloat(m[1], 64); err == nil && at >= seconds(from) && at <= seconds(to) {
			n++
		}
	}
	return n
}

// BenchmarkSyncs is how many times a job waits for the disk, from the client's start
// to its end: all syncs of all nodes and supervisors, and how many of them come one
// after the other. For that the disk is made slow: what a job takes longer when each
// sync takes 80 ms longer are the syncs that wait for each other, in units of 80 ms;
// those that run beside others cost nothing. It needs strace, but not root. Target: 6
// in a row for one worker.
func BenchmarkSyncs(b *testing.B) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		b.Skipf("it needs strace: %v", err)
	}
	const fast, slow = 20 * time.Millisecond, 100 * time.Millisecond
	for _, c := range []struct{ nodes, workers int }{{1, 1}, {3, 6}} {
		b.Run(fmt.Sprintf("%d-nodes-%d-workers", c.nodes, c.workers), func(b *testing.B) {
			var all []int
			under := func(name string, delay time.Duration) rival {
				trace := filepath.Join(b.TempDir(), "trace")
				n := startUnder(b, c.nodes, 2, strace, "-f", "--seccomp-bpf", "-qq", "-ttt", "-o", trace,
					"-e", "trace=fsync,fdatasync", "-e", fmt.Sprint("inject=fsync,fdatasync:delay_exit=", delay.Microseconds()))
				b.Cleanup(n.stop)
				job := func() error {
					return n.command("run", "-q", "--stdin", "none", "-n", strconv.Itoa(c.workers), "--", "hostname").Run()
				}
				if err := job(); err != nil { // directories are made once
					b.Fatal(err)
				}
				return rival{name, func() (time.Duration, error) {
					begun := time.Now()
					err := job()
					ended := time.Now()
					if err != nil {
						return 0, err
					}
					text, err := os.ReadFile(trace)
					all = append(all, countSyncs(string(text), begun, ended))
					return ended.Sub(begun), err
				}}
			}
			times := compete(b, 15, under("20ms-syncs", fast), under("100ms-syncs", slow))
			slices.Sort(all)
			b.ReportMetric(float64(all[len(all)/2]), "syncs")
			row := float64(median(times[1])-median(times[0])) / float64(slow-fast)
			b.ReportMetric(math.Round(10*row)/10, "in-a-row")
		})
	}
}

func TestCountSyncs(t *testing.T) {
	const text = `10 100.000 fsync(3) = 0 (DELAYED)
11 100.001 fdatasync(4 <unfinished ...>
10 100.020 fsync(5</x/y>) = 0 (DELAYED)
11 100.031 <... fdatasync resumed>) = 0 (DELAYED)
12 100.040 fsync(3) = -1 EIO (Input/output error)
12 100.050 +++ exited with 0 +++
`
	at := func(ms int64) time.Time { return time.UnixMilli(100_000 + ms) }
	for _, c := range []struct{ from, to, want int64 }{{0, 50, 4}, {1, 30, 2}, {41, 50, 0}} {
		if n := countSyncs(text, at(c.from), at(c.to)); int64(n) != c.want {
			t.Errorf("%d syncs between %d and %d ms, want %d", n, c.from, c.to, c.want)
		}
	}
}
