package main

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/work"
	"zorilla/node/api"
	"zorilla/node/api/apitest"
	"zorilla/vicinity"
)

// buffer is a bytes.Buffer for several goroutines.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) take() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.b.String()
	b.b.Reset()
	return s
}

// following is a follower of a job of a Fake, inside a bubble.
type following struct {
	fake     *apitest.Fake
	job      *apitest.Job
	signals  chan os.Signal
	out, err buffer
	into     string
	ended    chan error
}

func follow(t *testing.T, s api.Service, f *apitest.Fake) *following {
	t.Helper()
	id, err := f.Submit(t.Context(), jobs.Spec{Args: []string{"a"}, Min: 2, Max: 2, Slots: 1})
	if err != nil {
		t.Fatal(err)
	}
	job, err := f.Find(string(id))
	if err != nil {
		t.Fatal(err)
	}
	fo := &following{fake: f, job: job, signals: make(chan os.Signal), ended: make(chan error, 1)}
	con := &console{stdout: &fo.out, stderr: &fo.err}
	fo.into = t.TempDir()
	go func() {
		f := newFollower(con, s, id)
		f.out, f.want, f.signals = newPrinter(&fo.out, &fo.err, false), api.Wanted{Rank: -1, Into: fo.into}, fo.signals
		fo.ended <- f.run(t.Context())
	}()
	synctest.Wait()
	return fo
}

// says waits until all is quiet and compares what was said since.
func (fo *following) says(t *testing.T, want string) {
	t.Helper()
	synctest.Wait()
	got := strings.ReplaceAll(fo.err.take(), fo.job.Status().ID.Short(), "ID")
	if got != want {
		t.Errorf("stderr:\n got %q\nwant %q", got, want)
	}
}

func TestRunSaysWhyItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := apitest.New()
		fo := follow(t, f, f)
		fo.job.Update(func(s *jobs.Status) { s.Reason = "2 nodes asked, both busy" })
		time.Sleep(patience - time.Nanosecond)
		fo.says(t, "")
		time.Sleep(time.Nanosecond)
		fo.says(t, "zorilla: job ID has not started: 2 nodes asked, both busy\n")
		time.Sleep(time.Minute) // the same reason is no news
		fo.says(t, "")
		fo.job.Update(func(s *jobs.Status) { s.State, s.Reason = jobs.Staging, "3 MB to go" })
		time.Sleep(11 * patience)
		fo.says(t, "zorilla: job ID has not started: 3 MB to go\n")
		fo.job.Update(func(s *jobs.Status) { s.Reason = "waiting for 2 workers: both busy" })
		time.Sleep(11 * patience)
		fo.says(t, "zorilla: job ID has not started: waiting for 2 workers: both busy\n")
		fo.job.Update(func(s *jobs.Status) {
			s.State, s.Workers = jobs.Running, []jobs.WorkerStatus{{Rank: 0, Attempt: 1}, {Rank: 1, Attempt: 1}}
		})
		time.Sleep(time.Minute)
		fo.job.Update(func(s *jobs.Status) {
			s.Workers = []jobs.WorkerStatus{{Rank: 0, Attempt: 1}, {Rank: 1, Attempt: 2, Retried: "rank 1 on there ended with 1"}}
			s.Warnings = []string{"strange\x1b[2J"}
		})
		fo.says(t, "zorilla: rank 1 is placed again (attempt 2): rank 1 on there ended with 1\nzorilla: warning: strange?[2J\n")
		fo.job.Update(func(s *jobs.Status) { s.State, s.Reason, s.ExitCode = jobs.Timeout, "rank 1 ran out of time", 124 })
		time.Sleep(time.Second)
		fo.says(t, "zorilla: job ID TIMEOUT, exit code 124: rank 1 ran out of time\n")
		if err := <-fo.ended; err != exitCode(124) {
			t.Errorf("got %v, want 124", err)
		}
	})
}

func TestTwoInterruptsWithinTwoSecondsCancel(t *testing.T) {
	const once = `zorilla: job ID is PENDING, 0 of 2 workers run: Ctrl-C again within 2 s cancels it, Ctrl-\ detaches and lets it run` + "\n"
	synctest.Test(t, func(t *testing.T) {
		f := apitest.New()
		fo := follow(t, f, f)
		fo.signals <- os.Interrupt
		fo.says(t, once)
		time.Sleep(cancelWindow)
		fo.err.take() // that it waits
		fo.signals <- os.Interrupt
		fo.says(t, once)
		time.Sleep(cancelWindow - time.Nanosecond)
		fo.signals <- os.Interrupt
		fo.says(t, "zorilla: cancelling job ID\nzorilla: job ID CANCELLED, exit code 130: cancelled by the user\n")
		if err := <-fo.ended; err != exitCode(130) {
			t.Errorf("got %v, want 130", err)
		}
	})
}

func TestAThirdInterruptLeaves(t *testing.T) {
	f := apitest.New()
	fo := newFollower(&console{stderr: &buffer{}}, f, "aaaaa@zeb2a")
	for i, want := range []error{nil, nil, exitCode(130)} {
		if err := fo.signal(os.Interrupt); err != want {
			t.Errorf("signal %d: got %v, want %v", i+1, err, want)
		}
	}
}

func TestSignalsThatDetach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := apitest.New()
		for sig, code := range map[syscall.Signal]exitCode{syscall.SIGTERM: 143, syscall.SIGHUP: 129, syscall.SIGQUIT: 131} {
			fo := follow(t, f, f)
			fo.signals <- syscall.SIGPIPE // means nothing by itself
			fo.signals <- sig
			fo.says(t, "zorilla: detached from job ID, which goes on: 'zorilla attach ID' comes back to it, 'zorilla cancel ID' ends it\n")
			if err := <-fo.ended; err != code {
				t.Errorf("%v: got %v, want %v", sig, err, code)
			}
			if st := fo.job.Status(); st.State.Final() {
				t.Errorf("%v: job is %s", sig, st.State)
			}
		}
	})
}

func TestOutputIsCompleteBeforeTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := apitest.New()
		fo := follow(t, f, f)
		for i := range 1000 {
			fo.job.Emit(jobs.Output{Attempt: 1, Stream: work.Stdout, Offset: int64(i), Data: []byte("x")})
		}
		fo.job.Update(func(s *jobs.Status) { s.State, s.ExitCode = jobs.Completed, 0 })
		if err := <-fo.ended; err != nil || fo.out.take() != strings.Repeat("x", 1000) {
			t.Errorf("got %v", err)
		}
	})
}

// Of ranks that share a directory one of each node is looked at, unless another one is meant.
func TestRunningRanks(t *testing.T) {
	st := jobs.Status{Outputs: []jobs.RankOutput{{Rank: 5}}}
	for rank, node := range []vicinity.ID{"a", "a", "b", "a", "b", "c"} {
		st.Workers = append(st.Workers, jobs.WorkerStatus{Rank: rank, Node: node, State: jobs.WorkerRunning})
	}
	st.Workers[0].State = jobs.WorkerEnded
	for _, c := range []struct {
		share bool
		only  int
		want  []int
	}{{false, -1, []int{1, 2, 3, 4}}, {true, -1, []int{1, 2}}, {true, 3, []int{3}}, {true, 0, nil}, {false, 4, []int{4}}} {
		if st.Spec.ShareWork = c.share; !slices.Equal(runningRanks(&st, c.only), c.want) {
			t.Errorf("%+v: %v", c, runningRanks(&st, c.only))
		}
	}
}
