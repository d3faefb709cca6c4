package testnet

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"zorilla/jobs/process"
)

// Program is what a fake worker runs. It returns the exit code, or minus the
// number of the signal that ended it. It must return soon after ctx has ended,
// which is the SIGTERM of a fake worker.
//
// The standard programs, for tests of jobs, are
//
//	sleep DURATION     sleeps; a plain number is seconds
//	echo WORD...       prints its arguments
//	write FILE WORD... writes them to a file in the work directory
//	cat                copies its standard input to its standard output
//	broken             its supervisor fails before it starts
//	fail CODE          prints a line on standard error and exits with the code
//
// echo and write expand $NAME from the worker's environment.
type Program func(ctx context.Context, w *FakeWorker) int

// FakeWorker is what a Program sees of itself.
type FakeWorker struct {
	Args           []string // Args[0] is the command
	Dir            string   // the work directory
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Signals        <-chan int // numbers of signals that it is sent; one that does not listen misses some
	env            []string
}

// Getenv returns a variable of the worker's environment, "" if it is not set.
func (w *FakeWorker) Getenv(name string) string {
	for _, kv := range w.env {
		if k, v, _ := strings.Cut(kv, "="); k == name {
			return v
		}
	}
	return ""
}

// fail prints a line and returns an exit code.
func (w *FakeWorker) fail(code int, err any) int {
	fmt.Fprintf(w.Stderr, "%s: %v\n", w.Args[0], err)
	return code
}

// view is the program's side of a worker.
func (w *worker) view() *FakeWorker {
	v := &FakeWorker{
		Args: w.spec.Args, Dir: filepath.Join(w.spec.Root, "work"), env: w.spec.Env,
		Stdin:   strings.NewReader(""),
		Stdout:  writer{w, process.Stdout},
		Stderr:  writer{w, process.Stderr},
		Signals: w.signals,
	}
	if w.input != nil {
		v.Stdin = w.input
	}
	return v
}

type writer struct {
	w *worker
	s process.Stream
}

func (o writer) Write(p []byte) (int, error) { return o.w.write(o.s, p) }

func standard() map[string]Program {
	return map[string]Program{"sleep": sleeps, "echo": echo, "write": writes, "cat": cat, "fail": fails}
}

func sleeps(ctx context.Context, w *FakeWorker) int {
	if len(w.Args) != 2 {
		return w.fail(2, "want a duration")
	}
	d, err := time.ParseDuration(w.Args[1])
	if err != nil {
		if d, err = time.ParseDuration(w.Args[1] + "s"); err != nil {
			return w.fail(2, err)
		}
	}
	if sleep(ctx, d) != nil {
		return -sigTerm
	}
	return 0
}

func echo(_ context.Context, w *FakeWorker) int {
	if _, err := fmt.Fprintln(w.Stdout, w.text(1)); err != nil {
		return 1
	}
	return 0
}

func writes(_ context.Context, w *FakeWorker) int {
	if len(w.Args) < 2 {
		return w.fail(2, "want a file name")
	}
	dir, err := os.OpenRoot(w.Dir)
	if err != nil {
		return w.fail(1, err)
	}
	defer dir.Close()
	name := os.Expand(w.Args[1], w.Getenv)
	if err := dir.WriteFile(name, []byte(w.text(2)+"\n"), 0o644); err != nil {
		return w.fail(1, err)
	}
	return 0
}

func cat(ctx context.Context, w *FakeWorker) int {
	_, err := io.Copy(w.Stdout, w.Stdin)
	switch {
	case ctx.Err() != nil:
		return -sigTerm
	case err != nil:
		return w.fail(1, err)
	}
	return 0
}

func fails(_ context.Context, w *FakeWorker) int {
	if len(w.Args) != 2 {
		return w.fail(2, "want a code")
	}
	code, err := strconv.Atoi(w.Args[1])
	if err != nil {
		return w.fail(2, err)
	}
	return w.fail(code, "as it was told")
}

// text returns the arguments from the given one on, expanded.
func (w *FakeWorker) text(from int) string {
	return os.Expand(strings.Join(w.Args[from:], " "), w.Getenv)
}

const pipeSize = 64 << 10

// input is a pipe to a worker: a process.Input for the node, an io.Reader for
// the program.
type input struct {
	mu      sync.Mutex // guards what follows
	changed sync.Cond
	data    []byte
	passed  int64 // bytes written so far
	eof     bool  // nothing more is written
	broken  bool  // nothing more is read
}

func newInput() *input {
	in := &input{}
	in.changed.L = &in.mu
	return in
}

// Offset implements process.Input.
func (in *input) Offset() (int64, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.passed, nil
}

// Write waits while the pipe is full. It fails once nobody reads any more.
func (in *input) Write(p []byte) (int, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for n := 0; ; {
		switch room := min(pipeSize-len(in.data), len(p)-n); {
		case in.eof:
			return n, os.ErrClosed
		case in.broken:
			return n, syscall.EPIPE
		case n == len(p):
			return n, nil
		case room > 0:
			in.data = append(in.data, p[n:n+room]...)
			in.passed += int64(room)
			n += room
			in.changed.Broadcast()
		default:
			in.changed.Wait()
		}
	}
}

// Close ends the input after what was written.
func (in *input) Close() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.eof = true
	in.changed.Broadcast()
	return nil
}

// Read implements io.Reader.
func (in *input) Read(p []byte) (int, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for {
		switch {
		case in.broken:
			return 0, os.ErrClosed
		case len(in.data) > 0:
			n := copy(p, in.data)
			in.data = in.data[n:]
			in.changed.Broadcast()
			return n, nil
		case in.eof:
			return 0, io.EOF
		}
		in.changed.Wait()
	}
}

// shut ends the reading side.
func (in *input) shut() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.broken = true
	in.changed.Broadcast()
}
