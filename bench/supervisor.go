package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"zorilla/jobs/process"
)

const supervised = 8

// measureSupervisor prints what the supervisor of a worker costs: how much later
// than by fork and exec the worker's first byte comes, and memory that nobody
// else uses.
func measureSupervisor(program, dir string, runs int) error {
	runner := process.New(process.Config{Executable: program})
	words := []string{"/bin/echo", "hello"}
	var ours, theirs []time.Duration
	var busy, busyBare time.Duration
	for i := range runs { // in turn, so that both see the same noise
		before := childrenCPU()
		a, err := firstByte(runner, filepath.Join(dir, "w"+strconv.Itoa(i)), words)
		if err != nil {
			return fmt.Errorf("supervised: %w", err)
		}
		between := childrenCPU()
		b, err := firstByteOf(exec.Command(words[0], words[1:]...))
		if err != nil {
			return err
		}
		ours, theirs = append(ours, a), append(theirs, b)
		busy, busyBare = busy+between-before, busyBare+childrenCPU()-between
	}
	fmt.Printf("first byte of echo, %d runs in turn               median      min      max\n", runs)
	row("under a supervisor", ours)
	row("fork+exec", theirs)
	fmt.Printf("  %.1f ms more in the median, %.1f ms in the best case; target: under 6 ms\n", ms(median(ours)-median(theirs)), ms(slices.Min(ours)-slices.Min(theirs)))
	fmt.Printf("  processor time from start to end: %.1f ms, fork+exec %.1f ms\n\n", ms(busy)/float64(runs), ms(busyBare)/float64(runs))
	return weighSupervisors(runner, dir)
}

// childrenCPU is the processor time of all processes that were waited for.
func childrenCPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_CHILDREN, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// firstByte runs a worker to its end and returns how long it took until its
// first output was there.
func firstByte(runner *process.Runner, root string, args []string) (time.Duration, error) {
	if err := os.MkdirAll(filepath.Join(root, "work"), 0o755); err != nil {
		return 0, err
	}
	begun := time.Now()
	w, err := runner.Start(context.Background(), process.Spec{Root: root, Args: args, UID: -1})
	if err != nil {
		return 0, err
	}
	for n := int64(0); n == 0; n, _ = w.Written() {
		changed := w.Changed()
		if n, _ := w.Written(); n > 0 {
			break
		}
		<-changed
		if n, _ := w.Written(); n == 0 && w.Exit().Cause != "" {
			return 0, fmt.Errorf("no output: %+v", w.Exit())
		}
	}
	took := time.Since(begun)
	<-w.Done()
	return took, w.Close()
}

// firstByteOf does the same with a bare process.
func firstByteOf(cmd *exec.Cmd) (time.Duration, error) {
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	if _, err := bufio.NewReader(out).ReadByte(); err != nil {
		return 0, err
	}
	return time.Since(begun), cmd.Wait()
}

// weighSupervisors prints the memory of supervisors whose workers run.
func weighSupervisors(runner *process.Runner, dir string) error {
	var workers []process.Worker
	defer func() {
		for _, w := range workers {
			w.Stop(0)
			<-w.Done()
			_ = w.Close() // it has ended
		}
	}()
	most := int64(0)
	for i := range supervised {
		root := filepath.Join(dir, "m"+strconv.Itoa(i))
		if err := os.MkdirAll(filepath.Join(root, "work"), 0o755); err != nil {
			return err
		}
		w, err := runner.Start(context.Background(), process.Spec{Root: root, Args: []string{"/bin/sh", "-c", "echo up; exec sleep 1000"}, UID: -1})
		if err != nil {
			return err
		}
		workers = append(workers, w)
		for n := int64(0); n == 0; n, _ = w.Written() {
			<-w.Changed()
		}
	}
	time.Sleep(time.Second) // what was needed for the start only is given back
	for i := range supervised {
		own, err := unshared(filepath.Join(dir, "m"+strconv.Itoa(i)))
		if err != nil {
			return err
		}
		most = max(most, own)
	}
	fmt.Printf("%d supervisors of running workers: at most %.1f MB of unshared memory each; target: under 8 MB\n\n", supervised, float64(most)/1e6)
	return nil
}

// unshared returns the bytes that only the supervisor of root uses.
func unshared(root string) (int64, error) {
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return 0, err
	}
	for _, path := range all {
		b, err := os.ReadFile(path)
		if err != nil || !bytes.HasSuffix(b, []byte("\x00"+root+"\x00")) {
			continue
		}
		rollup, err := os.ReadFile(filepath.Join(filepath.Dir(path), "smaps_rollup"))
		if err != nil {
			return 0, err
		}
		sum := int64(0)
		for line := range strings.Lines(string(rollup)) {
			if f := strings.Fields(line); len(f) > 1 && (f[0] == "Private_Clean:" || f[0] == "Private_Dirty:") {
				kb, err := strconv.ParseInt(f[1], 10, 64)
				if err != nil {
					return 0, err
				}
				sum += kb << 10
			}
		}
		return sum, nil
	}
	return 0, fmt.Errorf("no supervisor of %s is found", root)
}
