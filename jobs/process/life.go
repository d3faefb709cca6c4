package process

import (
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"zorilla/internal/units"
)

// phase is how far a worker has come.
type phase int

const (
	running phase = iota
	ending        // asked to end by SIGTERM; the grace runs
	killing       // whatever is left gets SIGKILL until nothing is left
	over          // no process is left
)

// life is the core of the supervisor: it decides when a worker ends and why.
// The first reason counts. It sends nothing and reads no clock; the
// supervisor's loop owns it.
type life struct {
	walltime  time.Duration // 0 = unlimited
	nodeLimit time.Duration
	orphanLim time.Duration // 0 = unlimited
	grace     time.Duration
	memory    int64

	started time.Time
	heard   time.Time // of the origin
	alone   time.Time // since when no node is connected; zero while one is
	killAt  time.Time // when ending becomes killing
	phase   phase

	cause  Cause // "" until something has ended the worker
	detail string
	reaped bool // the main process has ended, with status
	status syscall.WaitStatus
}

// exited says that the main process has ended. What it left behind is killed
// at once, unless the worker is being ended politely: then its children have
// their grace too.
func (l *life) exited(status syscall.WaitStatus) {
	l.reaped, l.status = true, status
	if l.phase != running {
		return
	}
	if status.Signaled() {
		l.decide(Signalled, "ended by "+signalName(status.Signal()))
	} else {
		l.decide(Exited, "")
	}
	l.phase = killing
}

// stop ends the worker for its node. A second stop can only shorten the grace.
func (l *life) stop(now time.Time, grace time.Duration) {
	if l.phase == ending && now.Add(grace).Before(l.killAt) {
		l.killAt = now.Add(grace)
	}
	if l.phase == running {
		l.decide(Stopped, "stopped")
		l.end(now, grace)
	}
}

// exceeded says that the process tree uses more memory than it may.
func (l *life) exceeded() {
	if l.phase == running {
		l.decide(Memory, fmt.Sprintf("needed more than %s of memory (--mem)", units.Bytes(l.memory)))
		l.phase = killing
	}
}

// fail ends the worker because the supervisor cannot do its part.
func (l *life) fail(err error) {
	if l.phase < killing {
		l.cause, l.detail = Failed, err.Error()
		l.phase = killing
	}
}

// finished says that the worker ran tasks and runs none any more: the last one
// has ended, or the worker is being ended.
func (l *life) finished() {
	l.reaped = true
	if l.phase != running {
		l.status = syscall.WaitStatus(unix.SIGTERM)
	}
	l.decide(Exited, "")
	l.phase = over
}

func (l *life) nodeLost(now time.Time)    { l.alone = now }
func (l *life) nodeBack()                 { l.alone = time.Time{} }
func (l *life) originHeard(now time.Time) { l.heard = now }
func (l *life) gone()                     { l.phase = over }

// tick lets time pass.
func (l *life) tick(now time.Time) {
	due := func(t time.Time) bool { return !t.IsZero() && !now.Before(t) }
	if l.phase == running && due(l.wallEnd()) {
		l.decide(Walltime, fmt.Sprintf("needed more than %v (-t)", l.walltime))
		l.end(now, l.grace)
	}
	if l.phase == running && due(l.aloneEnd()) {
		l.decide(Orphaned, fmt.Sprintf("its node was gone for %v", l.nodeLimit))
		l.end(now, l.grace)
	}
	if l.phase == running && due(l.orphanEnd()) {
		l.decide(Orphaned, fmt.Sprintf("its origin was silent for %v", l.orphanLim))
		l.end(now, l.grace)
	}
	if l.phase == ending && due(l.killAt) {
		l.phase = killing
	}
}

// next returns when tick has something to do; zero means never.
func (l *life) next() time.Time {
	switch l.phase {
	case running:
		var first time.Time
		for _, at := range []time.Time{l.wallEnd(), l.aloneEnd(), l.orphanEnd()} {
			if first.IsZero() || !at.IsZero() && at.Before(first) {
				first = at
			}
		}
		return first
	case ending:
		return l.killAt
	}
	return time.Time{}
}

func (l *life) wallEnd() time.Time {
	if l.walltime <= 0 {
		return time.Time{}
	}
	return l.started.Add(l.walltime)
}

func (l *life) aloneEnd() time.Time {
	if l.alone.IsZero() {
		return time.Time{}
	}
	return l.alone.Add(l.nodeLimit)
}

func (l *life) orphanEnd() time.Time {
	if l.orphanLim <= 0 {
		return time.Time{}
	}
	return l.heard.Add(l.orphanLim)
}

func (l *life) decide(c Cause, detail string) {
	if l.cause == "" {
		l.cause, l.detail = c, detail
	}
}

func (l *life) end(now time.Time, grace time.Duration) {
	l.phase, l.killAt = ending, now.Add(grace)
	if grace <= 0 {
		l.phase = killing
	}
}

// exit is the verdict.
func (l *life) exit() Exit {
	e := Exit{Cause: l.cause, Detail: l.detail, Started: l.started}
	switch {
	case l.cause == Walltime:
		e.Code = 124
	case l.cause == Memory:
		e.Code = 128 + int(unix.SIGKILL)
	case l.cause == Failed || !l.reaped:
		e.Code = 125
	case l.status.Signaled():
		e.Code = 128 + int(l.status.Signal())
	default:
		e.Code = l.status.ExitStatus()
	}
	return e
}

func signalName(s syscall.Signal) string {
	if name := unix.SignalName(s); name != "" {
		return fmt.Sprintf("%s (%v)", name, s)
	}
	return fmt.Sprintf("signal %d", int(s))
}
