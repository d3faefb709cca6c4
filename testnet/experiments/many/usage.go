package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// usage is what processes have used of processors, and have of memory, in bytes.
type usage struct {
	cpu                          time.Duration
	proportional, resident, most int64 // shared pages once, in full; of the largest
}

// tick is the unit of processor time in /proc, the same on all systems that Go runs on.
const tick = 10 * time.Millisecond

// usage sums up what the nodes use that have not been killed. One that has just ended
// counts as nothing.
func (n *network) usage() (sum usage) {
	for _, p := range n.nodes {
		if p.killed {
			continue
		}
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
		rollup, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", p.cmd.Process.Pid))
		u := usageOf(stat, rollup)
		sum.cpu += u.cpu
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

// usageOf reads the files stat and smaps_rollup of a process.
func usageOf(stat, rollup []byte) (u usage) {
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // a name may have blanks
	if len(fields) > 12 {
		user, _ := strconv.ParseInt(fields[11], 10, 64)
		system, _ := strconv.ParseInt(fields[12], 10, 64)
		u.cpu = time.Duration(user+system) * tick
	}
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
