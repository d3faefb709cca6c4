package testnet

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"zorilla/jobs/process"
	"zorilla/jobs/work"
)

// Program is what a fake worker runs. It returns the exit code, or minus the
// number of the signal that ended it. It must return soon after ctx has ended,
// which is the SIGTERM of a fake worker, or, with FakeWorker.Trap, after Killed.
//
// The standard programs, for tests of jobs, are
//
//	sleep DURATION     sleeps; a plain number is seconds
//	echo WORD...       prints its arguments
//	write FILE WORD... writes them to a file in the work directory
//	cat                copies its standard input to its standard output
//	broken             its supervisor fails
//	fail CODE          prints a line on standard error and exits with the code
//
// echo and write expand $NAME from the worker's environment.
type Program func(ctx context.Context, w *FakeWorker) int

// FakeWorker is what a Program sees of itself.
type FakeWorker struct {
	Args           []string // Args[0] is the command
	Dir            string   // where it begins: the work directory, or that of a task
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Signals        <-chan int      // numbers of signals that it is sent; one that does not listen misses some
	Killed         <-chan struct{} // closed when nobody sees any more what it does
	env            []string
	tree           *tree
}

// Trap makes the program handle SIGTERM: how it ends after ctx is its own choice
// then, as long as it has its grace.
func (w *FakeWorker) Trap() {
	w.tree.tell(func(*process.Life, time.Time) { w.tree.trapped = true })
}

// Spawn runs another program as a child, with the same view.
func (w *FakeWorker) Spawn(program Program) { w.tree.start(program, w) }

// Hold says how many bytes of memory the processes of the worker need now.
func (w *FakeWorker) Hold(bytes int64) {
	w.tree.tell(func(l *process.Life, _ time.Time) {
		if limit := w.tree.s.spec.Memory; limit > 0 && bytes > limit {
			l.Exceeded()
		}
	})
}

// Fill says how many bytes the files of the worker take now.
func (w *FakeWorker) Fill(bytes int64) {
	w.tree.tell(func(l *process.Life, _ time.Time) {
		if limit := w.tree.s.spec.Disk; limit > 0 && bytes > limit {
			l.Overfilled()
		}
	})
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

// view is what a process of the tree sees that begins in a directory.
func (t *tree) view(dir string) *FakeWorker {
	spec := &t.s.spec
	v := &FakeWorker{
		Args: spec.Args, Dir: dir, env: spec.Env, tree: t,
		Stdin:   strings.NewReader(""),
		Stdout:  writer{t, work.Stdout},
		Stderr:  writer{t, work.Stderr},
		Signals: t.signals, Killed: t.killed,
	}
	if t.s.input != nil {
		v.Stdin = t.s.input
	}
	return v
}

type writer struct {
	t *tree
	s work.Stream
}

func (o writer) Write(p []byte) (int, error) { return o.t.write(o.s, p) }

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
