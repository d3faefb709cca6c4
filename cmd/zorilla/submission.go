package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"zorilla/cmd/zorilla/pick"
	"zorilla/cmd/zorilla/progress"
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

	reached bool      // the node has been there
	asked   bool      // it may have accepted the job
	until   time.Time // when to give up; zero before the connection breaks
}

// submit completes the IDs of dependencies, pushes the inputs and submits the
// job. If the connection to the node breaks meanwhile it tries again.
func submit(ctx context.Context, con *console, s api.Service, spec jobs.Spec, inputs []transfer.Input) (jobs.ID, error) {
	if spec.Key == "" {
		spec.Key = rand.Text()
	}
	sub := &submission{con: con, service: s, spec: spec, inputs: inputs}
	for {
		id, err := sub.try(ctx)
		if err == nil || ctx.Err() != nil || !sub.away(err) {
			return id, err
		}
		switch now := time.Now(); {
		case sub.until.IsZero():
			sub.until = now.Add(nodeAway)
			con.say("%v: submitting again for up to %v, which cannot make it two jobs (key %s)", err, nodeAway, sub.spec.Key)
		case now.After(sub.until) && sub.asked:
			return "", fmt.Errorf("%w: the job may have been accepted: submit it again with --key %s, and it is not run twice", err, sub.spec.Key)
		case now.After(sub.until):
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
		name, err := pick.Find(ctx, s.service, string(d.Job))
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
	id, err := s.service.Submit(ctx, s.spec)
	s.asked = s.asked || !errors.Is(err, api.ErrNoNode)
	return id, err
}
