package bench

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"zorilla/node"
	"zorilla/node/api"
)

var (
	given   = flag.String("program", "", "measure this program, not one that is built for it")
	scratch = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "zorilla-bench-") })
)

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if dir, err := scratch(); err == nil {
		_ = os.RemoveAll(dir) // a directory for temporary things
	}
	os.Exit(code)
}

// build makes the program under test, once, as README.md says.
var build = sync.OnceValues(func() (string, error) {
	if *given != "" {
		return exec.LookPath(*given)
	}
	dir, err := scratch()
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, "zorilla")
	cmd := exec.Command("go", "build", "-tags", "urfave_cli_no_docs", "-o", program, "zorilla/cmd/zorilla")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w: %s", err, out)
	}
	return program, nil
})

func programOf(b *testing.B) string {
	b.Helper()
	program, err := build()
	if err != nil {
		b.Fatal(err)
	}
	return program
}

// byName leaves out a benchmark that takes long or needs much room, unless it was asked for
// by its name.
func byName(b *testing.B) {
	b.Helper()
	if asked := flag.Lookup("test.bench").Value.String(); !strings.Contains(asked, strings.TrimPrefix(b.Name(), "Benchmark")) {
		leaveOut(b, "ask for it by its name")
	}
}

// network is some nodes on loopback.
type network struct {
	b       *testing.B
	program string
	state   string // directory of the first node
	dev     *exec.Cmd
	hold    io.Closer // the network lasts until it is closed
}

// start starts nodes that last until stop.
func start(b *testing.B, nodes, slots int) *network {
	b.Helper()
	return startUnder(b, nodes, slots)
}

// startUnder is start with a command in front that runs the nodes, as strace does.
func startUnder(b *testing.B, nodes, slots int, front ...string) *network {
	b.Helper()
	n := &network{b: b, program: programOf(b)}
	words := append(front, n.program, "dev", "-n", strconv.Itoa(nodes), "--slots", strconv.Itoa(slots), "--", "sh", "-c", "echo $ZORILLA_STATE; cat")
	n.dev = exec.Command(words[0], words[1:]...)
	n.dev.Stderr = os.Stderr
	in, err := n.dev.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := n.dev.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := n.dev.Start(); err != nil {
		b.Fatal(err)
	}
	n.hold = in
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		n.stop()
		b.Fatalf("start a network: %v", err)
	}
	n.state = strings.TrimSpace(line)
	return n
}

func (n *network) stop() {
	_ = n.hold.Close()
	if err := n.dev.Wait(); err != nil {
		n.b.Errorf("network: %v", err)
	}
}

// command is a client of the first node.
func (n *network) command(args ...string) *exec.Cmd {
	cmd := exec.Command(n.program, args...)
	cmd.Env = append(os.Environ(), "ZORILLA_CONFIG=none", "ZORILLA_STATE="+n.state)
	return cmd
}

// client is a program that talks to the first node.
func (n *network) client() *api.Client {
	n.b.Helper()
	c, err := api.Dial(node.Socket(n.state))
	if err != nil {
		n.b.Fatal(err)
	}
	return c
}

// pids returns the processes of the nodes.
func (n *network) pids() []int {
	n.b.Helper()
	var pids []int
	for pid, args := range processes(n.b) {
		if len(args) > 3 && args[1] == "node" && args[2] == "--state" && filepath.Dir(args[3]) == filepath.Dir(n.state) {
			pids = append(pids, pid)
		}
	}
	if len(pids) == 0 {
		n.b.Fatal("no node process was found")
	}
	return pids
}

// processes returns the arguments of all processes.
func processes(b *testing.B) map[int][]string {
	b.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		b.Fatal(err)
	}
	found := map[int][]string{}
	for _, path := range all {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		if pid, err := strconv.Atoi(strings.Split(path, "/")[2]); err == nil {
			found[pid] = strings.Split(string(text), "\x00")
		}
	}
	return found
}

// quiet runs a command that should say nothing.
func quiet(cmd *exec.Cmd) error {
	out, err := cmd.CombinedOutput()
	if err == nil && len(bytes.TrimSpace(out)) > 0 {
		err = fmt.Errorf("it says %.200q", strings.TrimSpace(string(out)))
	}
	return err
}

// rival is one of several things that are measured beside each other.
type rival struct {
	name string
	run  func() (time.Duration, error)
}

// timed measures all of a function.
func timed(f func() error) func() (time.Duration, error) {
	return func() (time.Duration, error) {
		begun := time.Now()
		err := f()
		return time.Since(begun), err
	}
}

// compete runs rivals in turn, at least so many times, and reports the median of
// each in milliseconds, and the processor time of the processes, if any, that it
// started and waited for; ratio/X says how many times as long as X the first took. It returns the
// times of each.
func compete(b *testing.B, rounds int, all ...rival) [][]time.Duration {
	b.Helper()
	times, busy := make([][]time.Duration, len(all)), make([]time.Duration, len(all))
	round := func() {
		for i, r := range all {
			before := childrenCPU()
			took, err := r.run()
			busy[i] += childrenCPU() - before
			if err != nil {
				b.Fatalf("%s: %v", r.name, err)
			}
			times[i] = append(times[i], took)
		}
	}
	for b.Loop() {
		round()
	}
	for len(times[0]) < rounds {
		round()
	}
	table := fmt.Sprintf("%d runs in turn, ms            median      min      max", len(times[0]))
	for i, r := range all {
		table += fmt.Sprintf("\n%-30s %8.1f %8.1f %8.1f", r.name, ms(median(times[i])), ms(slices.Min(times[i])), ms(slices.Max(times[i])))
		b.ReportMetric(ms(median(times[i])), "ms/"+r.name)
		if busy[i] > 0 {
			b.ReportMetric(ms(busy[i])/float64(len(times[i])), "cpu-ms/"+r.name)
		}
		if i > 0 {
			b.ReportMetric(float64(median(times[0]))/float64(median(times[i])), "ratio/"+r.name)
		}
	}
	b.ReportMetric(0, "ns/op") // of all rivals together: it says nothing
	b.Log(table)
	return times
}

// childrenCPU is the processor time of all processes that were waited for.
func childrenCPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_CHILDREN, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func median(d []time.Duration) time.Duration { return slices.Sorted(slices.Values(d))[len(d)/2] }
