package core

import (
	"slices"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/primary"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/internal/timers"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// Job is a job that was submitted at this node.
type Job struct {
	timers.Entry // in Core.Live
	Primary      *primary.Primary
	Steps        []*PendingStep      // in order; their effects wait for the journal
	wrote        int                 // the number of the last step
	Serving      map[vicinity.ID]int // reports that wait for an answer
	busy         bool                // nodes work for it
	Settled      bool                // it has ended, and that is durable
	gone         bool                // it is forgotten: nothing is written down of it any more
	kind         *kind               // of jobs that share searches; nil = it shares none
}

// PendingStep is what a primary left at one time: effects that wait until the
// events before them are durable.
type PendingStep struct {
	number  int
	effects []primary.Effect
	durable bool
}

type (
	// DoRecord makes events of a job durable: Recorded.
	DoRecord struct {
		Job    jobs.ID
		Step   int
		Events []record.Event
	}
	// DoSettle: a job has ended, and that is durable.
	DoSettle struct{ Job jobs.ID }
	// DoFollow finds out how a job ends that another one waits for: Followed of its primary.
	DoFollow struct{ Job, After jobs.ID }
)

// Flush hands what a primary has left to the journal, and its effects on once
// they may be seen outside.
func (c *Core) Flush(now time.Time, j *Job) {
	c.flush(now, j)
	c.batches.changed(now, j)
}

func (c *Core) flush(now time.Time, j *Job) {
	st := j.Primary.Take()
	c.news = true
	if !j.Settled {
		c.Live.Set(j, j.Primary.Wake())
		c.count(j, len(j.Primary.Parts) > 0)
	}
	if j.gone {
		st.Events = nil
	}
	if len(st.Events) == 0 && len(st.Effects) == 0 {
		return
	}
	j.wrote++
	j.Steps = append(j.Steps, &PendingStep{number: j.wrote, effects: st.Effects, durable: len(st.Events) == 0})
	if len(st.Events) > 0 {
		c.do(DoRecord{j.Primary.Rec.ID, j.wrote, st.Events})
	}
	c.release(now, j)
}

// Recorded notes that the events of a step are durable.
func (c *Core) Recorded(now time.Time, id jobs.ID, step int) {
	j := c.Jobs[id]
	if j == nil {
		return
	}
	if i := slices.IndexFunc(j.Steps, func(p *PendingStep) bool { return p.number == step }); i >= 0 {
		j.Steps[i].durable = true
	}
	c.release(now, j)
	c.batches.settle(now)
}

// release lets the effects go whose events are durable, in order.
func (c *Core) release(now time.Time, j *Job) {
	c.news = true
	for len(j.Steps) > 0 && j.Steps[0].durable {
		st := j.Steps[0]
		j.Steps = j.Steps[1:]
		for _, e := range st.effects {
			c.perform(now, j, e)
		}
	}
	if j.Primary.Rec.State.Final() && len(j.Steps) == 0 && !j.Settled {
		c.settled(j)
		c.do(DoSettle{j.Primary.Rec.ID})
	}
}

// perform does one effect of a primary, or leaves it to be done outside.
func (c *Core) perform(now time.Time, j *Job, e primary.Effect) {
	switch e := e.(type) {
	case primary.DoFlood:
		c.flood(now, j, &e)
	case primary.DoExtend:
		c.out = append(c.out, Action{j.Primary.Rec.ID, e})
		for _, r := range e.Rim {
			if r.Last && !r.Again {
				c.connect(r.Node, r.RTT, nil)
			}
		}
	case primary.DoAsk:
		c.ask(now, e.Ad)
	case primary.DoYield:
		c.yield(now, e.To, wire.Packet{Yield: e.Job, Key: e.Key, Forget: e.Forget})
	case primary.DoRecall:
		c.post(e.To, wire.Packet{Recall: e.Job, Signed: now.UnixMilli()})
	case primary.DoGrant:
		g := &e.Grant
		if b := c.batches.calls[g.Held]; b != nil {
			b.granted[e.To] = true
		}
		c.post(e.To, wire.Packet{Grant: g.Job, Held: g.Held, Key: g.Key, Workers: len(g.Ranks) + g.Spares, Signed: now.UnixMilli()})
		c.out = append(c.out, Action{j.Primary.Rec.ID, e})
	case primary.DoAnswer:
		j.reportAnswered(now, e.To)
		c.out = append(c.out, Action{j.Primary.Rec.ID, e})
	default:
		c.out = append(c.out, Action{j.Primary.Rec.ID, e})
	}
}

// flood advertises a job, or the batch of which it is the first.
func (c *Core) flood(now time.Time, j *Job, e *primary.DoFlood) {
	f := c.network.Flood(now, e.Radius, e.Ad)
	if b := c.batches.calls[e.Ad.Job]; b == nil {
		j.Primary.Sent(now, e.Ad.Round, f)
	} else if b.search != nil {
		b.search.Sent(now, e.Ad.Round, f)
	}
	c.ask(now, e.Ad)
}

// ask advertises a job to this node itself.
func (c *Core) ask(now time.Time, ad wire.Advertisement) {
	a := c.Claims.Advertised(now, ad)
	c.number(now, &a)
	c.soon = append(c.soon, wire.Packet{Answer: &a})
}

// follow has it found out how the jobs end that a job waits for.
func (c *Core) follow(j *Job) {
	seen := map[jobs.ID]bool{}
	for _, d := range j.Primary.Unmet() {
		if !seen[d.Job] {
			seen[d.Job] = true
			c.do(DoFollow{j.Primary.Rec.ID, d.Job})
		}
	}
}

// Update gives what has become of an effect to the primary of its job, unless that is not in
// memory any more.
func (c *Core) Update(now time.Time, id jobs.ID, f func(*primary.Primary)) {
	if j := c.Jobs[id]; j != nil {
		f(j.Primary)
		c.Flush(now, j)
	}
}

// Serve notes that a report of a node has come, and returns which of its workers still
// count; ok is false if the job is not known. Until it is answered, or Unserved, the node is not
// silent: its report may wait for a disk that is slow or full.
func (c *Core) Serve(now time.Time, from vicinity.ID, rep *wire.Report) (owned map[jobs.RankAttempt]bool, ok bool) {
	j := c.Jobs[rep.Job]
	if j == nil {
		return nil, false
	}
	owned = map[jobs.RankAttempt]bool{}
	j.Primary.Heard(now, from)
	j.Serving[from]++
	for _, w := range rep.Workers {
		owned[w.RankAttempt] = j.Primary.Rec.Owned(from, w.RankAttempt)
	}
	return owned, true
}

// Unserved ends that: what the report brought could not be stored.
func (c *Core) Unserved(now time.Time, from vicinity.ID, id jobs.ID) {
	if j := c.Jobs[id]; j != nil {
		j.reportAnswered(now, from)
	}
}

// reportAnswered notes that a report of a node is served.
func (j *Job) reportAnswered(now time.Time, from vicinity.ID) {
	if j.Serving[from] == 0 { // another request is answered
		return
	}
	j.Primary.WaitedFor(now, from)
	if j.Serving[from]--; j.Serving[from] == 0 {
		delete(j.Serving, from)
	}
}

// Reported hands a report to the job's primary, whose output is stored as far as have
// says. It is answered under its number.
func (c *Core) Reported(now time.Time, from vicinity.ID, rep *wire.Report, have map[jobs.RankAttempt]wire.Written, number uint64) {
	j := c.Jobs[rep.Job]
	if j == nil {
		c.do(primary.DoAnswer{To: from, Number: number})
		return
	}
	j.Primary.Reported(now, from, *rep, have, number)
	c.Flush(now, j)
}
