package process

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"zorilla/jobs/work"
)

// array is the spec of a script that runs once for each of n tasks.
func array(t testing.TB, n int, text string) Spec {
	s := script(t, text)
	s.Tasks = &TaskSpec{IDs: []work.TaskIDs{{First: 1, Last: n, Step: 1}}}
	s.Env = []string{"PATH=/usr/bin:/bin", "TMPDIR=" + filepath.Join(s.Root, tmpDir)}
	return s
}

// awaitEnded waits until so many tasks have ended.
func awaitEnded(t testing.TB, w Worker, n int) {
	t.Helper()
	late := time.After(deadline)
	for {
		changed := w.Changed()
		added, ended := w.Tasks().Counts()
		if ended >= n {
			return
		}
		select {
		case <-changed:
		case <-late:
			t.Fatalf("%d of %d tasks have ended, want %d", ended, added, n)
		}
	}
}

// results returns the results of all tasks, and what each wrote.
func results(t testing.TB, w Worker) (all []TaskResult, stdout, stderr []string) {
	t.Helper()
	_, n := w.Tasks().Counts()
	all, err := w.Tasks().Results(0, n)
	if err != nil || len(all) != n {
		t.Fatalf("%d of %d results: %v", len(all), n, err)
	}
	out, errs := output(t, w, work.Stdout), output(t, w, work.Stderr)
	for _, r := range all {
		stdout, stderr = append(stdout, out[:r.Stdout]), append(stderr, errs[:r.Stderr])
		out, errs = out[r.Stdout:], errs[r.Stderr+r.Files:]
	}
	if out != "" || errs != "" {
		t.Errorf("output of no task: %q, %q", out, errs)
	}
	return all, stdout, stderr
}

// Supervisors and launchers sleep less exactly than others; what they start does not, be it
// brief or not.
func TestTasksSleepAsExactlyAsOthers(t *testing.T) {
	w := start(t, Config{}, array(t, 4, `test $ZORILLA_TASK_ID != 2 || sleep 0.1; read slack </proc/self/timerslack_ns; echo $slack`))
	w.Tasks().Add(0, []TaskRange{{0, 4}}, true)
	await(t, w)
	_, stdout, stderr := results(t, w)
	for i, slack := range stdout {
		if slack != "50000\n" || stderr[i] != "" {
			t.Errorf("task %d: timers may be %q ns late, %q", i+1, slack, stderr[i])
		}
	}
}

func TestTasksRunInOrder(t *testing.T) {
	w := start(t, Config{}, array(t, 5, `echo out $ZORILLA_TASK_ID of $ZORILLA_TASK_COUNT; echo err >&2; test $ZORILLA_TASK_ID != 3; exit $?`))
	feed := w.Tasks()
	feed.Add(0, []TaskRange{{0, 2}}, false)
	awaitEnded(t, w, 2)
	feed.Add(0, []TaskRange{{0, 2}, {4, 1}}, false) // the first two are known
	feed.Add(4, []TaskRange{{3, 1}}, true)          // there is a gap: left out
	awaitEnded(t, w, 3)
	feed.Add(3, []TaskRange{{3, 1}, {2, 1}}, true)
	if e := await(t, w); e.Code != 0 || e.Cause != work.Exited {
		t.Fatalf("exit %+v", e)
	}
	all, stdout, stderr := results(t, w)
	for i, place := range []int{0, 1, 4, 3, 2} {
		want := 0
		if place == 2 {
			want = 1
		}
		if r := all[i]; r.Place != place || r.Code != want || stdout[i] != fmt.Sprintf("out %d of 5\n", place+1) || stderr[i] != "err\n" {
			t.Errorf("result %d: %+v, %q, %q", i, r, stdout[i], stderr[i])
		}
	}
	if _, err := feed.Results(5, 1); err != nil {
		t.Errorf("beyond the end: %v", err)
	}
}

func TestTasksTakeLines(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"at the end": {[]string{"/bin/sh", "-c", `echo "$ZORILLA_TASK_LINE|$1"`, "sh"}, "a b|a b\nc|c\n|\nd|d\n"},
		"in place":   {[]string{"/bin/echo", "-{}-", "{}"}, "-a b- a b\n-c- c\n-- \n-d- d\n"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := array(t, 4, "")
			spec.Args, spec.Tasks.Lines = c.args, "list"
			if err := os.WriteFile(filepath.Join(spec.Root, workDir, "list"), []byte("a b\nc\r\n\nd"), 0o644); err != nil {
				t.Fatal(err)
			}
			w := start(t, Config{}, spec)
			w.Tasks().Add(0, []TaskRange{{0, 4}}, true)
			if e := await(t, w); e.Code != 0 {
				t.Fatalf("exit %+v", e)
			}
			if got := output(t, w, work.Stdout); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestTasksThatFailDoNotEndTheWorker(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	type end struct {
		code           int
		stdout, stderr string
	}
	run := func(spec Spec, want ...end) {
		t.Helper()
		w := start(t, Config{Grace: 100 * time.Millisecond}, spec)
		w.Tasks().Add(0, []TaskRange{{0, len(want)}}, true)
		if e := await(t, w); e.Code != 0 || e.Cause != work.Exited {
			t.Fatalf("exit %+v", e)
		}
		all, stdout, stderr := results(t, w)
		for i, want := range want {
			if got := (end{all[i].Code, stdout[i], stderr[i]}); got != want {
				t.Errorf("task %d: %+v, want %+v", i+1, got, want)
			}
		}
	}
	spec := array(t, 3, `case $ZORILLA_TASK_ID in 1) kill -KILL $$;; 2) exec 2>/dev/null; sleep 1000 | `+exe+` helper:hog 300 wait;; esac; echo fine`)
	spec.Expose, spec.Memory = []string{exe}, 100<<20
	run(spec, end{137, "", ""}, end{137, "", "zorilla: task 2 needed more than 100 MiB of memory (--mem)\n"}, end{0, "fine\n", ""})

	// Apart: who needs too much memory may need any time for it.
	spec = array(t, 2, `test $ZORILLA_TASK_ID = 2 || sleep 1000; echo fine`)
	spec.Walltime = 2 * time.Second
	run(spec, end{124, "", "zorilla: task 1 needed more than 2s (-t)\n"}, end{0, "fine\n", ""})
}

func TestTasksWithoutTheirCommand(t *testing.T) {
	spec := array(t, 2, "")
	spec.Args = []string{"no-such-command"}
	w := start(t, Config{}, spec)
	w.Tasks().Add(0, []TaskRange{{0, 2}}, true)
	await(t, w)
	all, _, stderr := results(t, w)
	if len(all) != 2 || all[1].Code != 127 || !strings.Contains(stderr[1], "command not found on this node") {
		t.Errorf("%+v, %q", all, stderr)
	}
}

func TestWhatTasksLeaveBehindIsKilled(t *testing.T) {
	for _, basic := range []bool{false, true} {
		spec := array(t, 2, `if test $ZORILLA_TASK_ID = 1; then setsid sh -c 'touch begun; while :; do echo noise; sleep 0.01; done' & while ! test -e begun; do sleep 0.01; done; else sleep 0.1; echo quiet; fi`)
		w := start(t, Config{Basic: basic}, spec)
		w.Tasks().Add(0, []TaskRange{{0, 2}}, true)
		await(t, w)
		if _, stdout, _ := results(t, w); stdout[1] != "quiet\n" {
			t.Errorf("second task: %q", stdout[1])
		}
	}
}

func TestTaskThatIsStoppedHasNoResult(t *testing.T) {
	w := start(t, Config{}, array(t, 9, `test $ZORILLA_TASK_ID = 1 || { echo begun; exec sleep 1000; }`))
	w.Tasks().Add(0, []TaskRange{{0, 9}}, false)
	awaitOutput(t, w, 6)
	w.Stop(0, 10*time.Second)
	if e := await(t, w); e.Cause != work.Stopped || e.Code != 128+int(unix.SIGTERM) {
		t.Errorf("exit %+v", e)
	}
	if _, ended := w.Tasks().Counts(); ended != 1 {
		t.Errorf("%d tasks have ended, want 1", ended)
	}
}

// A node that is started again finds the tasks where they are.
func TestAdoptedTasksGoOn(t *testing.T) {
	gates := t.TempDir()
	spec := array(t, 3, `while ! test -e `+gates+`/go$ZORILLA_TASK_ID; do sleep 0.01; done; echo $ZORILLA_TASK_ID`)
	spec.NodeLimit, spec.Expose = time.Minute, []string{gates}
	r := New(Config{})
	w, err := r.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	allow := func(n int) {
		if err := os.WriteFile(filepath.Join(gates, fmt.Sprint("go", n)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	w.Tasks().Add(0, []TaskRange{{0, 2}}, false)
	allow(1)
	awaitEnded(t, w, 1)
	w.Leave()
	w, err = r.Adopt(context.Background(), spec.Root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Stop(0, 0); await(t, w); w.Close() })
	if _, ended := w.Tasks().Counts(); ended < 1 {
		t.Errorf("%d ended at once", ended)
	}
	w.Tasks().Add(2, []TaskRange{{2, 1}}, true)
	allow(2)
	allow(3)
	if e := await(t, w); e.Code != 0 {
		t.Fatalf("exit %+v", e)
	}
	again, err := r.Adopt(context.Background(), spec.Root)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if all, stdout, _ := results(t, again); len(all) != 3 || stdout[2] != "3\n" {
		t.Errorf("%+v, %q", all, stdout)
	}
}

func BenchmarkTask(b *testing.B) {
	spec := array(b, 1<<20, "")
	spec.Args = []string{"/bin/true"}
	w := start(b, Config{}, spec)
	begin := time.Now()
	w.Tasks().Add(0, []TaskRange{{0, b.N}}, true)
	b.ResetTimer()
	await(b, w)
	b.ReportMetric(float64(b.N)/time.Since(begin).Seconds(), "tasks/s")
}
