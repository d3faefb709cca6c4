package bench

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// BenchmarkCheckpoints is how long two ranks of a program take that compute for some 30 s, with a checkpoint every
// 10 s and without: of 64 MiB all new, and of 256 MiB of which a tenth is new. The ranks, their nodes and those that
// keep the checkpoints share the machine, so that what the copies take is taken from the program. Beside that stands for how
// much of its time the program waits for checkpoints, which noise disturbs less. Target: 5 % for both.
func BenchmarkCheckpoints(b *testing.B) {
	byName(b)
	n := start(b, 4, 1)
	defer n.stop()
	script, err := filepath.Abs("testdata/work.py")
	if err != nil {
		b.Fatal(err)
	}
	took := regexp.MustCompile(`(?m)^took ([0-9.]+) s, of which ([0-9]+) checkpoints ([0-9.]+) s`)
	waits := map[string][]float64{} // percent of the time of each rank
	run := func(every int, size string, options ...string) func() (time.Duration, error) {
		args := append([]string{"run", "-q", "--stdin", "none", "-n", "2", "--strategy", "spread", "-i", script, "--",
			"python3", "work.py", "400000", strconv.Itoa(every)}, strings.Fields(size)...)
		return func() (time.Duration, error) {
			out, err := n.command(append(args, options...)...).Output()
			found := took.FindAllStringSubmatch(string(out), -1)
			if err == nil && len(found) != 2 {
				err = fmt.Errorf("it printed %q", out)
			}
			var times []float64
			for _, m := range found {
				t, _ := strconv.ParseFloat(m[1], 64) // digits and dots
				waited, _ := strconv.ParseFloat(m[3], 64)
				times = append(times, t)
				key := strings.Join(append([]string{strconv.Itoa(every), size}, options...), " ")
				waits[key] = append(waits[key], 100*waited/t)
				if every > 0 && m[2] == "0" {
					err = fmt.Errorf("no checkpoint in %s s", m[1])
				}
			}
			if err != nil {
				return 0, err
			}
			return time.Duration(slices.Max(times) * float64(time.Second)), nil
		}
	}
	compete(b, 3,
		rival{"none", run(0, "64 64")},
		rival{"64-MiB-new", run(10, "64 64")},
		rival{"64-MiB-new-not-waited-for", run(10, "64 64", "--wait=false")},
		rival{"256-MiB-a-tenth-new", run(10, "256 26")},
		rival{"256-MiB-a-tenth-new-not-waited-for", run(10, "256 26", "--wait=false")})
	for _, key := range slices.Sorted(maps.Keys(waits)) {
		slices.Sort(waits[key])
		b.Logf("work.py %s: waits %.1f %% of its time (%.1f to %.1f)", key, waits[key][len(waits[key])/2], waits[key][0], slices.Max(waits[key]))
	}
}
