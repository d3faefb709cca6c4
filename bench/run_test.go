package bench

import (
	"bytes"
	"fmt"
	"os/exec"
	"strconv"
	"testing"
)

// BenchmarkRun is "zorilla run -n 6 hostname" on three nodes beside six processes.
// Target: a median under 300 ms.
func BenchmarkRun(b *testing.B) {
	const workers = 6
	n := start(b, 3, 2)
	defer n.stop()
	compete(b, 21,
		rival{"zorilla", timed(func() error {
			out, err := n.command("run", "-q", "--stdin", "none", "-n", strconv.Itoa(workers), "--", "hostname").Output()
			if err == nil && bytes.Count(out, []byte("\n")) != workers {
				err = fmt.Errorf("%d lines instead of %d", bytes.Count(out, []byte("\n")), workers)
			}
			return err
		})},
		rival{"fork+exec", timed(bare(workers))})
}

// bare starts a command for each of some workers itself, and waits for all.
func bare(workers int) func() error {
	return func() error {
		var all []*exec.Cmd
		for range workers {
			cmd := exec.Command("hostname")
			if err := cmd.Start(); err != nil {
				return err
			}
			all = append(all, cmd)
		}
		for _, cmd := range all {
			if err := cmd.Wait(); err != nil {
				return err
			}
		}
		return nil
	}
}
