package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"zorilla/cmd/zorilla/progress"
	"zorilla/cmd/zorilla/selector"
	"zorilla/jobs"
	"zorilla/node/api"
	"zorilla/transfer"
)

// submission is one submission of one job, in as many tries as it takes: its key
// sees to it that they are one job.
type submission struct {
	con     *console
	service api.Service
	spec    jobs.Spec
	inputs  []transfer.Input

	own     bool      // the key is the user's: the job may have been there before
	reached bool      // the node has been there
	asked   bool      // it may have accepted the job
	until   time.Time // when to give up; zero before the connection breaks
}

func newSubmission(con *console, s api.Service, spec jobs.Spec, inputs []transfer.Input) *submission {
	sub := &submission{con: con, service: s, spec: spec, inputs: inputs, own: spec.Key != ""}
	if !sub.own {
		sub.spec.Key = rand.Text()
	}
	return sub
}

func (s *submission) run(ctx context.Context) (jobs.ID, error) {
	for {
		id, err := s.try(ctx)
		if err == nil || ctx.Err() != nil || !s.away(err) {
			return id, err
		}
		switch now := time.Now(); {
		case s.until.IsZero():
			s.until = now.Add(nodeAway)
			s.con.say("%v: submitting again for up to %v, which cannot make it two jobs (key %s)", err, nodeAway, s.spec.Key)
		case now.After(s.until) && s.asked:
			return "", fmt.Errorf("%w: the job may have been accepted: submit it again with --key %s, and it is not run twice", err, s.spec.Key)
		case now.After(s.until):
			return "", fmt.Errorf("%w: the job was not submitted", err)
		}
		if pause(ctx, nodePoll); ctx.Err() != nil {
			return "", ctx.Err()
		}
	}
}

// away reports whether a try failed because the node is not there now.
func (s *submission) away(err error) bool {
	switch {
	case errors.Is(err, api.ErrBroken):
		s.reached = true
		return true
	case errors.Is(err, api.ErrNoNode):
		return s.reached
	}
	return s.asked && (errors.Is(err, api.ErrUnavailable) || errors.Is(err, context.Canceled)) // it is stopping
}

// try does what is left to do.
func (s *submission) try(ctx context.Context) (jobs.ID, error) {
	for i, d := range s.spec.After {
		if d.Job.Valid() {
			continue
		}
		name, note, err := selector.Find(ctx, s.service, string(d.Job))
		if note != "" {
			s.con.say("-d %s: %s", d.Kind, note)
		}
		var st jobs.Status
		if err == nil {
			st, err = s.service.Job(ctx, name)
		}
		if err != nil {
			return "", fmt.Errorf("-d %s:%s: %w", d.Kind, d.Job, err)
		}
		s.spec.After[i].Job, s.reached = st.ID, true
	}
	if s.asked { // it has the inputs, unless it lost them when it died
		if id, err := s.ask(ctx); !errors.Is(err, jobs.ErrInvalid) {
			return id, err
		}
	}
	if len(s.inputs) > 0 {
		tree, err := api.Push(ctx, s.service, s.inputs, func(step transfer.Step, done, total int64) {
			s.con.line.Show(progress.Update{Step: string(step), Done: done, Total: total})
		})
		s.con.line.Done()
		if err != nil {
			return "", err
		}
		s.spec.Inputs, s.reached = tree, true
	}
	return s.ask(ctx)
}

func (s *submission) ask(ctx context.Context) (jobs.ID, error) {
	if err := ctx.Err(); err != nil { // nothing was sent
		return "", err
	}
	id, err := s.service.Submit(ctx, s.spec)
	s.asked = s.asked || !errors.Is(err, api.ErrNoNode)
	return id, err
}

// fate is what becomes of a job whose command ends.
type fate int

const (
	held     fate = iota // it ends with it
	followed             // it may go on: SIGQUIT is for who follows it, and detaches
	left                 // it goes on
)

// submit completes the IDs of dependencies, pushes the inputs and submits the job. If the
// connection to the node breaks meanwhile it tries again. A signal ends the submission, and the
// job if it was accepted, since nobody would know of it; of a followed one SIGQUIT waits in the
// channel until then. The signals are asked for before.
func submit(ctx context.Context, con *console, s api.Service, spec jobs.Spec, inputs []transfer.Input, signals chan os.Signal, what fate) (jobs.ID, error) {
	sub := newSubmission(con, s, spec, inputs)
	var keep os.Signal
	if what == followed {
		keep = syscall.SIGQUIT
	}
	var id jobs.ID
	sig, err := guard(ctx, signals, keep, func(ctx context.Context) (err error) {
		id, err = sub.run(ctx)
		return err
	})
	switch {
	case sig == nil:
		return id, err
	case errors.Is(err, errLeft): // an input that cannot be read keeps it
		con.say("left the submission while it was being ended: 'zorilla ps' shows whether the job was accepted")
	default:
		sub.leave(id, err, signals, what)
	}
	return "", signalled(sig)
}

// leave ends what an interrupted submission has made. If it was not answered, its key finds
// out: submitted once more it is the job that was accepted. That of a user may be the name of
// a job that has run for long, which goes on then.
func (s *submission) leave(id jobs.ID, err error, signals <-chan os.Signal, what fate) {
	switch {
	case err != nil && !s.asked:
		s.con.say("interrupted: the job was not submitted")
		return
	case err != nil && !errors.Is(err, context.Canceled) && !s.away(err):
		s.con.say("interrupted: the job was not accepted: %v", err)
		return
	case s.own && what != held && err == nil:
		s.con.say("interrupted: job %s goes on, which key %s names: 'zorilla attach %s' comes back to it, 'zorilla cancel %s' ends it",
			id.Short(), s.spec.Key, id.Short(), id.Short())
		return
	case s.own && what != held:
		s.con.say("interrupted: if the job was accepted it goes on: submit it again with --key %s to come back to it", s.spec.Key)
		return
	}
	ctx, caught := untilSignal(context.Background(), signals)
	defer caught()
	if err != nil {
		within, cancel := context.WithTimeout(ctx, cancelWait)
		id, err = s.service.Submit(within, s.spec)
		cancel()
	}
	if err != nil {
		s.con.say("interrupted: %v: the job may have been accepted: 'zorilla ps' shows it", err)
		return
	}
	if abandon(ctx, s.con, s.service, id) {
		s.con.say("interrupted: cancelled job %s", id.Short())
	}
}

// cancelWait is how long a node may take for what a command does when it is ended.
const cancelWait = 5 * time.Second

// abandon cancels a job that its command leaves, or reports how to. It is no error if the job
// has ended.
func abandon(ctx context.Context, con *console, s api.Service, id jobs.ID) bool {
	ctx, cancel := context.WithTimeout(ctx, cancelWait)
	defer cancel()
	if err := s.Cancel(ctx, string(id), false); err != nil {
		con.say("job %s was not cancelled: %v: 'zorilla cancel %s' does that", id.Short(), err, id.Short())
		return false
	}
	return true
}
