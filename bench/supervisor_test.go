package bench

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"zorilla/jobs/process"
)

// BenchmarkSupervisor is when the first byte of a worker comes, with the whole wall of
// this machine around it, beside one without control groups, one with neither these nor
// namespaces, and a bare process; and the processor time that all of them need. Target:
// at most 6 ms more than the bare process.
func BenchmarkSupervisor(b *testing.B) {
	var rivals []rival
	words := []string{"/bin/echo", "hello"}
	for _, kind := range []struct {
		name   string
		basic  bool
		groups string
	}{{"supervisor", false, fmt.Sprint("bench-", os.Getpid())}, {"without-groups", false, ""}, {"nor-namespaces", true, ""}} {
		runner := process.New(process.Config{Executable: programOf(b), Basic: kind.basic, Groups: kind.groups})
		if err := runner.Probe(b.Context()); err != nil {
			b.Fatal(err)
		}
		rivals = append(rivals, rival{kind.name, func() (time.Duration, error) { return firstByte(b, runner, words...) }})
	}
	bare := rival{"fork+exec", func() (time.Duration, error) { return firstByteOf(exec.Command(words[0], words[1:]...)) }}
	compete(b, 210, append(rivals, bare)...)
}

// worker starts a worker in a directory of its own.
func worker(b *testing.B, runner *process.Runner, args ...string) (process.Worker, string) {
	b.Helper()
	dir, err := scratch()
	if err != nil {
		b.Fatal(err)
	}
	root, err := os.MkdirTemp(dir, "w")
	if err == nil {
		err = os.Mkdir(filepath.Join(root, "work"), 0o755)
	}
	if err != nil {
		b.Fatal(err)
	}
	w, err := runner.Start(b.Context(), process.Spec{Root: root, Args: args, UID: -1})
	if err != nil {
		b.Fatal(err)
	}
	return w, root
}

// speaks waits for the first byte of a worker.
func speaks(w process.Worker) error {
	for {
		changed := w.Changed()
		if n, _ := w.Written(); n > 0 {
			return nil
		}
		select {
		case <-changed:
		case <-w.Done():
			if n, _ := w.Written(); n == 0 {
				return fmt.Errorf("no output: %+v", w.Exit())
			}
		}
	}
}

// firstByte runs a worker to its end and returns how long it took until its
// first output was there.
func firstByte(b *testing.B, runner *process.Runner, args ...string) (time.Duration, error) {
	begun := time.Now()
	w, _ := worker(b, runner, args...)
	if err := speaks(w); err != nil {
		return 0, err
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

// BenchmarkSupervisorMemory is the memory that the supervisors of eight running
// workers share with nobody, at most. Target: under 8 MB.
func BenchmarkSupervisorMemory(b *testing.B) {
	runner := process.New(process.Config{Executable: programOf(b)})
	most := int64(0)
	for b.Loop() {
		var roots []string
		for i := range 8 {
			w, root := worker(b, runner, "/bin/sh", "-c", "echo "+strconv.Itoa(i)+"; exec sleep 1000")
			defer func() {
				w.Stop(0, 0)
				<-w.Done()
			}()
			if err := speaks(w); err != nil {
				b.Fatal(err)
			}
			roots = append(roots, root)
		}
		<-time.After(time.Second) // what was needed for the start only is given back
		found := 0
		for pid, args := range processes(b) {
			if len(args) > 2 && slices.Contains(roots, args[2]) {
				most = max(most, usageOf(b, pid).unshared)
				found++
			}
		}
		if found != len(roots) {
			b.Fatalf("%d supervisors of %d were found", found, len(roots))
		}
	}
	b.ReportMetric(float64(most)/1e6, "MB/supervisor")
}
