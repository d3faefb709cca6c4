// Package workertest is the suite that every process.Worker passes: the real
// workers of jobs/process, and those that testnet emulates.
//
// Workers run the programs of [Programs], which are written against [Self]: a
// test binary that calls [Main] first runs them as processes, an emulation as
// functions. The suite knows of a worker what a node does, no more; where it has
// to wait it waits for an event.
package workertest

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"zorilla/jobs/process"
	"zorilla/jobs/work"
)

// deadline bounds the wait for an event that should come at once.
const deadline = 30 * time.Second

// Runner starts workers, and finds them again.
type Runner interface {
	Start(ctx context.Context, spec process.Spec) (process.Worker, error)
	Adopt(ctx context.Context, root string) (process.Worker, error)
}

// Kit makes the workers under test. All of its fields must be set.
type Kit struct {
	// Runner returns a new runner: how long a worker has from SIGTERM to SIGKILL
	// when a limit ends it, and how many bytes of a stream may wait for their
	// acknowledgement.
	Runner func(grace time.Duration, spool int64) Runner
	// Spec makes a spec run one of Programs.
	Spec func(spec *process.Spec, program string, args ...string)
	// Ended returns when the worker of root has ended, which no node is
	// connected to.
	Ended func(t *testing.T, r Runner, root string)
	// Clean ends what is alive of root, and removes it.
	Clean func(r Runner, root string) error
	// In runs a test, in a bubble where time is virtual.
	In func(t *testing.T, test func(t *testing.T))
}

// Run tests the workers of a kit.
func Run(t *testing.T, k Kit) {
	for _, c := range slices.Concat(ends, outputs, nodes, tasks) {
		t.Run(c.name, func(t *testing.T) {
			k.In(t, func(t *testing.T) {
				s := &suite{T: t, kit: k}
				s.configure(100*time.Millisecond, process.DefaultSpool)
				defer s.clean()
				c.test(s)
			})
		})
	}
}

type test struct {
	name string
	test func(s *suite)
}

// suite is one test with its workers.
type suite struct {
	*testing.T
	kit   Kit
	r     Runner
	roots map[string]Runner
}

// configure makes the workers that follow those of another runner.
func (s *suite) configure(grace time.Duration, spool int64) {
	if s.roots == nil {
		s.roots = map[string]Runner{}
	}
	s.r = s.kit.Runner(grace, spool)
}

func (s *suite) clean() {
	for root, r := range s.roots {
		if err := s.kit.Clean(r, root); err != nil {
			s.Error(err)
		}
	}
}

// spec is that of a program in a new root.
func (s *suite) spec(program string, args ...string) process.Spec {
	s.Helper()
	root := filepath.Join(s.TempDir(), "root")
	if err := process.MakeRoot(root, "test"); err != nil {
		s.Fatal(err)
	}
	s.roots[root] = s.r
	spec := process.Spec{Root: root, UID: -1, NodeLimit: time.Hour, Env: []string{"TMPDIR=" + filepath.Join(root, "tmp")}}
	s.kit.Spec(&spec, program, args...)
	return spec
}

func (s *suite) start(spec process.Spec) process.Worker {
	s.Helper()
	w, err := s.r.Start(s.Context(), spec)
	if err != nil {
		s.Fatal(err)
	}
	return w
}

func (s *suite) adopt(spec process.Spec) process.Worker {
	s.Helper()
	w, err := s.r.Adopt(s.Context(), spec.Root)
	if err != nil {
		s.Fatal(err)
	}
	return w
}

// await returns how a worker ended, and how that must be told of every end.
func (s *suite) await(w process.Worker) work.Exit {
	s.Helper()
	select {
	case <-w.Done():
	case <-time.After(deadline):
		s.Fatal("the worker does not end")
	}
	e := w.Exit()
	if e.Ended.IsZero() || e.Ended.Before(e.Started) {
		s.Errorf("it ran from %v to %v", e.Started, e.Ended)
	}
	select {
	case <-w.Changed():
	default:
		s.Error("Changed does not tell of the end")
	}
	return e
}

// want checks how a worker ended.
func (s *suite) want(w process.Worker, code int, cause work.Cause, detail string) {
	s.Helper()
	if e := s.await(w); e.Code != code || e.Cause != cause || e.Detail != detail {
		s.Errorf("it ended with %+v, %q, want %d, %s, %q", e, s.output(w, work.Stderr), code, cause, detail)
	}
}

// output returns what there is of a stream, from its first byte on.
func (s *suite) output(w process.Worker, stream work.Stream) string {
	s.Helper()
	var all bytes.Buffer
	for buf := make([]byte, 4096); ; {
		n, err := w.ReadOutput(stream, int64(all.Len()), buf)
		if err != nil {
			s.Fatal(err)
		}
		if n == 0 {
			return all.String()
		}
		all.Write(buf[:n])
	}
}

// wantOutput checks both streams of a worker.
func (s *suite) wantOutput(w process.Worker, stdout, stderr string) {
	s.Helper()
	if out, errs := s.output(w, work.Stdout), s.output(w, work.Stderr); out != stdout || errs != stderr {
		s.Errorf("it wrote %.200q and %.200q, want %.200q and %.200q", out, errs, stdout, stderr)
	}
}

// follow waits for changes of a worker until reached says that it is enough.
func (s *suite) follow(w process.Worker, reached func() bool) {
	s.Helper()
	for late := time.After(deadline); ; {
		changed := w.Changed()
		if reached() {
			return
		}
		select {
		case <-changed:
		case <-late:
			s.Fatal("the worker does not get so far")
		}
		select {
		case <-w.Done():
			if !reached() {
				s.Fatalf("the worker ended before: %+v, %q", w.Exit(), s.output(w, work.Stderr))
			}
		default:
		}
	}
}

// awaitOutput waits until a worker has written so much to its standard output.
func (s *suite) awaitOutput(w process.Worker, text string) {
	s.Helper()
	s.follow(w, func() bool {
		n, _ := w.Written()
		return n >= int64(len(text))
	})
	if got := s.output(w, work.Stdout); got != text {
		s.Fatalf("it wrote %.200q, want %.200q", got, text)
	}
}

// ready starts a worker, and returns once it has said so.
func (s *suite) ready(spec process.Spec) process.Worker {
	s.Helper()
	w := s.start(spec)
	s.awaitOutput(w, "ready\n")
	return w
}

// file reads a file that a worker left in its root.
func (s *suite) file(spec process.Spec, name string) string {
	s.Helper()
	b, err := os.ReadFile(filepath.Join(spec.Root, name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		s.Fatal(err)
	}
	return string(b)
}

// put writes an input into the work directory of a worker.
func (s *suite) put(spec process.Spec, name, text string) {
	s.Helper()
	if err := os.WriteFile(filepath.Join(spec.Root, "work", name), []byte(text), 0o644); err != nil {
		s.Fatal(err)
	}
}
