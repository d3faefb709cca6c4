package model

import (
	"fmt"
	"strings"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/participant"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// audit looks at a world after each step and says what is wrong with it. It
// knows what no node can know: what runs where, and what all journals say.
type audit struct {
	wrong  string  // the first thing; "" = nothing
	about  jobs.ID // the job that it is about; "" = a node
	runs   map[participant.WorkerID]*run
	jobs   map[jobs.ID]*story
	read   map[*place]int // entries of journals
	disk   *disk          // of the node whose journal is being read
	gentle bool           // no worker that has started may be given up
	stale  int            // events of the job before a report of superseded workers; -1 = it is none
}

// run is what happened to a worker's process.
type run struct {
	at     *place
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
}

// chapter is what it says of a rank.
type chapter struct {
	attempt int
	node    vicinity.ID
	state   record.Kind // the last that the rank was named in
	code    int
}

func newAudit() *audit {
	return &audit{runs: map[participant.WorkerID]*run{}, jobs: map[jobs.ID]*story{}, read: map[*place]int{}}
}

func (a *audit) fail(about jobs.ID, format string, args ...any) {
	if a.wrong == "" {
		a.wrong, a.about = fmt.Sprintf(format, args...), about
	}
}

// look checks a node that has just done something.
func (a *audit) look(w *world, p *place) {
	if p.core == nil {
		return
	}
	a.follow(w, p, &p.core.disk)
	a.slots(w, p)
	for _, k := range p.core.disk.workers {
		a.process(w, p, k)
	}
}

// slots: no more are used than there are, all by workers, and offers that stand
// have a lease that has not ended.
func (a *audit) slots(w *world, p *place) {
	used, held := p.core.Slots()
	claims, workers, offers, ended := p.core.core.Claims, 0, 0, 0
	jobs := map[jobs.ID]int{}
	for _, k := range p.core.core.Part.All() {
		for _, worker := range k.Workers {
			if !worker.Freed {
				workers += k.Spec.Slots
				jobs[k.Job]++
				if d := p.core.disk.worker(participant.WorkerID{Job: k.Job, RankAttempt: worker.RankAttempt}); d != nil && d.over {
					ended += k.Spec.Slots // a node that was started again has yet to see that
				}
			}
		}
	}
	now := w.local(p)
	for id, h := range claims.Holds {
		offers += h.Needs.Slots * h.Workers
		if !now.Before(h.Expires) || h.Expires.After(now.Add(wire.HoldLease)) {
			a.fail(id, "node %s holds slots for job %s until %v from now", p.id.Short(), id, h.Expires.Sub(now))
		}
	}
	switch {
	case used != workers || held != offers:
		a.fail("", "node %s: %d slots count as used, %d as held; its workers have %d, its offers %d", p.id.Short(), used, held, workers, offers)
	case used+held-ended > p.slots:
		a.fail("", "node %s has %d slots, %d are used and %d held", p.id.Short(), p.slots, used, held)
	case len(jobs) != len(claims.Jobs):
		a.fail("", "node %s counts claims of %d jobs, it has workers of %d", p.id.Short(), len(claims.Jobs), len(jobs))
	}
	for id, n := range jobs {
		if claims.Jobs[id] != n {
			a.fail(id, "node %s counts %d claims of job %s, it has %d workers", p.id.Short(), claims.Jobs[id], id, n)
		}
	}
}

// process: the same attempt runs once, at one node, where it was granted, and not
// before its START is durable.
func (a *audit) process(w *world, p *place, k *worker) {
	r, runs := a.runs[k.WorkerID], !k.began.IsZero()
	switch {
	case runs && r == nil:
		s := a.jobs[k.Job]
		if s == nil || s.begun[k.RankAttempt] != p.id {
			a.fail(k.Job, "rank %d, attempt %d of job %s runs at node %s without a START in the journal", k.Rank, k.Attempt, k.Job, p.id.Short())
		}
		a.runs[k.WorkerID] = &run{at: p, wants: k.fate.Output}
		w.tracer.note(w, p, k.Job, "runs rank %d, attempt %d", k.Rank, k.Attempt)
	case runs && r.at != p, runs && !k.over && r.ended:
		a.fail(k.Job, "rank %d, attempt %d of job %s runs at node %s, and ran at node %s", k.Rank, k.Attempt, k.Job, p.id.Short(), r.at.id.Short())
	case runs && k.over && !r.ended:
		r.ended, r.code, r.wrote = true, k.exit.Code, k.wrote
		w.tracer.note(w, p, k.Job, "rank %d, attempt %d ended with %d", k.Rank, k.Attempt, r.code)
	}
}

// killed notes what ends with a node's life.
func (a *audit) killed(w *world, p *place, machine bool) {
	a.follow(w, p, &p.remains.disk)
	for _, r := range a.runs {
		if machine && r.at == p && !r.ended {
			r.ended, r.failed = true, true
		}
	}
}

// follow reads what a node has written down since.
func (a *audit) follow(w *world, p *place, disk *disk) {
	a.disk = disk
	for _, e := range disk.journal[a.read[p]:] {
		w.tracer.note(w, p, e.job, "journal: %s %s %v %s", e.ev.Kind, nodeOf(e.ev), e.ev.Ranks, e.ev.Reason)
		s := a.jobs[e.job]
		if s == nil {
			s = &story{begun: map[jobs.RankAttempt]vicinity.ID{}}
			a.jobs[e.job] = s
		}
		if text := s.read(a, e.job, &e.ev); text != "" {
			a.fail(e.job, "journal of job %s: %s %v: %s", e.job, e.ev.Kind, e.ev.Ranks, text)
		}
	}
	a.read[p] = len(disk.journal)
}

// read takes the next event and says what is wrong with it.
func (s *story) read(a *audit, job jobs.ID, ev *record.Event) string {
	if s.final != "" {
		return "after the end"
	}
	if ev.Kind == record.Submitted {
		s.spec, s.ranks = *ev.Spec, make([]chapter, ev.Spec.Workers())
		return ""
	}
	if ev.Kind == record.Started && s.spec.Rigid() {
		if s.together || len(ev.Ranks) != s.spec.Least() {
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
	case record.Retried, record.Declined:
		s.together = false
	case record.Ended:
		s.final = ev.State
		return s.readEnd(ev)
	}
	return ""
}

func (s *story) readRank(a *audit, job jobs.ID, ev *record.Event, ra jobs.RankAttempt) string {
	c := &s.ranks[ra.Rank]
	if ev.Kind == record.Granted {
		switch {
		case ra.Attempt != c.attempt+1:
			return fmt.Sprintf("the attempt before was %d", c.attempt)
		case c.state == record.Granted || c.state == record.Started || c.state == record.Exited || c.state == record.Collected:
			return fmt.Sprintf("the rank is at node %s: %s", c.node.Short(), c.state)
		}
		*c = chapter{attempt: ra.Attempt, node: ev.Node, state: ev.Kind}
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
		s.begun[ra] = c.node
	case record.Exited:
		r := a.runs[participant.WorkerID{Job: job, RankAttempt: ra}]
		switch {
		case was != record.Started:
			return "the rank does not run: " + string(was)
		case r == nil || !r.ended || r.failed || r.at.id != c.node || r.code != ev.Exit.Code:
			return fmt.Sprintf("it ended with %d at node %s, in truth %+v", ev.Exit.Code, c.node.Short(), r)
		}
		if text := a.bytes(job, ra, r.wrote); text != "" {
			return text
		}
		c.code = ev.Exit.Code
	case record.Retried:
		if !s.spec.Rigid() && (was != record.Exited || c.code == 0) {
			return "the rank has not failed"
		}
	case record.Declined:
		switch r := a.runs[participant.WorkerID{Job: job, RankAttempt: ra}]; {
		case s.spec.Rigid():
		case was != record.Started:
			return "the rank was not started: " + string(was)
		case r != nil:
			return "its program has begun"
		}
	case record.Lost:
		switch {
		case was != record.Started && was != record.Exited:
			return "the rank was not started: " + string(was)
		case a.gentle && !strings.HasSuffix(ev.Reason, "its machine stopped it"):
			return "there is no reason to give it up: " + ev.Reason
		}
	}
	return ""
}

// bytes: who has ended has all of its output durable at the origin, as it was
// written.
func (a *audit) bytes(job jobs.ID, ra jobs.RankAttempt, wrote int) string {
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

// readEnd: who is COMPLETED has one success of each rank.
func (s *story) readEnd(ev *record.Event) string {
	if ev.State != jobs.Completed {
		return ""
	}
	done, won := 0, map[int]bool{}
	for i := range s.ranks {
		rank, _ := s.spec.RankOf(i)
		switch c := &s.ranks[i]; {
		case c.state == record.Exited && c.code == 0, c.state == record.Collected && c.code == 0:
			if !won[rank] {
				done++
			}
			won[rank] = true
		case s.spec.Replicas > 1: // another copy may have won
		case c.attempt > 0 || s.spec.Rigid():
			return fmt.Sprintf("but rank %d, attempt %d is %s with %d", i, c.attempt, c.state, c.code)
		}
	}
	if done < s.spec.Min {
		return fmt.Sprintf("but only %d ranks of %d have run", done, s.spec.Min)
	}
	return ""
}

// before and after check that a report of superseded workers changes nothing.
func (a *audit) before(w *world, from, to *place, m Message) {
	a.stale = -1
	r, ok := m.body.(request)
	rep, isReport := r.body.(*wire.Report)
	if !ok || !isReport || to.core.core.Jobs[rep.Job] == nil {
		return
	}
	j := to.core.core.Jobs[rep.Job]
	j.Core.Tick(w.local(to)) // which any input may bring about
	to.core.core.Flush(w.local(to), j)
	w.perform(to, to.core.Tick(w.local(to)))
	for _, k := range rep.Workers {
		if j.Core.Owned(from.id, k.RankAttempt) {
			return
		}
	}
	if rep.Away == 0 {
		a.stale = to.core.events(rep.Job)
	}
}

func (a *audit) after(w *world, to *place, m Message) {
	if a.stale < 0 {
		return
	}
	if n := to.core.events(m.Job); n != a.stale {
		a.fail(m.Job, "a report of superseded workers changed job %s", m.Job)
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

func nodeOf(ev record.Event) string {
	if ev.Node == "" {
		return ""
	}
	return ev.Node.Short()
}

// tracer keeps what happens, for people.
type tracer struct {
	on    bool
	until time.Duration // 0 = for ever
	lines []traceLine
}

type traceLine struct {
	at   time.Duration
	node string
	job  jobs.ID // "" = all
	text string
}

func (t *tracer) note(w *world, p *place, job jobs.ID, format string, args ...any) {
	if !t.on || t.until > 0 && w.now.Sub(jobtest.Start) > t.until {
		return
	}
	node := "-"
	if p != nil {
		node = p.id.Short()
	}
	t.lines = append(t.lines, traceLine{w.now.Sub(jobtest.Start), node, job, fmt.Sprintf(format, args...)})
}

func (t *tracer) message(w *world, from, to *place, m Message) {
	if t.on {
		t.note(w, to, m.Job, "from %s: %s", from.id.Short(), m.describe())
	}
}

func (m Message) describe() string {
	switch b := m.body.(type) {
	case wire.Packet:
		switch {
		case b.Answer == nil:
			return fmt.Sprintf("yield (forget %v)", b.Forget)
		case b.Answer.Workers > 0:
			return fmt.Sprintf("offers %d, round %d, key %04x", b.Answer.Workers, b.Answer.Round, b.Answer.Key&0xffff)
		}
		return fmt.Sprintf("declines round %d: %s", b.Answer.Round, b.Answer.Reason)
	case request:
		switch r := b.body.(type) {
		case *wire.Grant:
			return fmt.Sprintf("grant #%d %v, key %04x", b.number, r.Ranks, r.Key&0xffff)
		case *wire.Start:
			return fmt.Sprintf("start %v", r.Ranks)
		case *wire.Release:
			return fmt.Sprintf("release %v (stop %v)", r.Ranks, r.Stop)
		case *wire.Report:
			text := fmt.Sprintf("report #%d", b.number)
			for _, k := range r.Workers {
				text += fmt.Sprintf(" %d.%d %s", k.Rank, k.Attempt, k.State)
			}
			return text
		}
		return fmt.Sprintf("asks #%d %T", b.number, b.body)
	case reply:
		text := fmt.Sprintf("reply #%d refused %v, failed %v", b.number, b.refused, b.failed)
		for _, k := range b.ack.Workers {
			text += fmt.Sprintf(" %d.%d done %v drop %v stop %v", k.Rank, k.Attempt, k.Done, k.Drop, k.Stop)
		}
		return text
	}
	return fmt.Sprintf("%T", m.body)
}

// about returns the last so many lines on a job, and on all that happens to
// nodes; "" = on all jobs.
func (t *tracer) about(job jobs.ID, most int) string {
	var lines []traceLine
	for _, l := range t.lines {
		if l.job == job || l.job == "" || job == "" {
			lines = append(lines, l)
		}
	}
	var text strings.Builder
	for _, l := range lines[max(0, len(lines)-most):] {
		fmt.Fprintf(&text, "%12v %s %s %s\n", l.at.Round(10*time.Microsecond), l.node, l.job, l.text)
	}
	return text.String()
}
