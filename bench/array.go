package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// measureArray compares an array of /bin/true on the one node of the network,
// which has two slots, with xargs, and weighs the origin of a large one.
func measureArray(program string, tasks, many int) error {
	n := strconv.Itoa(tasks)
	array := func() error {
		return quiet(exec.Command(program, "run", "-q", "-a", "1-"+n, "--", "/bin/true"))
	}
	xargs := func() error {
		var lines bytes.Buffer
		for i := range tasks {
			fmt.Fprintln(&lines, i)
		}
		cmd := exec.Command("xargs", "-n1", "-P2", "/bin/true")
		cmd.Stdin = &lines
		return quiet(cmd)
	}
	var ours, theirs []time.Duration
	for range 3 { // in turn, so that both see the same noise
		a, err := timed(array)
		if err != nil {
			return fmt.Errorf("zorilla run -a: %w", err)
		}
		b, err := timed(xargs)
		if err != nil {
			return fmt.Errorf("xargs: %w", err)
		}
		ours, theirs = append(ours, a), append(theirs, b)
	}
	fmt.Printf("%d x /bin/true on one node, two slots, 3 runs in turn\n                                         median      min      max\n", tasks)
	row("zorilla run -a", ours)
	row("xargs -n1 -P2", theirs)
	fmt.Printf("  %.0f %% of the rate of xargs; target: 80 %% or more\n\n", 100*float64(median(theirs))/float64(median(ours)))
	if err := measureFiles(program, tasks); err != nil {
		return err
	}
	if many == 0 {
		return nil
	}
	return weigh(program, many)
}

// measureFiles compares tasks that leave a file, which comes home, with tasks
// that leave none, and with xargs.
func measureFiles(program string, tasks int) error {
	dir, err := os.MkdirTemp("", "zorilla-files-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	n, times := strconv.Itoa(tasks), [3][]time.Duration{}
	for run := range 3 { // in turn, so that all see the same noise
		into := filepath.Join(dir, strconv.Itoa(run))
		if err := os.MkdirAll(into+".xargs", 0o755); err != nil {
			return err
		}
		var lines bytes.Buffer
		for i := range tasks {
			fmt.Fprintln(&lines, i)
		}
		xargs := exec.Command("xargs", "-P2", "-I{}", "/bin/cp", "/etc/hostname", into+".xargs/{}")
		xargs.Stdin = &lines
		for i, cmd := range []*exec.Cmd{
			exec.Command(program, "run", "-q", "-a", "1-"+n, "--", "/bin/cp", "/etc/hostname", "out"),
			exec.Command(program, "run", "-q", "-a", "1-"+n, "-o", "out", "--into", into, "--", "/bin/cp", "/etc/hostname", "out"),
			xargs,
		} {
			took, err := timed(func() error { return quiet(cmd) })
			if err != nil {
				return fmt.Errorf("%s: %w", cmd.Args[0], err)
			}
			times[i] = append(times[i], took)
		}
		for _, made := range []string{into, into + ".xargs"} {
			if files, err := os.ReadDir(made); err != nil || len(files) != tasks {
				return fmt.Errorf("%d files, want %d: %v", len(files), tasks, err)
			}
		}
	}
	fmt.Printf("%d x cp /etc/hostname out, 3 runs in turn   median      min      max\n", tasks)
	row("zorilla run -a, no file comes home", times[0])
	row("zorilla run -a -o out", times[1])
	row("xargs -I{} -P2", times[2])
	without, with := float64(median(times[0])), float64(median(times[1]))
	fmt.Printf("  with files %.0f %% of the rate without; target: 50 %% or more; %.0f %% of the rate of xargs\n\n", 100*without/with, 100*float64(median(times[2]))/with)
	return nil
}

// weigh prints how the memory of the node grows with an array.
func weigh(program string, tasks int) error {
	pids, err := nodes(filepath.Dir(os.Getenv("ZORILLA_STATE")))
	if err != nil || len(pids) != 1 {
		return fmt.Errorf("%d node processes: %v", len(pids), err)
	}
	before, err := usageOf(pids[0])
	if err != nil {
		return err
	}
	run := exec.Command(program, "run", "-q", "-a", "1-"+strconv.Itoa(tasks), "--", "/bin/true")
	if err := run.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- run.Wait() }()
	begun, most := time.Now(), before
	fmt.Printf("%d x /bin/true, memory of the origin   own     growth a task\n", tasks)
	for tick := time.NewTicker(time.Second); ; {
		select {
		case <-tick.C:
			now, err := usageOf(pids[0])
			if err != nil {
				return err
			}
			if now.own > most.own {
				most = now
			}
			continue
		case err = <-ended:
		}
		break
	}
	if err != nil {
		return fmt.Errorf("zorilla run -a: %w", err)
	}
	now, err := usageOf(pids[0])
	if err != nil {
		return err
	}
	for _, u := range []struct {
		name string
		own  int64
	}{{"before", before.own}, {"at most", most.own}, {"at its end", now.own}} {
		fmt.Printf("  %-38s %6.1f MB %6.0f bytes\n", u.name, float64(u.own)/1e6, float64(u.own-before.own)/float64(tasks))
	}
	fmt.Printf("  in %.1f s; target: less than 1000 bytes a task\n", time.Since(begun).Seconds())
	return nil
}

// quiet runs a command that should say nothing.
func quiet(cmd *exec.Cmd) error {
	out, err := cmd.CombinedOutput()
	if err == nil && len(bytes.TrimSpace(out)) > 0 {
		err = fmt.Errorf("it says %.200q", strings.TrimSpace(string(out)))
	}
	return err
}
