package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"zorilla/cmd/zorilla/columns"
	"zorilla/cmd/zorilla/progress"
	"zorilla/cmd/zorilla/suggest"
	"zorilla/internal/units"
	"zorilla/jobs"
	"zorilla/node/api"
)

// patience is how long run waits before it says what for.
const patience = time.Second

// cancelWindow is the time between two Ctrl-C that cancel.
const cancelWindow = 2 * time.Second

// follower stays with one job until its end. Its run loop owns all fields;
// the goroutines it starts only send to it.
type follower struct {
	con     *console
	line    *lifeline
	id      jobs.ID
	quiet   bool
	files   bool // follow output files
	want    api.Wanted
	stdin   io.Reader    // nil = none
	typed   *suggest.Job // nil = it was not submitted by this command
	out     *printer
	signals chan os.Signal

	status      jobs.Status
	told        string // what it was last said to wait for
	attempts    map[workerKey]int
	warned      int       // warnings told
	interrupted time.Time // last Ctrl-C
	cancelling  bool
}

func newFollower(con *console, service api.Service, id jobs.ID) *follower {
	f := &follower{con: con, id: id, attempts: map[workerKey]int{}}
	f.line = &lifeline{service: service, job: id, tell: f.printf}
	return f
}

// follow stays with the job as the options of a command say. The signals are asked for before.
func (f *follower) follow(c *cli.Context, want api.Wanted, signals chan os.Signal) error {
	f.quiet, f.files, f.want, f.signals = c.Bool("q"), c.Bool("follow-output"), want, signals
	f.out = newPrinter(f.con.stdout, f.con.stderr, c.Bool("l"))
	return f.run(c.Context)
}

// run returns nil or an exitCode when the job has ended, or what went wrong.
func (f *follower) run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	output := make(chan error, 1)
	go func() { output <- f.line.output(ctx, api.OutputQuery{Rank: -1, Follow: true}, f.out) }()
	if f.stdin != nil {
		go f.forward(ctx)
	}
	statuses, lost := watch(ctx, f.line)
	files := f.mirror(ctx)
	defer files.stop()

	wait, closed := time.NewTimer(patience), false
	for output != nil || !f.status.State.Final() {
		select {
		case st, ok := <-statuses:
			if !ok {
				return f.broken(<-lost)
			}
			f.update(st)
		case err := <-output:
			writing, ok := errors.AsType[*writeError](err)
			if closed = ok && errors.Is(writing, syscall.EPIPE); closed {
				err = f.closed()
			}
			if err != nil {
				return f.outputFailed(err)
			}
			output = nil
		case sig := <-f.signals:
			if err := f.signal(sig); err != nil {
				return err
			}
		case <-wait.C:
			f.sayWaiting()
			wait.Reset(10 * patience)
		}
	}
	if err := f.out.finish(); err != nil && !closed {
		return f.outputFailed(err)
	}
	files.stop()
	if err := f.fetch(ctx); err != nil {
		return err
	}
	files.remove()
	if closed {
		return exitCode(128 + int(syscall.SIGPIPE))
	}
	return f.finish()
}

// closed cancels the job whose output nobody reads any more. Its files are still wanted.
func (f *follower) closed() error {
	ctx, stop := context.WithTimeout(context.Background(), cancelWait)
	defer stop()
	if err := f.line.service.Cancel(ctx, string(f.id), false); err != nil {
		return err
	}
	f.cancelling = true
	f.printf("standard output was closed: cancelled job %s", f.id.Short())
	return nil
}

// update takes note of a new status and reports what the user must know.
func (f *follower) update(st jobs.Status) {
	f.status = st
	if m := st.Moving; m != nil && (st.State == jobs.Staging || st.State == jobs.Collecting) {
		steps := map[string]string{jobs.MovingInputs: "inputs to nodes", jobs.MovingOutputs: "outputs from nodes"}
		f.con.line.Show(progress.Update{Step: steps[m.What], Job: st.ID.Short(),
			Done: m.Done, Total: m.Total, Rate: m.Rate, Left: m.Left, Nodes: m.Nodes, Holders: m.Holders})
	} else {
		f.con.line.Done()
	}
	f.printRetries(st)
	for ; f.warned < len(st.Warnings); f.warned++ {
		f.printf("warning: %s", st.Warnings[f.warned])
	}
}

// workerKey names a worker for users.
type workerKey struct{ rank, replica int }

// printRetries reports which ranks have another attempt, and why: those with the
// same reason, such as all of a gang, in one line.
func (f *follower) printRetries(st jobs.Status) {
	type again struct {
		attempt int
		why     string
	}
	var order []again
	ranks := map[again][]string{}
	for _, w := range st.Workers {
		key := workerKey{w.Rank, w.Replica}
		if before := f.attempts[key]; before > 0 && w.Attempt > before {
			who, a := fmt.Sprintf("rank %d", w.Rank), again{w.Attempt, w.Retried}
			if st.Spec.Replicas > 1 {
				who += fmt.Sprintf(", copy %d,", w.Replica)
			}
			if ranks[a] == nil {
				order = append(order, a)
			}
			ranks[a] = append(ranks[a], who)
		}
		f.attempts[key] = w.Attempt
	}
	for _, a := range order {
		who, verb := ranks[a][0], "is"
		if n := len(ranks[a]); n > 1 {
			who, verb = count(n, "worker"), "are"
		}
		f.printf("%s %s placed again (attempt %d): %s", who, verb, a.attempt, a.why)
	}
}

func (f *follower) printf(format string, args ...any) {
	if !f.quiet {
		f.con.say(format, args...)
	}
}

func (f *follower) sayWaiting() {
	if f.status.State != jobs.Pending && f.status.State != jobs.Staging || f.status.Moving != nil && f.con.line.Shows() {
		return
	}
	reason := f.status.Reason
	if reason == "" {
		reason = string(f.status.State)
	}
	if reason != f.told {
		f.told = reason
		f.printf("job %s has not started: %s", f.id.Short(), reason)
	}
}

// signal acts on a signal; an error ends run.
func (f *follower) signal(sig os.Signal) error {
	if sig == syscall.SIGPIPE {
		return nil // the write that caused it tells more
	}
	if sig != os.Interrupt {
		f.con.say("detached from job %s, which goes on: 'zorilla attach %s' comes back to it, 'zorilla cancel %s' ends it",
			f.id.Short(), f.id.Short(), f.id.Short())
		return signalled(sig)
	}
	switch {
	case f.cancelling:
		f.con.say("left job %s while it was being cancelled", f.id.Short())
		return exitCode(jobs.CodeCancelled)
	case time.Since(f.interrupted) < cancelWindow:
		f.cancelling = true
		f.con.say("cancelling job %s%s", f.id.Short(), noticeText(&f.status))
		go func() {
			// If it fails, the status tells no end, and Ctrl-C still works.
			ctx := context.Background()
			_ = f.line.try(ctx, func() error { return f.line.service.Cancel(ctx, string(f.id), false) })
		}()
	default:
		f.interrupted = time.Now()
		state := string(f.status.State)
		if f.status.Reason != "" {
			state += " (" + f.status.Reason + ")"
		}
		f.con.say(`job %s is %s, %d of %d workers run: Ctrl-C again within 2 s cancels it, Ctrl-\ detaches and lets it run`,
			f.id.Short(), state, running(f.status), f.status.Spec.Workers())
	}
	return nil
}

// forward sends standard input to rank 0. That it reads no more, or that the
// job has ended, is no news; that ours cannot be read is.
func (f *follower) forward(ctx context.Context) {
	r := &reading{Reader: f.stdin}
	if err := f.line.service.Stdin(ctx, string(f.id), r); err != nil && r.err != nil && errors.Is(err, r.err) {
		f.printf("standard input cannot be read any more: %v", r.err)
	}
}

func (f *follower) broken(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("lost sight of job %s: %w: 'zorilla attach %s' comes back to it", f.id.Short(), err, f.id.Short())
}

// outputFailed decides what to do when output cannot be had or cannot be
// written.
func (f *follower) outputFailed(err error) error {
	var writing *writeError
	if errors.Is(err, jobs.ErrDamaged) { // all that is left was printed
		return err
	}
	if !errors.As(err, &writing) {
		return f.broken(err)
	}
	return fmt.Errorf("%w: job %s goes on: 'zorilla logs %s' has all of its output", err, f.id.Short(), f.id.Short())
}

// fetch fetches the outputs of the ended job.
func (f *follower) fetch(ctx context.Context) error {
	st := f.status
	var left []jobs.RankOutput
	st.Outputs = slices.DeleteFunc(slices.Clone(st.Outputs), func(o jobs.RankOutput) bool {
		if o.Unasked() {
			left = append(left, o)
		}
		return o.Unasked()
	})
	switch {
	case len(left) > 0:
		f.printf("warning: %s", leftText(st.ID, left))
	case st.Array != nil && len(st.Spec.Outputs) == 0 && st.Array.Filed > 0:
		f.printf("warning: %s", f.leftByTasks(ctx))
	}
	if len(st.Outputs) > 0 || hasTaskFiles(st) {
		return fetch(ctx, f.con, f.line, st, f.want, f.signals)
	}
	return nil
}

// leftText says what a job has left that nobody has asked for.
func leftText(id jobs.ID, left []jobs.RankOutput) string {
	files, size := 0, int64(0)
	for _, o := range left {
		files, size = files+o.Files, size+o.Bytes
	}
	return fmt.Sprintf("the job left %s, %s, that no -o names: %s: "+
		"'zorilla get %s' fetches them while its results are kept",
		count(files, "file"), units.Bytes(size), columns.Clean(left[0].Left), id.Short())
}

// leftByTasks says what tasks have left that nobody has asked for.
func (f *follower) leftByTasks(ctx context.Context) string {
	st, such := &f.status, ""
	if list, _, err := api.TaskFiles(ctx, f.line.service, st, api.Wanted{Rank: -1}, 1); err == nil && len(list) > 0 {
		such = fmt.Sprintf(", such as %s of task %d", columns.Clean(list[0].Path), list[0].Task)
	}
	return fmt.Sprintf("%s left files that no -o names%s: 'zorilla get %s' fetches them while the job's results are kept",
		count(st.Array.Filed, "task"), such, st.ID.Short())
}

// finish makes the exit code of the ended job ours.
func (f *follower) finish() error {
	st := f.status
	if st.State != jobs.Completed {
		f.printf("%s", endLine(st))
	}
	if st.State == jobs.Failed && f.typed != nil {
		for _, text := range suggest.Failed(*f.typed, st.ExitCode) {
			f.printf("hint: %s", text)
		}
	}
	if st.State == jobs.Timeout && f.typed != nil {
		if text := suggest.Time(f.typed.Time); text != "" {
			f.printf("hint: %s", text)
		}
	}
	if st.ExitCode == 0 {
		return nil
	}
	return exitCode(st.ExitCode)
}
