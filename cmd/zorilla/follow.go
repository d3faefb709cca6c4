package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"zorilla/jobs"
	"zorilla/node/api"
)

// follower stays with one job until its end. Its run loop owns all fields;
// the goroutines it starts only send to it.
type follower struct {
	sh      *shell
	line    *lifeline
	id      jobs.ID
	quiet   bool
	want    api.Wanted
	stdin   io.Reader // nil = none
	out     *printer
	signals <-chan os.Signal

	status      jobs.Status
	told        string // what it was last said to wait for
	attempts    map[workerKey]int
	warned      int       // warnings told
	interrupted time.Time // last Ctrl-C
	cancelling  bool
}

func newFollower(sh *shell, service api.Service, id jobs.ID) *follower {
	f := &follower{sh: sh, id: id, attempts: map[workerKey]int{}}
	f.line = &lifeline{service: service, job: id, tell: f.tell}
	return f
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

	wait := time.NewTimer(patience)
	for output != nil || !f.status.State.Final() {
		select {
		case st, ok := <-statuses:
			if !ok {
				return f.broken(<-lost)
			}
			f.update(st)
		case err := <-output:
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
	if err := f.out.finish(); err != nil {
		return f.outputFailed(err)
	}
	return f.finish(ctx)
}

// output prints the job's output. After the node was away it comes from its
// beginning: the printer knows what it has had.
func (l *lifeline) output(ctx context.Context, q api.OutputQuery, p *printer) error {
	return l.try(ctx, func() error { return l.service.Output(ctx, string(l.job), q, p.print) })
}

// watch sends the status of a job at each change until its end. It closes
// the channel when it can ask no more, and tells why.
func watch(ctx context.Context, l *lifeline) (<-chan jobs.Status, <-chan error) {
	statuses, lost := make(chan jobs.Status), make(chan error, 1)
	go func() {
		defer close(statuses)
		for version := uint64(0); ; {
			var st jobs.Status
			err := l.try(ctx, func() (err error) {
				st, version, err = l.service.Await(ctx, string(l.job), version)
				if err != nil {
					version = 0 // a node that is started again counts anew
				}
				return err
			})
			if err != nil {
				lost <- err
				return
			}
			select {
			case statuses <- st:
			case <-ctx.Done():
				lost <- ctx.Err()
				return
			}
			if st.State.Final() {
				<-ctx.Done()
				lost <- ctx.Err()
				return
			}
			// A large status is dear: ask for it less often.
			select {
			case <-time.After(min(time.Duration(len(st.Workers))*50*time.Microsecond, time.Second)):
			case <-ctx.Done():
			}
		}
	}()
	return statuses, lost
}

// update takes note of a new status and tells what the user must know.
func (f *follower) update(st jobs.Status) {
	f.status = st
	f.tellRetries(st)
	for ; f.warned < len(st.Warnings); f.warned++ {
		f.tell("warning: %s", st.Warnings[f.warned])
	}
}

// workerKey names a worker for users.
type workerKey struct{ rank, replica int }

// tellRetries tells which ranks have another attempt, and why: those with the
// same reason, such as all of a gang, in one line.
func (f *follower) tellRetries(st jobs.Status) {
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
		f.tell("%s %s placed again (attempt %d): %s", who, verb, a.attempt, a.why)
	}
}

func (f *follower) tell(format string, args ...any) {
	if !f.quiet {
		f.sh.say(format, args...)
	}
}

func (f *follower) sayWaiting() {
	if f.status.State != jobs.Pending && f.status.State != jobs.Staging {
		return
	}
	reason := f.status.Reason
	if reason == "" {
		reason = string(f.status.State)
	}
	if reason != f.told {
		f.told = reason
		f.tell("job %s has not started: %s", f.id.Short(), reason)
	}
}

// signal acts on a signal; an error ends run.
func (f *follower) signal(sig os.Signal) error {
	if sig == syscall.SIGPIPE {
		return nil // the write that caused it tells more
	}
	if sig != os.Interrupt {
		f.sh.say("detached from job %s, which goes on: 'zorilla attach %s' comes back to it, 'zorilla cancel %s' ends it", f.id.Short(), f.id.Short(), f.id.Short())
		return signalled(sig)
	}
	switch {
	case f.cancelling:
		f.sh.say("left job %s while it was being cancelled", f.id.Short())
		return exitCode(jobs.CodeCancelled)
	case time.Since(f.interrupted) < cancelWindow:
		f.cancelling = true
		f.sh.say("cancelling job %s", f.id.Short())
		go func() {
			// If it fails, the status tells no end, and Ctrl-C still works.
			ctx := context.Background()
			_ = f.line.try(ctx, func() error { return f.line.service.Cancel(ctx, string(f.id)) })
		}()
	default:
		f.interrupted = time.Now()
		state := string(f.status.State)
		if f.status.Reason != "" {
			state += " (" + f.status.Reason + ")"
		}
		f.sh.say(`job %s is %s, %d of %d workers run: Ctrl-C again within 2 s cancels it, Ctrl-\ detaches and lets it run`, f.id.Short(), state, running(f.status), f.status.Spec.Workers())
	}
	return nil
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
	if !errors.Is(err, syscall.EPIPE) {
		return fmt.Errorf("%w: job %s goes on: 'zorilla logs %s' has all of its output", err, f.id.Short(), f.id.Short())
	}
	ctx, stop := context.WithTimeout(context.Background(), 5*time.Second)
	defer stop()
	if err := f.line.service.Cancel(ctx, string(f.id)); err != nil {
		return f.broken(err)
	}
	f.tell("standard output was closed: cancelled job %s", f.id.Short())
	return exitCode(128 + int(syscall.SIGPIPE))
}

// finish fetches the outputs of the ended job and makes its exit code ours.
func (f *follower) finish(ctx context.Context) error {
	st := f.status
	if len(st.Outputs) > 0 || hasTaskFiles(st) {
		if err := f.sh.fetch(ctx, f.line, st, f.want, f.signals); err != nil {
			return err
		}
	}
	if st.State != jobs.Completed {
		f.tell("%s", endLine(st))
	}
	if st.ExitCode == 0 {
		return nil
	}
	return exitCode(st.ExitCode)
}

// endLine says in one line how a job ended.
func endLine(st jobs.Status) string {
	line := fmt.Sprintf("job %s %s, exit code %d", st.ID.Short(), st.State, st.ExitCode)
	if st.Reason != "" {
		line += ": " + st.Reason
	}
	return line
}
