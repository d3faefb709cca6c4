package testnet

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"zorilla/jobs/process"
	"zorilla/jobs/work"
)

// start starts a worker with a directory of its own.
func start(t *testing.T, r *Runner, change func(*process.Spec), args ...string) process.Worker {
	t.Helper()
	spec := process.Spec{Root: t.TempDir(), Args: args, Env: []string{"ZORILLA_RANK=3", "ZORILLA_SIZE=4"}}
	if err := os.Mkdir(filepath.Join(spec.Root, "work"), 0o755); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(&spec)
	}
	w, err := r.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// outputOf returns all of a stream.
func outputOf(t *testing.T, w process.Worker, s work.Stream) string {
	t.Helper()
	var all []byte
	p := make([]byte, 7)
	for {
		n, err := w.ReadOutput(s, int64(len(all)), p)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return string(all)
		}
		all = append(all, p[:n]...)
	}
}

func TestStandardPrograms(t *testing.T) {
	for _, tc := range []struct {
		args           string
		code           int
		cause          work.Cause
		stdout, stderr string
		took           time.Duration
	}{
		{"sleep 1m", 0, work.Exited, "", "", time.Minute},
		{"/bin/sleep 1.5", 0, work.Exited, "", "", 1500 * time.Millisecond},
		{"sleep now", 2, work.Exited, "", "sleep: time: invalid duration \"nows\"\n", 0},
		{"echo rank $ZORILLA_RANK of ${ZORILLA_SIZE}", 0, work.Exited, "rank 3 of 4\n", "", 0},
		{"fail 7", 7, work.Exited, "", "fail: as it was told\n", 0},
		{"fail -11", 139, work.Signalled, "", "fail: as it was told\n", 0},
		{"cat", 0, work.Exited, "", "", 0},
		{"write ../out x", 1, work.Exited, "", "write: openat ../out: path escapes from parent\n", 0},
		{"./nothing", 127, work.NotFound, "", "", 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			r, begin := NewRunner(nil), time.Now()
			w := start(t, r, nil, strings.Fields(tc.args)...)
			<-w.Done()
			exit := w.Exit()
			if exit.Code != tc.code || exit.Cause != tc.cause {
				t.Errorf("%s: %+v, want %d, %s", tc.args, exit, tc.code, tc.cause)
			}
			if got := exit.Ended.Sub(begin); got != tc.took {
				t.Errorf("%s: took %v, want %v", tc.args, got, tc.took)
			}
			if stdout, stderr := outputOf(t, w, work.Stdout), outputOf(t, w, work.Stderr); stdout != tc.stdout || stderr != tc.stderr {
				t.Errorf("%s: printed %q and %q", tc.args, stdout, stderr)
			}
			if r.Running() != 0 || r.Started() != 1 {
				t.Errorf("%s: %d running of %d", tc.args, r.Running(), r.Started())
			}
		})
	}
}

func TestWriteMakesAFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var root string
		w := start(t, NewRunner(nil), func(s *process.Spec) { root = s.Root }, "write", "part-$ZORILLA_RANK", "some", "text")
		<-w.Done()
		got, err := os.ReadFile(filepath.Join(root, "work", "part-3"))
		if err != nil || string(got) != "some text\n" {
			t.Errorf("%q, %v", got, err)
		}
	})
}

func TestWorkerStopAndWalltime(t *testing.T) {
	stubborn := func(ctx context.Context, w *FakeWorker) int {
		time.Sleep(time.Hour)
		return 0
	}
	yes := func(ctx context.Context, w *FakeWorker) int { // waits with too much output
		for {
			if _, err := io.WriteString(w.Stdout, "y\n"); err != nil {
				return 1
			}
		}
	}
	walltime := func(s *process.Spec) { s.Walltime = time.Minute }
	for _, tc := range []struct {
		program string
		change  func(*process.Spec)
		grace   time.Duration // of Stop after ten seconds; negative = no Stop
		code    int
		cause   work.Cause
		took    time.Duration
	}{
		{"sleep", nil, 5 * time.Second, 143, work.Stopped, 10 * time.Second},
		{"sleep", nil, 0, 137, work.Stopped, 10 * time.Second},
		{"stubborn", nil, 5 * time.Second, 137, work.Stopped, 15 * time.Second},
		{"sleep", walltime, -1, 124, work.Walltime, time.Minute},
		{"stubborn", walltime, -1, 124, work.Walltime, time.Minute + limitGrace},
		{"sleep", walltime, 5 * time.Second, 143, work.Stopped, 10 * time.Second},
		{"yes", nil, time.Hour, 143, work.Stopped, 10 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := NewRunner(map[string]Program{"stubborn": stubborn, "yes": yes})
			r.spool = 64
			w, begin := start(t, r, tc.change, tc.program, "3600"), time.Now()
			if tc.grace >= 0 {
				time.AfterFunc(10*time.Second, func() {
					if tc.program == "stubborn" {
						w.Stop(0, time.Hour) // a second Stop shortens the grace
					}
					w.Stop(0, tc.grace)
				})
			}
			<-w.Done()
			if exit := w.Exit(); exit.Code != tc.code || exit.Cause != tc.cause {
				t.Errorf("%+v: %+v", tc, exit)
			}
			if got := time.Since(begin); got != tc.took {
				t.Errorf("%+v: took %v", tc, got)
			}
			w.Stop(0, 0)
			time.Sleep(time.Hour) // the stubborn goroutine ends
		})
	}
}

func TestRunnerKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRunner(nil)
		a, b := start(t, r, nil, "sleep", "1h"), start(t, r, func(s *process.Spec) { s.Stdin = true }, "cat")
		if err := a.Close(); !errors.Is(err, process.ErrRunning) {
			t.Errorf("close a running worker: %v", err)
		}
		r.Kill()
		for _, w := range []process.Worker{a, b} {
			<-w.Done()
			if exit := w.Exit(); exit.Code != 137 || exit.Cause != work.Signalled {
				t.Errorf("%+v", exit)
			}
		}
		if _, err := r.Adopt(t.Context(), a.(*worker).s.spec.Root); !errors.Is(err, process.ErrLost) {
			t.Errorf("adopt after a failure of the power: %v", err)
		}
		if _, err := b.Stdin().Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("input of a killed worker: %v", err)
		}
		if r.Running() != 0 {
			t.Errorf("%d still running", r.Running())
		}
	})
}

// TestWorkersWithoutTheirNode is about the limits of workers whose node comes and
// goes, and whose origin is heard of or not.
func TestWorkersWithoutTheirNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, begin := NewRunner(nil), time.Now()
		limits := func(s *process.Spec) { s.NodeLimit, s.OrphanLimit = time.Minute, time.Hour }
		unheard, heard := start(t, r, limits, "sleep", "2h"), start(t, r, limits, "sleep", "2h")
		all := []*worker{unheard.(*worker), heard.(*worker)}
		for range 3 {
			for i, w := range all {
				w.Leave()
				time.Sleep(59 * time.Second)
				again, err := r.Adopt(t.Context(), w.s.spec.Root)
				if err != nil {
					t.Fatal(err)
				}
				all[i] = again.(*worker)
			}
			all[1].Heard()
		}
		<-all[0].Done()
		if e := all[0].Exit(); e.Cause != work.Orphaned || e.Detail != "its origin was silent for 1h0m0s" || e.Ended.Sub(begin) != time.Hour {
			t.Errorf("%+v", e)
		}
		all[1].Leave()
		left := time.Now()
		<-all[1].s.main.killed
		again, err := r.Adopt(t.Context(), all[1].s.spec.Root)
		if err != nil {
			t.Fatal(err)
		}
		if e := again.Exit(); e.Cause != work.Orphaned || e.Detail != "its node was gone for 1m0s" || e.Ended.Sub(left) != time.Minute {
			t.Errorf("%+v", e)
		}
	})
}
