package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/participant"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/work"
	"zorilla/vicinity"
)

// Audit looks at each node after each of its steps and says what is wrong. It
// knows what no node can know: what runs where, and what all journals say.
type Audit struct {
	Wrong  string  // the first thing; "" = nothing
	About  jobs.ID // the job that it is about; "" = a node
	Gentle bool    // no worker that has started may be given up
	Hangs  bool    // disks do, so that an origin may end a rank itself whose node does not tell how it ended
	// Note is told what happens.
	Note func(node vicinity.ID, job jobs.ID, format string, args ...any)
	runs map[participant.WorkerID]*run
	jobs map[jobs.ID]*story
	read map[vicinity.ID]int // entries of journals
	disk *disk               // of the node whose journal is being read
	ownSlots
	checkpointing
	bookingAudit
	taken map[participant.WorkerID]bool        // that nodes have ever had
	apart func(a, b vicinity.ID) time.Duration // the true round trip between two nodes; nil = links are not looked at
	stale int                                  // events of the job before a report of superseded workers; -1 = it is none
}

// run is what happened to a worker's process.
type run struct {
	at     vicinity.ID
	ended  bool
	failed bool // with its machine
	code   int
	wants  int // bytes that it writes if nothing ends it
	wrote  int // that it has written when it has ended
}

// story is what the journal says of a job, read by other eyes than a record's.
type story struct {
	spec     jobs.Spec
	ranks    []chapter
	begun    map[jobs.RankAttempt]vicinity.ID // all STARTs, and where
	together bool                             // the gang's attempt has been started
	final    jobs.State
	size     int // the most workers that it may have
	lineup
	recalled
}

// chapter is what it says of a rank.
type chapter struct {
	attempt int
	node    vicinity.ID
	state   record.Kind // the last that the rank was named in
	code    int
	given   bool        // back
	left    vicinity.ID // it was moved away from there, and has not started elsewhere
}

// serves reports whether a rank counts among the workers that a job has.
func (c *chapter) serves() bool {
	switch c.state {
	case "", record.Exited, record.Collected:
		return false
	}
	return !c.given
}

func NewAudit() *Audit {
	return &Audit{runs: map[participant.WorkerID]*run{}, jobs: map[jobs.ID]*story{}, read: map[vicinity.ID]int{}, ownSlots: newOwnSlots(), checkpointing: newCheckpointing(),
		bookingAudit: newBookingAudit(), taken: map[participant.WorkerID]bool{}}
}

// Accepted reports whether a journal has a job.
func (a *Audit) Accepted(id jobs.ID) bool { return a.jobs[id] != nil }

func (a *Audit) Fail(about jobs.ID, format string, args ...any) {
	if a.Wrong == "" {
		a.Wrong, a.About = fmt.Sprintf(format, args...), about
	}
}

// Look checks a node that has just done something.
func (a *Audit) Look(now time.Time, m *Model) {
	a.follow(m.cfg.Self.ID, &m.disk)
	a.followSaved(m.cfg.Self.ID, &m.disk)
	a.slots(now, m)
	a.hours(now, m)
	a.own(now, m)
	a.bookings(now, m)
	for _, k := range m.disk.workers {
		a.process(m.cfg.Self.ID, k)
	}
}

// slots: no more are used than there are, all by workers, and offers that stand
// have a lease that has not ended.
func (a *Audit) slots(now time.Time, m *Model) {
	used, held := m.Slots()
	self, claims, workers, offers, ended := m.cfg.Self, m.core.Claims, 0, 0, 0
	jobs := map[jobs.ID]int{}
	for _, k := range m.core.Part.All() {
		for _, worker := range k.Workers {
			if !worker.Freed {
				workers += k.Spec.Needs(worker.Rank).Slots
				jobs[k.Job]++
				if d := m.disk.worker(participant.WorkerID{Job: k.Job, RankAttempt: worker.RankAttempt}); d != nil && d.over {
					ended += k.Spec.Needs(worker.Rank).Slots // a node that was started again has yet to see that
				}
			}
		}
		if kept := claims.Spares[k.Job]; kept != nil {
			workers += kept.Workers * k.Spec.Needs(0).Slots
			jobs[k.Job] += kept.Workers
		}
		if n := jobs[k.Job]; k.Spec.OnePerNode && n > 1 {
			a.Fail(k.Job, "node %s has %d workers of job %s, which wants one at each", self.ID.Short(), n, k.Job)
		}
	}
	for id, h := range claims.Holds {
		offers += h.Room.Slots
		if !now.Before(h.Expires) || h.Expires.After(now.Add(wire.HoldLease)) {
			a.Fail(id, "node %s holds slots for job %s until %v from now", self.ID.Short(), id, h.Expires.Sub(now))
		}
	}
	switch {
	case used != workers || held != offers:
		a.Fail("", "node %s: %d slots count as used, %d as held; its workers have %d, its offers %d", self.ID.Short(), used, held, workers, offers)
	case used+held-ended > self.Slots:
		a.Fail("", "node %s has %d slots, %d are used and %d held", self.ID.Short(), self.Slots, used, held)
	case len(jobs) != len(claims.Jobs):
		a.Fail("", "node %s counts claims of %d jobs, it has workers of %d", self.ID.Short(), len(claims.Jobs), len(jobs))
	}
	for id, n := range jobs {
		if claims.Jobs[id] != n {
			a.Fail(id, "node %s counts %d claims of job %s, it has %d workers", self.ID.Short(), claims.Jobs[id], id, n)
		}
	}
}

// process: the same attempt runs once, at one node, where it was granted, and not
// before its START is durable.
func (a *Audit) process(node vicinity.ID, k *worker) {
	r, runs := a.runs[k.WorkerID], !k.began.IsZero()
	switch {
	case runs && r == nil:
		s := a.jobs[k.Job]
		if s == nil || s.begun[k.RankAttempt] != node {
			a.Fail(k.Job, "rank %d, attempt %d of job %s runs at node %s without a START in the journal", k.Rank, k.Attempt, k.Job, node.Short())
		}
		a.runs[k.WorkerID] = &run{at: node, wants: k.fate.Output}
		a.Note(node, k.Job, "runs %s", named([]jobs.RankAttempt{k.RankAttempt}))
	case runs && r.at != node, runs && !k.over && r.ended:
		a.Fail(k.Job, "rank %d, attempt %d of job %s runs at node %s, and ran at node %s", k.Rank, k.Attempt, k.Job, node.Short(), r.at.Short())
	case runs && k.over && !r.ended:
		r.ended, r.code, r.wrote = true, k.exit.Code, k.wrote
		a.Note(node, k.Job, "has run %s, which ended with %d", named([]jobs.RankAttempt{k.RankAttempt}), r.code)
	}
}

// Killed notes what ends with a node's life.
func (a *Audit) Killed(node vicinity.ID, machine bool, left *Remains) {
	a.follow(node, &left.disk)
	a.followSaved(node, &left.disk)
	a.forgetOwn(node)
	a.killedBooked(node, &left.disk)
	for _, k := range left.disk.workers { // one may have ended while no node looked
		if !k.failed {
			a.process(node, k)
		}
	}
	for _, r := range a.runs {
		if machine && r.at == node && !r.ended {
			r.ended, r.failed = true, true
		}
	}
}

// follow reads what a node has written down since.
func (a *Audit) follow(node vicinity.ID, disk *disk) {
	a.disk = disk
	for _, e := range disk.journal[a.read[node]:] {
		a.Note(node, e.job, "%s", written(&e.ev))
		s := a.jobs[e.job]
		if s == nil {
			s = &story{begun: map[jobs.RankAttempt]vicinity.ID{}}
			a.jobs[e.job] = s
		}
		if text := s.read(a, e.job, &e.ev); text != "" {
			a.Fail(e.job, "journal of job %s: %s %v: %s", e.job, e.ev.Kind, e.ev.Ranks, text)
		}
	}
	a.read[node] = len(disk.journal)
}

// read takes the next event and says what is wrong with it.
func (s *story) read(a *Audit, job jobs.ID, ev *record.Event) string {
	if s.final != "" {
		return "after the end"
	}
	if ev.Kind == record.Submitted {
		s.spec, s.ranks, s.size = *ev.Spec, make([]chapter, ev.Spec.Workers()), ev.Spec.Workers()
		return ""
	}
	if ev.Kind == record.Resized {
		return s.readSize(ev)
	}
	if ev.Kind == record.Checkpointed {
		return s.readSaved(a, job, ev)
	}
	if text := cmp.Or(a.readBooking(job, ev), s.readSizes(ev), s.readGroups(ev), s.readRestart(a, ev)); text != "" {
		return text
	}
	if ev.Kind == record.Started && s.spec.FixedSize() {
		if s.together && s.spec.Rigid() || !s.together && len(ev.Ranks) != s.spec.Least() {
			return "a gang starts all at once, and once"
		}
		s.together = true
	}
	for _, ra := range ev.Ranks {
		if text := s.readRank(a, job, ev, ra); text != "" {
			return text
		}
	}
	switch ev.Kind {
	case record.Started:
		return s.readLinks(a.apart)
	case record.Retried, record.Declined:
		if len(ev.Ranks) == s.spec.Workers() {
			s.together = false
		}
	case record.Ended:
		s.final = ev.State
		return s.readEnd(ev)
	}
	return ""
}

func (s *story) readRank(a *Audit, job jobs.ID, ev *record.Event, ra jobs.RankAttempt) string {
	c := &s.ranks[ra.Rank]
	if ev.Kind == record.Granted {
		switch {
		case ra.Attempt != c.attempt+1:
			return fmt.Sprintf("the attempt before was %d", c.attempt)
		case c.given && c.state == record.Started:
			return "the rank that was given back still runs at node " + c.node.Short()
		case c.given:
		case c.state == record.Granted || c.state == record.Started || c.state == record.Exited || c.state == record.Collected:
			return fmt.Sprintf("the rank is at node %s: %s", c.node.Short(), c.state)
		}
		if ev.Node == c.left {
			return "it was moved away from node " + ev.Node.Short()
		}
		*c = chapter{attempt: ra.Attempt, node: ev.Node, state: ev.Kind, left: c.left}
		if n := s.busy(); n > s.size {
			return fmt.Sprintf("these are %d workers, and %d are wanted", n, s.size)
		}
		return ""
	}
	if ra.Attempt != c.attempt && ra.Attempt > 0 {
		return fmt.Sprintf("attempt %d counts", c.attempt)
	}
	was := c.state
	c.state = ev.Kind
	switch ev.Kind {
	case record.Started:
		if was != record.Granted {
			return "the rank is not granted: " + string(was)
		}
		s.begun[ra], c.left = c.node, ""
	case record.Exited:
		r := a.runs[participant.WorkerID{Job: job, RankAttempt: ra}]
		switch {
		case was != record.Started:
			return "the rank does not run: " + string(was)
		case a.Hangs && r != nil && r.at == c.node && ev.Exit.Code == jobs.CodeTimeout && ev.Exit.Cause == work.Walltime && ev.Exit.Detail != "":
			c.code = ev.Exit.Code
			return ""
		case r == nil || !r.ended || r.failed || r.at != c.node || r.code != ev.Exit.Code:
			return fmt.Sprintf("it ended with %d at node %s, in truth %+v", ev.Exit.Code, c.node.Short(), r)
		}
		if text := a.bytes(job, ra, r.wrote); text != "" {
			return text
		}
		c.code = ev.Exit.Code
	case record.Retried:
		if c.given {
			return "the rank was given back"
		}
		if s.alone(ev, ra) && (was != record.Exited || c.code == 0) {
			return "the rank has not failed"
		}
	case record.Declined:
		switch r := a.runs[participant.WorkerID{Job: job, RankAttempt: ra}]; {
		case !s.alone(ev, ra), was == record.Granted && s.lacks[ra]:
		case was == record.Lost && len(ev.Ranks) > 1: // together with one of a group that starts again
		case was != record.Started:
			return "the rank was not started: " + string(was)
		case r != nil:
			return "its program has begun"
		}
	case record.Moved:
		r := a.runs[participant.WorkerID{Job: job, RankAttempt: ra}]
		switch {
		case c.given:
			return "the rank was given back"
		case was != record.Started && c.left != "" && ev.Node != "": // it waits, and is to go to another node
			if ev.Node == c.left {
				c.left = ""
			}
			return ""
		case was != record.Started:
			return "the rank does not run: " + string(was)
		case r != nil && !r.ended:
			return "its program runs at node " + c.node.Short()
		case ev.Node == c.node:
			return "that is where it was"
		}
		c.left = c.node
	case record.Lost:
		switch {
		case was != record.Started && was != record.Exited:
			return "the rank was not started: " + string(was)
		case a.Gentle && !strings.HasSuffix(ev.Reason, "its machine stopped it"):
			return "there is no reason to give it up: " + ev.Reason
		}
	}
	return ""
}

// bytes: who has ended has all of its output durable at the origin, as it was
// written.
func (a *Audit) bytes(job jobs.ID, ra jobs.RankAttempt, wrote int) string {
	o := a.disk.outputs[job][ra]
	if o == nil {
		o = &output{}
	}
	if o.safe < wrote {
		return fmt.Sprintf("of %d bytes that it wrote %d are durable", wrote, o.safe)
	}
	for i, b := range o.data {
		if b != OutputByte(job, ra, i) {
			return fmt.Sprintf("byte %d of its output is not what it wrote", i)
		}
	}
	return ""
}

// readEnd: who is COMPLETED has one success of each rank; who FAILED, a failure of one that
// was not given back.
func (s *story) readEnd(ev *record.Event) string {
	if ev.State == jobs.Failed && ev.Code != jobs.CodeZorilla && !slices.ContainsFunc(s.ranks, func(c chapter) bool { return c.code == ev.Code && !c.given }) {
		return fmt.Sprintf("but no rank has ended with %d", ev.Code)
	}
	if ev.State != jobs.Completed {
		return ""
	}
	done, won := 0, map[int]bool{}
	for i := range s.spec.Workers() {
		rank, _ := s.spec.RankOf(i)
		switch c := &s.ranks[i]; {
		case c.state == record.Exited && c.code == 0, c.state == record.Collected && c.code == 0:
			if !won[rank] {
				done++
			}
			won[rank] = true
		case s.spec.Replicas > 1: // another copy may have won
		case c.given && c.state != record.Started:
		case c.attempt > 0 || s.spec.FixedSize():
			return fmt.Sprintf("but rank %d, attempt %d is %s with %d", i, c.attempt, c.state, c.code)
		}
	}
	if done < s.spec.Min {
		return fmt.Sprintf("but only %d ranks of %d have run", done, s.spec.Min)
	}
	return ""
}

// Arrives and Arrived check that a report of superseded workers changes nothing;
// tick has the node do first what is due.
func (a *Audit) Arrives(now time.Time, from vicinity.ID, to *Model, m Message, tick func()) {
	a.stale = -1
	r, ok := m.body.(request)
	a.bookArrives(from, to.cfg.Self.ID, &r)
	rep, isReport := r.body.(*wire.Report)
	if !ok || !isReport || to.core.Jobs[rep.Job] == nil {
		return
	}
	j := to.core.Jobs[rep.Job]
	j.Primary.Tick(now) // which any input may bring about
	to.core.Flush(now, j)
	tick()
	for _, k := range rep.Workers {
		if j.Primary.Rec.Owned(from, k.RankAttempt) {
			return
		}
	}
	if rep.Away == 0 && j.Primary.Rec.Spec.Spares == 0 { // news of spares may be what a lost rank waits for
		a.stale = to.events(rep.Job)
	}
}

func (a *Audit) Arrived(to *Model, m Message) {
	if a.stale < 0 {
		return
	}
	if n := to.events(m.Job); n != a.stale {
		a.Fail(m.Job, "a report of superseded workers changed job %s", m.Job)
	}
}

// events counts what is, or is about to be, in the journal.
func (m *Model) events(job jobs.ID) (n int) {
	for _, e := range m.disk.journal {
		if e.job == job {
			n++
		}
	}
	for _, w := range m.writing {
		if w.Job == job {
			n += len(w.Events)
		}
	}
	return n
}
