package testnet

import (
	"bytes"
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
func outputOf(t *testing.T, w process.Worker, s process.Stream) string {
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
		cause          process.Cause
		stdout, stderr string
		took           time.Duration
	}{
		{"sleep 1m", 0, process.Exited, "", "", time.Minute},
		{"/bin/sleep 1.5", 0, process.Exited, "", "", 1500 * time.Millisecond},
		{"sleep now", 2, process.Exited, "", "sleep: time: invalid duration \"nows\"\n", 0},
		{"echo rank $ZORILLA_RANK of ${ZORILLA_SIZE}", 0, process.Exited, "rank 3 of 4\n", "", 0},
		{"fail 7", 7, process.Exited, "", "fail: as it was told\n", 0},
		{"fail -11", 139, process.Signalled, "", "fail: as it was told\n", 0},
		{"cat", 0, process.Exited, "", "", 0},
		{"write ../out x", 1, process.Exited, "", "write: openat ../out: path escapes from parent\n", 0},
		{"./nothing", 127, process.NotFound, "", "", 0},
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
			if stdout, stderr := outputOf(t, w, process.Stdout), outputOf(t, w, process.Stderr); stdout != tc.stdout || stderr != tc.stderr {
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
	walltime := func(s *process.Spec) { s.Walltime = time.Minute }
	for _, tc := range []struct {
		program string
		change  func(*process.Spec)
		grace   time.Duration // of Stop after ten seconds; negative = no Stop
		code    int
		cause   process.Cause
		took    time.Duration
	}{
		{"sleep", nil, 5 * time.Second, 143, process.Stopped, 10 * time.Second},
		{"sleep", nil, 0, 137, process.Stopped, 10 * time.Second},
		{"stubborn", nil, 5 * time.Second, 137, process.Stopped, 15 * time.Second},
		{"sleep", walltime, -1, 124, process.Walltime, time.Minute},
		{"stubborn", walltime, -1, 124, process.Walltime, time.Minute + walltimeGrace},
		{"sleep", walltime, 5 * time.Second, 143, process.Stopped, 10 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := NewRunner(map[string]Program{"stubborn": stubborn})
			w, begin := start(t, r, tc.change, tc.program, "3600"), time.Now()
			if tc.grace >= 0 {
				time.AfterFunc(10*time.Second, func() {
					if tc.program == "stubborn" {
						w.Stop(time.Hour) // a second Stop shortens the grace
					}
					w.Stop(tc.grace)
				})
			}
			<-w.Done()
			if exit := w.Exit(); exit.Code != tc.code || exit.Cause != tc.cause {
				t.Errorf("%+v: %+v", tc, exit)
			}
			if got := time.Since(begin); got != tc.took {
				t.Errorf("%+v: took %v", tc, got)
			}
			w.Stop(0)
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
			if exit := w.Exit(); exit.Code != 137 || exit.Cause != process.Signalled {
				t.Errorf("%+v", exit)
			}
		}
		if _, err := b.Stdin().Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("input of a killed worker: %v", err)
		}
		if r.Running() != 0 {
			t.Errorf("%d still running", r.Running())
		}
	})
}

func TestRunnerAdopt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRunner(nil)
		limits := func(s *process.Spec) { s.NodeLimit, s.OrphanLimit = time.Minute, time.Hour }
		a, b, c := start(t, r, limits, "sleep", "2h"), start(t, r, limits, "echo", "hello"), start(t, r, limits, "sleep", "2h")
		<-b.Done()
		for range 3 {
			for _, w := range []process.Worker{a, b, c} {
				w.Leave()
				time.Sleep(30 * time.Second)
				again, err := r.Adopt(t.Context(), w.(*worker).spec.Root)
				if err != nil || again != w {
					t.Fatal(again, err)
				}
				c.Heard()
			}
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if _, err := r.Adopt(t.Context(), b.(*worker).spec.Root); !errors.Is(err, process.ErrLost) {
			t.Errorf("adopt what was closed: %v", err)
		}
		c.Leave()
		<-c.Done()
		if e := c.Exit(); e.Cause != process.Orphaned || e.Detail != "its node was gone for 1m0s" {
			t.Errorf("%+v", e)
		}
		<-a.Done()
		if e := a.Exit(); e.Cause != process.Orphaned || e.Detail != "its origin was silent for 1h0m0s" {
			t.Errorf("%+v", e)
		}
		r.Kill()
		if _, err := r.Adopt(t.Context(), c.(*worker).spec.Root); !errors.Is(err, process.ErrLost) {
			t.Errorf("adopt after a failure of the power: %v", err)
		}
	})
}

func TestWorkerStdin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, NewRunner(nil), func(s *process.Spec) { s.Stdin = true }, "cat")
		want := bytes.Repeat([]byte("0123456789"), 50_000) // more than the pipe holds
		if n, err := w.Stdin().Write(want); n != len(want) || err != nil {
			t.Fatalf("wrote %d, %v", n, err)
		}
		w.Stdin().Close()
		<-w.Done()
		if got := outputOf(t, w, process.Stdout); got != string(want) || w.Exit().Code != 0 {
			t.Errorf("%d bytes came back, %+v", len(got), w.Exit())
		}
		if w := start(t, NewRunner(nil), nil, "cat"); w.Stdin() != nil {
			t.Error("a worker without standard input has one")
		}
	})
}

// TestWorkerOutputIsBounded follows a worker the way a node does.
func TestWorkerOutputIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const total = 10_000
		r := NewRunner(map[string]Program{"flood": func(ctx context.Context, w *FakeWorker) int {
			for i := range total / 10 {
				w.Stdout.Write([]byte{byte(i), 1, 2, 3, 4, 5, 6, 7, 8, 9})
			}
			io.WriteString(w.Stderr, "done")
			return 0
		}})
		r.spool = 256
		w := start(t, r, nil, "flood")
		synctest.Wait()
		if out, _ := w.Written(); out != 256 {
			t.Errorf("wrote %d bytes ahead of a spool of 256", out)
		}
		var got int64
		p := make([]byte, 100)
		for ended := false; !ended; {
			changed := w.Changed()
			for {
				n, err := w.ReadOutput(process.Stdout, got, p)
				if err != nil {
					t.Fatal(err)
				}
				if n == 0 {
					break
				}
				got += int64(n)
				w.Ack(got, 0)
			}
			select {
			case <-w.Done():
				out, _ := w.Written()
				ended = got == out
			case <-changed:
			}
		}
		if out, errs := w.Written(); got != total || out != total || errs != 4 {
			t.Errorf("read %d of %d bytes, %d of stderr", got, out, errs)
		}
		if _, err := w.ReadOutput(process.Stdout, 0, p); !errors.Is(err, process.ErrAcked) {
			t.Errorf("acknowledged bytes: %v", err)
		}
		w.Ack(1<<40, 1<<40) // more than there is
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		if _, err := w.ReadOutput(process.Stderr, 0, p); !errors.Is(err, os.ErrClosed) {
			t.Errorf("output of a closed worker: %v", err)
		}
	})
}

func TestStopFreesABlockedWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRunner(map[string]Program{"yes": func(ctx context.Context, w *FakeWorker) int {
			for {
				if _, err := io.WriteString(w.Stdout, "y\n"); err != nil {
					return 1
				}
			}
		}})
		r.spool = 64
		w, begin := start(t, r, nil, "yes"), time.Now()
		synctest.Wait()
		w.Stop(time.Hour)
		<-w.Done()
		if exit := w.Exit(); exit.Code != 143 || exit.Cause != process.Stopped || time.Since(begin) != 0 {
			t.Errorf("%+v after %v", exit, time.Since(begin))
		}
	})
}

func TestRunnerRefuses(t *testing.T) {
	r := NewRunner(nil)
	if _, err := r.Start(t.Context(), process.Spec{Root: "relative", Args: []string{"echo"}}); !errors.Is(err, process.ErrSpec) {
		t.Errorf("a relative root: %v", err)
	}
	if _, err := r.Start(t.Context(), process.Spec{Root: t.TempDir()}); !errors.Is(err, process.ErrSpec) {
		t.Errorf("no command: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Start(ctx, process.Spec{Root: t.TempDir(), Args: []string{"echo"}}); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled context: %v", err)
	}
}
