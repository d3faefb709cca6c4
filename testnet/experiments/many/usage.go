package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"zorilla/jobs/proc"
)

// usage is what processes have used of processors, and have of memory, in bytes.
type usage struct {
	cpu                          time.Duration
	proportional, resident, most int64 // shared pages once, in full; of the largest
}

// usage sums up what the nodes use that have not been killed. One that has just ended
// counts as nothing.
func (n *network) usage() (sum usage) {
	for _, p := range n.nodes {
		if p.Killed() {
			continue
		}
		stat, _ := proc.ReadStat(p.PID())
		rollup, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", p.PID()))
		u := memoryOf(rollup)
		sum.cpu += stat.CPU
		sum.proportional += u.proportional
		sum.resident += u.resident
		sum.most = max(sum.most, u.resident)
	}
	return sum
}

// load is how many threads wanted a processor in the last minute, on the average.
func load() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(b), " ")
	return first
}

// memoryOf reads the file smaps_rollup of a process.
func memoryOf(rollup []byte) (u usage) {
	for line := range strings.Lines(string(rollup)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		kb, _ := strconv.ParseInt(f[1], 10, 64)
		switch f[0] {
		case "Rss:":
			u.resident = kb << 10
		case "Pss:":
			u.proportional = kb << 10
		}
	}
	return u
}
