package process

import (
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"zorilla/internal/stall"
	"zorilla/internal/units"
	"zorilla/jobs/work"
)

// Phase is how far a worker has come. It only grows.
type Phase int

// The phases.
const (
	Running Phase = iota
	Noticed       // to be ended when the notice is over that it got by its signal
	Ending        // asked to end by SIGTERM; the grace runs
	Killing       // whatever is left gets SIGKILL until nothing is left
	Over          // no process is left
)

// Codes of ends that the program did not choose.
const (
	codeTimeout  = 124
	codeFailed   = 125
	codeNotRun   = 126
	codeNotFound = 127
	codeKilled   = 128 + int(unix.SIGKILL)
)

// defaultNodeLimit is what Spec.NodeLimit is if it is 0, and the least until a node has
// connected: on a busy machine that takes a while.
const defaultNodeLimit = 30 * time.Second

// Life decides when a worker ends, why, and with which code. The first reason
// counts. It sends nothing and reads no clock: its owner, one goroutine or a
// mutex, tells it what happened when, looks at Phase after each event, and calls
// Tick at the time that Next names.
type Life struct {
	walltime  time.Duration // 0 = unlimited
	lent      bool          // by the owner of the node
	nodeLimit time.Duration
	orphanLim time.Duration // 0 = unlimited
	grace     time.Duration
	memory    int64
	disk      int64
	output    int64

	started time.Time
	heard   time.Time // of the origin
	alone   time.Time // since when no node is connected; zero while one is
	met     bool      // a node has been connected
	stall   stall.Guard
	killAt  time.Time // when ending becomes killing
	phase   Phase
	notice

	cause  work.Cause // "" until something has ended the worker
	detail string
	reaped bool // the main process has ended, with status
	status syscall.WaitStatus
}

// notice is what the program hears before it is ended.
type notice struct {
	before  time.Duration // how long; 0 = it hears nothing
	given   bool          // it has its signal
	due     bool          // that is to be sent
	over    time.Time     // when Noticed becomes Ending
	patient time.Duration // the grace then
}

// give has the signal sent, once.
func (n *notice) give() {
	if !n.given {
		n.given, n.due = true, true
	}
}

// NewLife returns the life of a worker with the limits of a spec, and with so
// much time between SIGTERM and SIGKILL when a limit ends it. The walltime of a
// spec with tasks is that of each task, and no limit here.
func NewLife(s *Spec, grace time.Duration) *Life {
	l := &Life{walltime: s.Walltime, lent: s.Rank.Lent, nodeLimit: s.NodeLimit, orphanLim: s.OrphanLimit, grace: grace,
		memory: s.Memory, disk: s.Disk, output: s.MaxOutput}
	if s.Rank.Signal > 0 {
		l.before = s.Rank.Notice
	}
	if s.Tasks != nil {
		l.walltime, l.before = 0, 0
	}
	if l.nodeLimit <= 0 {
		l.nodeLimit = defaultNodeLimit
	}
	return l
}

// Begin says that the worker is about to start. No node is connected yet.
func (l *Life) Begin(now time.Time) { l.started, l.alone, l.heard = now, now, now }

// Phase returns how far the worker has come.
func (l *Life) Phase() Phase { return l.phase }

// Signals reports, once, that the program is to get its signal now.
func (l *Life) Signals() bool {
	due := l.due && l.alive()
	l.due = false
	return due
}

// alive reports whether nothing was done yet to end the processes.
func (l *Life) alive() bool { return l.phase <= Noticed }

// Exited says that the main process has ended. What it left behind is killed
// at once, unless the worker is being ended politely: then its children have
// their grace too.
func (l *Life) Exited(status syscall.WaitStatus) {
	if l.reaped { // it has aborted: how it was killed then says nothing
		return
	}
	l.reaped, l.status = true, status
	l.over = l.started
	if l.phase != Running {
		return
	}
	if status.Signaled() {
		l.decide(work.Signalled, "ended by "+signalName(status.Signal()))
	} else {
		l.decide(work.Exited, "")
	}
	l.phase = Killing
}

// Aborted says that an MPI program has given up, with a code. Its main process may wait
// to be killed.
func (l *Life) Aborted(code int) {
	if l.alive() {
		l.decide(work.Exited, fmt.Sprintf("called MPI_Abort with %d", code))
		if code &= 0xff; code == 0 {
			code = 1
		}
		l.reaped, l.status, l.phase = true, syscall.WaitStatus(code<<8), Killing
	}
}

// Stop ends the worker for its node, after a notice to its program, if it hears of its end. That
// begins with its signal, which it may have got before its walltime. A second stop can only shorten
// notice and grace.
func (l *Life) Stop(now time.Time, notice, grace time.Duration) {
	over := now.Add(min(notice, l.before))
	switch l.phase {
	case Running:
		l.decide(work.Stopped, "stopped")
		if l.given && l.wallEnd().Before(over) {
			over = l.wallEnd()
		}
		l.phase, l.over, l.patient = Noticed, over, grace
		l.give()
	case Noticed:
		l.patient = min(l.patient, grace)
		if over.Before(l.over) {
			l.over = over
		}
	case Ending:
		if now.Add(grace).Before(l.killAt) {
			l.killAt = now.Add(grace)
		}
	}
	l.endNotice(now)
}

// endNotice ends the worker if its notice is over.
func (l *Life) endNotice(now time.Time) {
	if l.phase == Noticed && !now.Before(l.over) {
		l.end(now, l.patient)
	}
}

// Exceeded says that the process tree uses more memory than it may.
func (l *Life) Exceeded() { l.starve(overMemory(l.memory)) }

// Starved says that the kernel has begun to kill the process tree, since there was no
// memory left for workers.
func (l *Life) Starved() { l.starve(noMemory) }

func (l *Life) starve(why string) {
	if l.alive() {
		l.decide(work.Memory, why)
		l.phase = Killing
	}
}

// Overfilled says that the directories of the worker take more than they may.
func (l *Life) Overfilled() {
	if l.alive() {
		l.decide(work.Disk, overDisk(l.disk))
		l.phase = Killing
	}
}

// Overflowed says that the worker has written more output than it may. What it wrote last
// may be found when it has ended by itself.
func (l *Life) Overflowed() {
	if l.phase == Running || l.cause == work.Exited || l.cause == work.Signalled {
		l.cause, l.detail = work.Output, OverOutput(l.output)
	} else if l.phase != Noticed {
		return
	}
	l.phase = max(l.phase, Killing)
}

// Crowded says that the disk of the node is full, and that the worker, whose files take so
// much of it, has to make room.
func (l *Life) Crowded(used int64) {
	if l.phase < Killing {
		l.decide(work.Full, fmt.Sprintf("ended, since the disk of its node was nearly full: its files took %s", units.Bytes(used)))
		l.phase = Killing
	}
}

// Fail ends the worker because the supervisor cannot do its part.
func (l *Life) Fail(err error) {
	if l.phase < Killing {
		l.cause, l.detail = work.Failed, err.Error()
		l.phase = Killing
	}
}

// Finished says that the worker ran tasks and runs none any more: the last one
// has ended, or the worker is being ended.
func (l *Life) Finished() {
	l.reaped = true
	if l.phase != Running {
		l.status = syscall.WaitStatus(unix.SIGTERM)
	}
	l.decide(work.Exited, "")
	l.phase = Over
}

// NodeLost says that no node is connected; it counts from the first time on.
func (l *Life) NodeLost(now time.Time) {
	if l.alone.IsZero() {
		l.alone = now
	}
}

// NodeBack says that a node is connected.
func (l *Life) NodeBack() { l.alone, l.met = time.Time{}, true }

// OriginHeard says that the node has heard of the job's origin.
func (l *Life) OriginHeard(now time.Time) { l.heard = now }

// Gone says that no process is left.
func (l *Life) Gone() { l.phase = Over }

// Tick lets time pass.
func (l *Life) Tick(now time.Time) {
	due := func(t time.Time) bool { return !t.IsZero() && !now.Before(t) }
	if l.phase == Running && due(l.wallEnd()) {
		l.decide(work.Walltime, overTime(l.walltime, l.lent))
		l.end(now, l.grace)
	}
	if l.phase == Running && due(l.noticeAt()) {
		l.give()
	}
	l.endNotice(now)
	if l.alive() && !l.alone.IsZero() && l.stall.Passed(now, l.alone.Add(l.aloneLimit())) {
		l.decide(work.Orphaned, fmt.Sprintf("its node was gone for %v", l.aloneLimit()))
		l.end(now, l.grace)
	}
	if l.alive() && due(l.orphanEnd()) {
		l.decide(work.Orphaned, fmt.Sprintf("its origin was silent for %v", l.orphanLim))
		l.end(now, l.grace)
	}
	if l.phase == Ending && due(l.killAt) {
		l.phase = Killing
	}
}

// Next returns when tick has something to do; zero means never.
func (l *Life) Next() time.Time {
	switch l.phase {
	case Running, Noticed:
		first := l.over
		for _, at := range []time.Time{l.noticeAt(), l.wallEnd(), l.aloneEnd(), l.orphanEnd()} {
			if first.IsZero() || !at.IsZero() && at.Before(first) {
				first = at
			}
		}
		return first
	case Ending:
		return l.killAt
	}
	return time.Time{}
}

func (l *Life) wallEnd() time.Time {
	if l.walltime <= 0 {
		return time.Time{}
	}
	return l.started.Add(l.walltime)
}

// noticeAt is when the program hears that its walltime will be over.
func (l *Life) noticeAt() time.Time {
	if l.walltime <= 0 || l.before <= 0 || l.given {
		return time.Time{}
	}
	return l.started.Add(l.walltime - l.before)
}

func (l *Life) aloneEnd() time.Time {
	if l.alone.IsZero() {
		return time.Time{}
	}
	return l.stall.Next(l.alone.Add(l.aloneLimit()))
}

// aloneLimit is how long the worker runs without a node.
func (l *Life) aloneLimit() time.Duration {
	if l.met {
		return l.nodeLimit
	}
	return max(l.nodeLimit, defaultNodeLimit)
}

func (l *Life) orphanEnd() time.Time {
	if l.orphanLim <= 0 {
		return time.Time{}
	}
	return l.heard.Add(l.orphanLim)
}

func (l *Life) decide(c work.Cause, detail string) {
	if l.cause == "" {
		l.cause, l.detail = c, detail
	}
}

func (l *Life) end(now time.Time, grace time.Duration) {
	l.phase, l.killAt = Ending, now.Add(grace)
	if grace <= 0 {
		l.phase = Killing
	}
}

// Exit is the verdict, but for the time of the end and for what was used. It is
// final when the phase is Over.
func (l *Life) Exit() work.Exit {
	e := work.Exit{Cause: l.cause, Detail: l.detail, Started: l.started}
	switch {
	case l.cause == work.Walltime:
		e.Code = codeTimeout
	case l.cause == work.Memory || l.cause == work.Disk || l.cause == work.Output || l.cause == work.Full:
		e.Code = codeKilled
	case l.cause == work.Failed || !l.reaped:
		e.Code = codeFailed
	case l.status.Signaled():
		e.Code = 128 + int(l.status.Signal())
	default:
		e.Code = l.status.ExitStatus()
	}
	return e
}

// Refused is the verdict where no process reports how it ended: 127 for NotFound,
// 126 for NotRun, 125 for other causes.
func Refused(cause work.Cause, detail string) work.Exit {
	e := work.Exit{Code: codeFailed, Cause: cause, Detail: detail}
	switch cause {
	case work.NotFound:
		e.Code = codeNotFound
	case work.NotRun:
		e.Code = codeNotRun
	}
	return e
}
