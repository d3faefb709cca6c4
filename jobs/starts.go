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
	// maxAgain is how often a worker that could not be started is tried at the
	// same node, if a trial there works.
	maxAgain = 2
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
	s.call(func() { why = s.claims.starts.broken })
	return why
}

// missed finds out whether a start failed because of this node, and counts it
// then. It returns what is wrong with the node, or nil.
func (s *Service) missed(since time.Time) error {
	err := s.try(since)
	if s.leavingCtx.Err() != nil {
		return err
	}
	if err == nil {
		s.post(func() { s.claims.began() })
		return nil
	}
	s.post(func() {
		if s.claims.missed(s.now(), oneLine(err.Error())) {
			s.log.Error().Err(err).Msg("this node cannot start workers, and offers nothing until it can")
			s.children.Go(s.recover)
		}
	})
	s.notify()
	return err
}

// recover tries by and by whether workers can be started again.
func (s *Service) recover() {
	for {
		var pause time.Duration
		if !s.call(func() { pause = s.claims.starts.next.Sub(s.now()) }) {
			return
		}
		select {
		case <-time.After(pause):
		case <-s.leaving:
			return
		}
		err := s.try(s.now())
		if s.leavingCtx.Err() != nil {
			return
		}
		s.call(func() {
			if err != nil {
				s.claims.missed(s.now(), oneLine(err.Error()))
				return
			}
			s.claims.worked()
			s.offerQueued()
		})
		s.notify()
		if err == nil {
			s.log.Info().Msg("this node can start workers again")
			return
		}
	}
}

// trial is the latest trial; Service.trials, which holds it, lets one run at a
// time.
type trial struct {
	begun time.Time
	err   error
}

// try starts a worker that does nothing, unless that was tried since a time.
func (s *Service) try(since time.Time) error {
	last := <-s.trials
	if !last.begun.After(since) {
		last = trial{begun: s.now()}
		last.err = s.tryOut()
	}
	s.trials <- last
	return last.err
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

const notStarted = "could not start it: "

// notBegun handles a worker whose program did not run, and reports whether it is
// to be prepared and started once more here.
func (w *work) notBegun(k *worker, root, why string, since time.Time) (again bool) {
	if k.proc != nil {
		_ = k.proc.Close()
	}
	if w.s.leavingCtx.Err() != nil || isClosed(k.drop) || isClosed(k.evict) || isClosed(k.stop) {
		w.decline(k, notStarted+why)
		return false
	}
	if err := w.s.missed(since); err != nil {
		w.s.log.Warn().Err(err).Str("job", string(w.job)).Int("rank", k.Rank).Msg("a worker could not be started: it is left to others")
		w.decline(k, notStarted+err.Error())
		return false
	}
	if k.again++; k.again <= maxAgain {
		w.set(k, func() { k.state, k.proc, k.started, k.adopted = WorkerPreparing, nil, false, false })
		return true
	}
	// Others can be started here, so that this one is not the node's fault.
	exit := process.Exit{Code: CodeZorilla, Cause: process.Failed, Detail: oneLine(why), Ended: w.s.now()}
	w.set(k, func() { k.state, k.proc, k.exit = WorkerEnded, nil, &exit })
	return false
}

// suspect has a trial made of a node that could not prepare a worker: whoever
// comes next would fare no better.
func (w *work) suspect(err error, since time.Time) {
	select {
	case <-w.fetched:
		if w.failed != nil { // the inputs did not come
			return
		}
	default:
	}
	if w.ctx.Err() == nil {
		_ = w.s.missed(since) // is counted
	}
}
