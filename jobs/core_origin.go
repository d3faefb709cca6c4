package jobs

import (
	"slices"
	"time"

	"zorilla/vicinity"
)

// originJob is a job that was submitted at this node.
type originJob struct {
	entry   // in core.live
	core    *primary
	steps   []*pendingStep      // in order; their effects wait for the journal
	wrote   int                 // the number of the last step
	serving map[vicinity.ID]int // reports that wait for an answer
	busy    bool                // nodes work for it
	settled bool                // it has ended, and that is durable
	gone    bool                // it is forgotten: nothing is written down of it any more
}

// pendingStep is what a primary left at one time: effects that wait until the
// events before them are durable.
type pendingStep struct {
	number  int
	effects []effect
	durable bool
}

type (
	// doRecord makes events of a job durable: recorded.
	doRecord struct {
		job    ID
		step   int
		events []event
	}
	// doSettle: a job has ended, and that is durable.
	doSettle struct{ job ID }
	// doFollow finds out how a job ends that another one waits for: followed.
	doFollow struct{ job, after ID }
)

func (doRecord) isEffect() {}
func (doSettle) isEffect() {}
func (doFollow) isEffect() {}

// flush hands what a primary has left to the journal, and its effects on once
// they may be seen outside.
func (c *core) flush(now time.Time, j *originJob) {
	st := j.core.take()
	c.news = true
	if !j.settled {
		c.live.set(j, j.core.wake())
		c.count(j, len(j.core.parts) > 0)
	}
	if j.gone {
		st.events = nil
	}
	if len(st.events) == 0 && len(st.effects) == 0 {
		return
	}
	j.wrote++
	j.steps = append(j.steps, &pendingStep{number: j.wrote, effects: st.effects, durable: len(st.events) == 0})
	if len(st.events) > 0 {
		c.do(doRecord{j.core.rec.id, j.wrote, st.events})
	}
	c.release(now, j)
}

// recorded tells that the events of a step are durable.
func (c *core) recorded(now time.Time, id ID, step int) {
	j := c.jobs[id]
	if j == nil {
		return
	}
	if i := slices.IndexFunc(j.steps, func(p *pendingStep) bool { return p.number == step }); i >= 0 {
		j.steps[i].durable = true
	}
	c.release(now, j)
}

// release lets the effects go whose events are durable, in order.
func (c *core) release(now time.Time, j *originJob) {
	c.news = true
	for len(j.steps) > 0 && j.steps[0].durable {
		st := j.steps[0]
		j.steps = j.steps[1:]
		for _, e := range st.effects {
			c.perform(now, j, e)
		}
	}
	if j.core.rec.state.Final() && len(j.steps) == 0 && !j.settled {
		c.settled(j)
		c.do(doSettle{j.core.rec.id})
	}
}

// perform does one effect of a primary, or leaves it to be done outside.
func (c *core) perform(now time.Time, j *originJob, e effect) {
	switch e := e.(type) {
	case doFlood:
		j.core.sent(now, e.ad.Round, c.network.Flood(now, e.radius, e.ad))
		a := c.claims.advertised(now, e.ad)
		c.soon = append(c.soon, inner{answer: &a})
	case doYield:
		c.yield(e.to, e.job, e.forget, now)
	default:
		c.out = append(c.out, action{j.core.rec.id, e})
	}
}

// follow has it found out how the jobs end that a job waits for.
func (c *core) follow(j *originJob) {
	seen := map[ID]bool{}
	for _, d := range j.core.unmet() {
		if !seen[d.Job] {
			seen[d.Job] = true
			c.do(doFollow{j.core.rec.id, d.Job})
		}
	}
}

// tell tells a job's primary what has become of an effect of it; nobody, if the job is
// not in memory any more.
func (c *core) tell(now time.Time, id ID, f func(*primary)) {
	if j := c.jobs[id]; j != nil {
		f(j.core)
		c.flush(now, j)
	}
}

// serve notes that a report of a node has come, and tells which of its workers still
// count; ok is false if the job is not known. Until served the node is not silent: its
// report may wait for a disk that is slow or full.
func (c *core) serve(now time.Time, from vicinity.ID, rep *Report) (owned map[RankAttempt]bool, ok bool) {
	j := c.jobs[rep.Job]
	if j == nil {
		return nil, false
	}
	owned = map[RankAttempt]bool{}
	j.core.heard(now, from)
	j.serving[from]++
	for _, w := range rep.Workers {
		owned[w.RankAttempt] = j.core.owned(from, w.RankAttempt)
	}
	return owned, true
}

// served ends that.
func (c *core) served(now time.Time, from vicinity.ID, id ID) {
	j := c.jobs[id]
	if j == nil {
		return
	}
	j.core.waitedFor(now, from)
	if j.serving[from]--; j.serving[from] == 0 {
		delete(j.serving, from)
	}
}

// reported hands a report to the job's primary, whose output is stored as far as have
// says. It is answered under its number.
func (c *core) reported(now time.Time, from vicinity.ID, rep *Report, have map[RankAttempt]received, number uint64) {
	j := c.jobs[rep.Job]
	if j == nil {
		c.do(doAnswer{to: from, number: number})
		return
	}
	j.core.reported(now, from, *rep, have, number)
	c.flush(now, j)
}
