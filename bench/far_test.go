package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"zorilla/testnet/chart"
	"zorilla/testnet/hosts/lab"
)

const farRounds = 3

var lines = scene{"lines", "home-1", "ssh"}

// BenchmarkFarStreams is BenchmarkStreams between hosts that are 50 and 200 ms away from
// each other, in the lab of testnet/hosts; by default with 64 MiB, on connections that
// were used before, as those of ssh cannot be. An input, new each time, is beside them. It needs root.
func BenchmarkFarStreams(b *testing.B) {
	byName(b)
	if os.Geteuid() != 0 {
		leaveOut(b, "it needs root")
	}
	if !inLab(b, lines, "BenchmarkFarStreams", "-out="+*out, "-test.benchtime=1x", fmt.Sprint("-streamed=", min(*streamed, 64))) {
		return
	}
	err := chart.Keep(*out, func(r *chart.Results) error {
		h := enter(b, lines)
		all := []string{"home-1", "near-1", "far-1"}
		ssh := strings.Fields(h.sshds(all))
		zorilla := h.nodesOf(all)
		data, size := zeros(b, *streamed), strconv.Itoa(*streamed<<20)
		fmt.Fprintf(r, "%d MiB, medians of %d rounds in turn, s; load at the start: %s.\n\n| | round trip | zorilla | ssh | of ssh's rate |\n|---|---|---|---|---|\n", *streamed, farRounds, load())
		row := func(name, host string, all ...rival) {
			b.Run(name+"-"+host, func(b *testing.B) {
				times := compete(b, farRounds, all...)
				ours, theirs := median(times[0]).Seconds(), median(times[1]).Seconds()
				fmt.Fprintf(r, "| %s | %s | %.2f | %.2f | %.2f |\n", name, map[string]string{"near-1": "50 ms", "far-1": "200 ms"}[host], ours, theirs, theirs/ours)
			})
		}
		for _, host := range all[1:] {
			run := []string{"run", "-q", "--where", fmt.Sprintf("name == %q", host), "--stdin"}
			there := append(append([]string{}, ssh...), host)
			if err := quiet(zorilla(append(run, "none", "true")...)); err != nil {
				return fmt.Errorf("the first job: %w", err)
			}
			row("stdout", host,
				rival{"zorilla", counted(size, func() *exec.Cmd { return zorilla(append(run, "none", "head", "-c", size, "/dev/zero")...) })},
				rival{"ssh", counted(size, func() *exec.Cmd {
					return exec.Command(there[0], append(there[1:], "head", "-c", size, "/dev/zero")...)
				})})
			row("stdin", host,
				rival{"zorilla", said(size, func() *exec.Cmd { return zorilla(append(run, data, "wc", "-c")...) })},
				rival{"ssh", said(size, func() *exec.Cmd { return fed(b, exec.Command(there[0], append(there[1:], "wc", "-c")...), data) })})
			input := filepath.Join(h.dir, "input")
			row("input", host,
				rival{"zorilla", func() (time.Duration, error) {
					if err := fill(input, int64(*streamed)<<20, random()); err != nil {
						return 0, err
					}
					return said(size, func() *exec.Cmd {
						return zorilla(append(run, "none", "-i", input+":input", "--", "sh", "-c", "wc -c < input")...)
					})()
				}},
				rival{"ssh", said(size, func() *exec.Cmd { return fed(b, exec.Command(there[0], append(there[1:], "wc", "-c")...), input) })})
		}
		return nil
	})
	b.ReportMetric(0, "ns/op") // of all: it says nothing
	if err != nil {
		b.Fatal(err)
	}
}

// nodesOf starts a node on each host, with its files in memory, until the benchmark ends, and
// waits until the first knows all. It returns what begins a client's command there.
func (h *hosts) nodesOf(all []string) func(...string) *exec.Cmd {
	h.b.Helper()
	state := func(host string) string { return filepath.Join(h.dir, host) }
	for _, host := range all {
		h.serve(host, "zorilla", "node", "--state", state(host), "--name", host, "--web", "none", "--slots", "1", "--join", lab.Address(0, 1).String()+":5444")
	}
	h.b.Cleanup(func() {
		for _, host := range all {
			_ = os.RemoveAll(state(host)) // in memory, which has room
		}
	})
	h.know(state(all[0]), len(all))
	return func(words ...string) *exec.Cmd {
		cmd := exec.Command("zorilla", words...)
		cmd.Env = append(os.Environ(), "ZORILLA_STATE="+state(all[0]))
		return cmd
	}
}
