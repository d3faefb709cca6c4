// Command bench measures what users wait for, beside the limit on the same
// machine in the same run:
//
//	go run ./bench            # from the root of the repository
//
// It builds zorilla, starts workers under supervisors and prints what these cost.
// Then it starts three nodes on loopback as real processes and prints how long
// "zorilla run -n 6 hostname" takes beside starting six processes directly, and
// what an idle node needs of memory and processor. Then it does the same with the
// tasks of an array on a single node, beside xargs -P.
// These machines are noisy: compare the ratios, and figures of the same run.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

const workers = 6

func main() {
	runs := flag.Int("runs", 21, "how often to run the job")
	idle := flag.Duration("idle", 10*time.Second, "how long to watch idle nodes")
	tasks := flag.Int("tasks", 10_000, "how many tasks the array has; 0 = no array")
	many := flag.Int("many", 100_000, "how many tasks the array has whose origin is weighed; 0 = none")
	only := flag.Bool("array", false, "measure only arrays")
	light := flag.Bool("supervisor", false, "measure only supervisors")
	inside := flag.String("inside", "", "internal: the program under test, in the network that was started")
	flag.Parse()
	var err error
	switch {
	case *inside != "" && *only:
		err = measureArray(*inside, *tasks, *many)
	case *inside != "":
		err = measure(*inside, *runs, *idle)
	default:
		var jobs, array []string
		if !*only && !*light {
			jobs = []string{"-runs", strconv.Itoa(*runs), "-idle", idle.String()}
		}
		if *tasks > 0 && !*light {
			array = []string{"-array", "-tasks", strconv.Itoa(*tasks), "-many", strconv.Itoa(*many)}
		}
		starts := 10 * *runs
		if *only {
			starts = 0
		}
		err = build(starts, jobs, array)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// build makes the program under test and measures it inside networks that last
// as long as the measurement: three nodes for jobs, one for an array. What has
// no arguments is left out, as are supervisors if none is to be started.
func build(starts int, jobs, array []string) error {
	dir, err := os.MkdirTemp("", "zorilla-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "zorilla")
	compile := exec.Command("go", "build", "-tags", "urfave_cli_no_docs", "-o", program, "./cmd/zorilla") // as README.md says
	compile.Env = append(os.Environ(), "CGO_ENABLED=0")
	compile.Stderr = os.Stderr
	if err := compile.Run(); err != nil {
		return fmt.Errorf("build: %w: start me in the root of the repository", err)
	}
	if starts > 0 {
		if err := measureSupervisor(program, dir, starts); err != nil {
			return fmt.Errorf("supervisors: %w", err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for nodes, args := range map[string][]string{"3": jobs, "1": array} {
		if len(args) == 0 {
			continue
		}
		cmd := exec.Command(program, append([]string{"dev", "-n", nodes, "--slots", "2", "--", self, "-inside", program}, args...)...)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			return err
		}
	}
	return nil
}

func measure(program string, runs int, idle time.Duration) error {
	job := func() error {
		out, err := exec.Command(program, "run", "-q", "--stdin", "none", "-n", strconv.Itoa(workers), "--", "hostname").Output()
		if err == nil && bytes.Count(out, []byte("\n")) != workers {
			err = fmt.Errorf("%d lines instead of %d", bytes.Count(out, []byte("\n")), workers)
		}
		return err
	}
	direct := func() error {
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
	var ours, theirs []time.Duration
	for range runs { // in turn, so that both see the same noise
		a, err := timed(job)
		if err != nil {
			return fmt.Errorf("zorilla run: %w", err)
		}
		b, err := timed(direct)
		if err != nil {
			return fmt.Errorf("hostname: %w", err)
		}
		ours, theirs = append(ours, a), append(theirs, b)
	}
	fmt.Printf("%d x hostname, %d runs in turn           median      min      max\n", workers, runs)
	row("zorilla run, three nodes", ours)
	row("fork+exec, no network", theirs)
	fmt.Printf("  ratio of the medians %.0f; target: median under 300 ms\n\n", float64(median(ours))/float64(median(theirs)))
	return watchIdle(idle)
}

func timed(f func() error) (time.Duration, error) {
	begun := time.Now()
	err := f()
	return time.Since(begun), err
}

func row(name string, d []time.Duration) {
	fmt.Printf("  %-36s %8.1f %8.1f %8.1f ms\n", name, ms(median(d)), ms(slices.Min(d)), ms(slices.Max(d)))
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func median(d []time.Duration) time.Duration {
	s := slices.Sorted(slices.Values(d))
	return s[len(s)/2]
}

// watchIdle prints what the nodes of the network need while nothing happens.
func watchIdle(d time.Duration) error {
	pids, err := nodes(filepath.Dir(os.Getenv("ZORILLA_STATE")))
	if err != nil {
		return err
	}
	if len(pids) == 0 {
		return fmt.Errorf("no node process was found")
	}
	before := map[int]usage{}
	for _, pid := range pids {
		if before[pid], err = usageOf(pid); err != nil {
			return err
		}
	}
	time.Sleep(d)
	fmt.Printf("idle node, over %v             resident      own   one core\n", d)
	for _, pid := range pids {
		now, err := usageOf(pid)
		if err != nil {
			return err
		}
		percent := 100 * float64(now.ticks-before[pid].ticks) / ticksPerSecond / d.Seconds()
		fmt.Printf("  process %-8d                  %6.1f MB %6.1f MB  %6.2f %%\n", pid, float64(now.resident)/1e6, float64(now.own)/1e6, percent)
	}
	fmt.Println("  target: under 40 MB and 1 %")
	return nil
}

// ticksPerSecond is the unit of processor time in /proc, the same on all
// systems that Go runs on.
const ticksPerSecond = 100

type usage struct {
	ticks         int64
	resident, own int64 // bytes; own = not shared with a file
}

// nodes finds the node processes whose state is below dir.
func nodes(dir string) ([]int, error) {
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, path := range all {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		args := strings.Split(string(b), "\x00")
		if len(args) > 3 && args[1] == "node" && args[2] == "--state" && strings.HasPrefix(args[3], dir+"/") {
			pid, err := strconv.Atoi(strings.Split(path, "/")[2])
			if err != nil {
				return nil, err
			}
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

func usageOf(pid int) (usage, error) {
	var u usage
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return u, err
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+2:]))
	user, err1 := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	if err1 != nil || err2 != nil {
		return u, fmt.Errorf("/proc/%d/stat cannot be read", pid)
	}
	u.ticks = user + system
	rollup, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return u, err
	}
	for line := range strings.Lines(string(rollup)) {
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
		}
	}
	return u, nil
}
