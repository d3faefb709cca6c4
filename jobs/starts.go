package jobs

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"zorilla/jobs/process"
)

// A worker whose program never ran did not fail: its node is not able to run it.
// The origin is told so and has it placed elsewhere, and a node that cannot start
// workers several times in a row offers nothing until it can again. Whether it is
// the node or the job is found out by a trial: a worker that does nothing.

const (
	// maxMisses is how many starts may fail in a row before nothing is offered.
	maxMisses = 3
	// The first trial of a node that offers nothing follows after trialPause;
	// the pauses double up to maxTrialPause.
	trialPause    = time.Second
	maxTrialPause = time.Minute
	// trialTime bounds a trial.
	trialTime = 30 * time.Second
)

// reasonBroken begins the decline of such a node; the cause follows.
const reasonBroken = "cannot start workers"

// starts is the core of that: it counts starts that failed in a row.
type starts struct {
	misses int
	broken string    // why workers cannot be started; "" = they can, as far as is known
	next   time.Time // when broken: the next trial
	pause  time.Duration
	trying bool // a trial runs
}

// missed notes a start, or a trial, that failed because of the node.
func (s *starts) missed(now time.Time, why string) {
	if s.misses++; s.misses < maxMisses {
		return
	}
	s.broken = why
	s.pause = min(max(2*s.pause, trialPause), maxTrialPause)
	s.next = now.Add(s.pause)
}

// worked notes a start, or a trial, that succeeded.
func (s *starts) worked() { *s = starts{} }

// missed notes that a worker could not be started, and takes back what is
// offered if that is too often. It reports whether that is new.
func (c *claims) missed(now time.Time, why string) (broken bool) {
	was := c.starts.broken != ""
	if c.starts.missed(now, why); c.starts.broken == "" || was {
		return false
	}
	clear(c.holds)
	return true
}

// worked notes that workers can be started.
func (c *claims) worked() {
	if c.starts.broken != "" {
		c.wakeQueue()
	}
	c.starts.worked()
}

// began notes that a worker was started. Whether a node that offers nothing can
// do so again is for a trial to say: this one may have begun long ago.
func (c *claims) began() {
	if c.starts.broken == "" {
		c.starts.worked()
	}
}

// idle says why nothing is offered now, to whomever, or "".
func (c *claims) idle() string {
	switch {
	case c.limits.Paused:
		return reasonPaused
	case c.starts.broken != "":
		return oneLineOf(reasonBroken+": "+c.starts.broken, maxReason)
	}
	return ""
}

// Broken says why this node cannot start workers, or "".
func (s *Service) Broken() (why string) {
	s.call(func() { why = s.core.claims.starts.broken })
	return why
}

// judge tells the participant whether workers can be started here.
func (x *executor) judge(now time.Time, id workerID, trouble string) {
	log := &x.s.log
	if trouble != "" && id.Job != "" {
		log.Warn().Str("error", trouble).Str("job", string(id.Job)).Int("rank", id.Rank).Msg("a worker could not be started: it is left to others")
	}
	switch changed := x.part.tried(now, id, trouble); {
	case changed && trouble != "":
		log.Error().Str("error", trouble).Msg("this node cannot start workers, and offers nothing until it can")
	case changed:
		log.Info().Msg("this node can start workers again")
	}
}

// trial is the latest trial; executor.trials, which holds it, lets one run at a
// time.
type trial struct {
	begun   time.Time
	trouble string
}

// try starts a worker that does nothing, unless that was tried since a time, and
// returns why it could not be started, or "".
func (x *executor) try(since time.Time) string {
	last := <-x.trials
	if !last.begun.After(since) {
		last = trial{begun: x.s.now()}
		if err := x.s.tryOut(); err != nil {
			last.trouble = oneLine(err.Error())
		}
	}
	x.trials <- last
	return last.trouble
}

// trialName is the directory of a trial, among those of the workers.
const trialName = "trial"

func (s *Service) tryOut() (err error) {
	root := filepath.Join(s.cfg.Work, trialName)
	if err := s.cfg.CleanRoot(root); err != nil { // of a node that was killed during one
		return err
	}
	defer func() { err = errors.Join(err, s.cfg.CleanRoot(root)) }()
	if err := s.makeRoot(root); err != nil {
		return err
	}
	proc, err := s.cfg.Runner.Start(s.leavingCtx, s.confined(process.Spec{Root: root, Args: []string{"/bin/true"}, Walltime: trialTime}))
	if err != nil {
		return err
	}
	defer proc.Close()
	timer := time.NewTimer(trialTime)
	defer timer.Stop()
	select {
	case <-timer.C:
		err = fmt.Errorf("no word of a supervisor for %v", trialTime)
	case <-s.stopped:
		err = context.Canceled
	case <-proc.Done():
		if e := proc.Exit(); e.Cause == process.Unstarted || e.Cause == process.Lost {
			err = errors.New(e.Detail)
		}
		return err
	}
	proc.Stop(0)
	return err
}
