package claims

import (
	"time"

	"zorilla/internal/sanitize"
	"zorilla/jobs/internal/wire"
)

// A worker whose program never ran did not fail: its node is not able to run it.
// The origin is told so and has it placed elsewhere, and a node that cannot start
// workers several times in a row offers nothing until it can again. Whether it is
// the node or the job is found out by a trial: a worker that does nothing.

const (
	// MaxMisses is how many starts may fail in a row before nothing is offered.
	MaxMisses = 3
	// The first trial of a node that offers nothing follows after trialPause;
	// the pauses double up to MaxTrialPause.
	trialPause    = time.Second
	MaxTrialPause = time.Minute
	// TrialTime bounds a trial.
	TrialTime = 30 * time.Second
)

// Starts is the core of that: it counts starts that failed in a row.
type Starts struct {
	Misses int
	Broken string    // why workers cannot be started; "" = they can, as far as is known
	Next   time.Time // when broken: the next trial
	pause  time.Duration
	Trying bool // a trial runs
}

// Missed notes a start, or a trial, that failed because of the node.
func (s *Starts) Missed(now time.Time, why string) {
	if s.Misses++; s.Misses < MaxMisses {
		return
	}
	s.Broken = why
	s.pause = min(max(2*s.pause, trialPause), MaxTrialPause)
	s.Next = now.Add(s.pause)
}

// Worked notes a start, or a trial, that succeeded.
func (s *Starts) Worked() { *s = Starts{} }

// Missed notes that a worker could not be started, and takes back what is
// offered if that is too often.
func (c *Claims) Missed(now time.Time, why string) {
	if c.Starts.Missed(now, why); c.Starts.Broken != "" {
		c.voids.endAll(now, c.Holds, c.idle(nil))
	}
}

// Worked notes that workers can be started.
func (c *Claims) Worked() {
	if c.Starts.Broken != "" {
		c.wakeQueue()
	}
	c.Starts.Worked()
}

// Began notes that a worker was started. Whether a node that offers nothing can
// do so again is for a trial to say: this one may have begun long ago.
func (c *Claims) Began() {
	if c.Starts.Broken == "" {
		c.Starts.Worked()
	}
}

// idle says why nothing is offered to a job now, whatever room there is, or ""; nil = to whomever.
func (c *Claims) idle(ad *wire.Advertisement) string {
	switch {
	case c.Limits.Paused:
		return wire.ReasonPaused
	case c.shift.shut:
		return wire.ReasonHours
	case c.Disk.Hangs:
		return wire.ReasonHangs
	case c.Disk.Full:
		return wire.ReasonFull
	case c.Starts.Broken != "":
		return sanitize.OneLineOf(wire.ReasonBroken+": "+c.Starts.Broken, wire.MaxReason)
	case ad != nil && c.shift.tooShort(c.at, &c.Limits, ad):
		return wire.ReasonHoursSoon
	}
	return ""
}

// Reserve is what is kept free of the disk, and how the disk is.
type Reserve struct {
	Keep  int64 // bytes
	Full  bool  // less than that was free, and no tenth more since
	Hangs bool  // a small write waits for it, and has for too long
}

// Answers notes whether the disk answers. If it does not, what is offered is taken back.
func Answers(c *Claims, now time.Time, yes bool) {
	c.expire(now)
	if c.Disk.Hangs = !yes; yes {
		c.wakeQueue()
		return
	}
	c.voids.endAll(now, c.Holds, wire.ReasonHangs)
}

// look returns how much of what is free is for workers.
func (r *Reserve) look(free int64) (forWorkers int64) {
	forWorkers = max(free-r.Keep, 0)
	r.Full = free < r.Keep || r.Full && forWorkers < r.Keep/10
	return forWorkers
}
