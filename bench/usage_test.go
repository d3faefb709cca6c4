package bench

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"zorilla/jobs"
)

// ticksPerSecond is the unit of processor time in /proc, the same on all
// systems that Go runs on.
const ticksPerSecond = 100

// usage is what a process has used so far, and has.
type usage struct {
	ticks         int64 // of processor time
	resident, own int64 // bytes; own = not shared with a file
	unshared      int64 // bytes that no other process uses
}

func usageOf(b *testing.B, pid int) usage {
	b.Helper()
	stat := read(b, pid, "stat")
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+2:]))
	user, err1 := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	if err1 != nil || err2 != nil {
		b.Fatalf("the times of process %d: %q", pid, fields)
	}
	u := usage{ticks: user + system}
	for line := range strings.Lines(string(read(b, pid, "status")) + string(read(b, pid, "smaps_rollup"))) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		kb, _ := strconv.ParseInt(f[1], 10, 64)
		switch f[0] {
		case "VmRSS:":
			u.resident = kb << 10
		case "RssAnon:":
			u.own = kb << 10
		case "Private_Clean:", "Private_Dirty:":
			u.unshared += kb << 10
		}
	}
	return u
}

// ticks is the processor time that all nodes have used so far.
func (n *network) ticks() (sum int64) {
	for _, pid := range n.pids() {
		sum += usageOf(n.b, pid).ticks
	}
	return sum
}

func read(b *testing.B, pid int, name string) []byte {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
	if err != nil {
		b.Fatal(err)
	}
	return text
}

// BenchmarkIdle is what the nodes of a network need while nothing happens, each.
// Target: under 40 MB and 1 % of a core.
func BenchmarkIdle(b *testing.B) {
	const watched = 10 * time.Second
	n := start(b, 3, 2)
	defer n.stop()
	var most usage
	for b.Loop() {
		before := map[int]usage{}
		for _, pid := range n.pids() {
			before[pid] = usageOf(b, pid)
		}
		<-time.After(watched)
		for pid, was := range before {
			now := usageOf(b, pid)
			most.ticks = max(most.ticks, now.ticks-was.ticks)
			most.resident, most.own = max(most.resident, now.resident), max(most.own, now.own)
		}
	}
	b.ReportMetric(float64(most.resident)/1e6, "MB-resident/node")
	b.ReportMetric(float64(most.own)/1e6, "MB-own/node")
	b.ReportMetric(100*float64(most.ticks)/ticksPerSecond/watched.Seconds(), "%core/node")
}

// BenchmarkQueued is what a node that is alone and full needs while 3000 jobs wait there and
// nothing happens. Target: no more than without them.
func BenchmarkQueued(b *testing.B) {
	byName(b)
	const (
		waiting = 3000
		settled = 2 * time.Minute
		watched = 30 * time.Second
	)
	n := start(b, 1, 1)
	defer n.stop()
	c := n.client()
	defer c.Close()
	ticks := func() int64 {
		before := n.ticks()
		<-time.After(watched)
		return n.ticks() - before
	}
	if _, err := c.Submit(b.Context(), jobs.Spec{Args: []string{"/bin/sleep", "3600"}, Min: 1, Max: 1, Slots: 1}); err != nil {
		b.Fatal(err)
	}
	without := ticks()
	for range waiting {
		if _, err := c.Submit(b.Context(), jobs.Spec{Args: []string{"/bin/true"}, Min: 1, Max: 1, Slots: 1}); err != nil {
			b.Fatal(err)
		}
	}
	<-time.After(settled)
	used := int64(0)
	for b.Loop() {
		used += ticks()
	}
	share := func(ticks int64) float64 { return 100 * float64(ticks) / ticksPerSecond / watched.Seconds() }
	b.ReportMetric(share(without), "%core-without")
	b.ReportMetric(share(used)/float64(b.N), "%core")
}
