package executor

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"zorilla/internal/sanitize"
	"zorilla/jobs/internal/claims"
	"zorilla/jobs/internal/participant"
	"zorilla/jobs/process"
	"zorilla/jobs/work"
)

// trial is the latest trial; executor.trials, which holds it, lets one run at a
// time.
type trial struct {
	begun   time.Time
	trouble string
}

// trialName is the directory of a trial, among those of the workers.
const trialName = "trial"

// judge tells the participant whether workers can be started here.
func (x *Executor) judge(now time.Time, id participant.WorkerID, trouble string) {
	log := &x.cfg.Log
	if trouble != "" && id.Job != "" {
		log.Warn().Str("error", trouble).Str("job", string(id.Job)).Int("rank", id.Rank).Msg("a worker could not be started: it is left to others")
	}
	switch changed := x.part.Tried(now, id, trouble); {
	case changed && trouble != "":
		log.Error().Str("error", trouble).Msg("this node cannot start workers, and offers nothing until it can")
	case changed:
		log.Info().Msg("this node can start workers again")
	}
}

// try starts a worker that does nothing, unless that was tried since a time, and
// returns why it could not be started, or "".
func (x *Executor) try(since time.Time) string {
	last := <-x.trials
	if !last.begun.After(since) {
		last = trial{begun: time.Now()}
		if err := x.tryOut(); err != nil {
			last.trouble = sanitize.OneLine(err.Error())
		}
	}
	x.trials <- last
	return last.trouble
}

func (x *Executor) tryOut() (err error) {
	root := filepath.Join(x.cfg.Dir, trialName)
	if err := x.clean(x.loop.Leaving, root); err != nil { // of a node that was killed during one
		return err
	}
	defer func() { err = errors.Join(err, x.clean(x.loop.Leaving, root)) }()
	if err := makeRoot(&x.cfg, &x.spread, root); err != nil {
		return err
	}
	spec, err := x.cfg.confined(trialName, process.Spec{Root: root, Args: []string{"/bin/true"}, Walltime: claims.TrialTime})
	if err != nil {
		return err
	}
	proc, err := x.cfg.Runner.Start(x.loop.Leaving, spec)
	if err != nil {
		return err
	}
	defer proc.Close()
	timer := time.NewTimer(claims.TrialTime)
	defer timer.Stop()
	select {
	case <-timer.C:
		err = fmt.Errorf("no word of a supervisor for %v", claims.TrialTime)
	case <-x.loop.Stopped.Done():
		err = context.Canceled
	case <-proc.Done():
		if e := proc.Exit(); e.Cause == work.Unstarted || e.Cause == work.Lost {
			err = errors.New(e.Detail)
		}
		return err
	}
	proc.Stop(0, 0)
	return err
}
