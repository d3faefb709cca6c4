package jobs

import (
	"fmt"
	"slices"
	"time"

	"zorilla/internal/codec"
	"zorilla/vicinity"
)

// coreJob is a job that was submitted here.
type coreJob struct {
	core    *primary
	wake    time.Time
	steps   []*coreStep // in order; their effects wait for the journal
	follows []followed
}

// coreStep is what a primary left at one time.
type coreStep struct {
	job     *coreJob
	events  []event
	effects []effect
	durable bool
	due     time.Time // when its events are durable
}

// coreEntry is one event in the journal of a Core.
type coreEntry struct {
	job ID
	ev  event
}

// followed is a job that another one depends on.
type followed struct {
	job   ID
	next  time.Time // when it is asked about
	asked bool
}

func (c *Core) newJob(id ID) *coreJob {
	j := &coreJob{core: newPrimary(id, c.cfg.Self, c.cfg.Rand, c.cfg.Schedule)}
	j.core.measured = func(id vicinity.ID) time.Duration {
		_, rtt, _ := c.cfg.Member(id)
		return rtt
	}
	j.core.members = c.cfg.Members
	if c.cfg.Nearer != nil {
		j.core.near = c.cfg.Nearer
	}
	if c.cfg.Distance != nil {
		j.core.distance = c.cfg.Distance
	}
	c.jobs[id] = j
	c.order = append(c.order, id)
	return j
}

// next returns when something is due for the job.
func (j *coreJob) next() time.Time {
	at := j.wake
	for _, f := range j.follows {
		if !f.asked {
			at = earlier(at, f.next)
		}
	}
	return at
}

// flush mirrors Service.flush: what a primary has left waits for its events,
// and for what it left before.
func (c *Core) flush(now time.Time, j *coreJob) {
	st := j.core.take()
	j.wake = j.core.wake()
	if len(st.events) == 0 && len(st.effects) == 0 {
		return
	}
	s := &coreStep{job: j, events: st.events, effects: st.effects, due: now, durable: len(st.events) == 0}
	j.steps = append(j.steps, s)
	switch {
	case s.durable:
	case c.cfg.Disk == nil:
		c.append(s)
	default:
		s.due = now.Add(c.cfg.Disk())
		if n := len(c.writing); n > 0 { // one writer
			s.due = later(s.due, c.writing[n-1].due)
		}
		c.writing = append(c.writing, s)
	}
	c.release(now, j)
}

// append makes a step's events durable.
func (c *Core) append(s *coreStep) {
	for _, ev := range s.events {
		c.journal = append(c.journal, coreEntry{s.job.core.rec.id, ev})
	}
	s.durable = true
}

// written goes on after what is durable by now.
func (c *Core) written(now time.Time) {
	for len(c.writing) > 0 && !now.Before(c.writing[0].due) {
		s := c.writing[0]
		c.writing = c.writing[1:]
		c.append(s)
		c.release(now, s.job)
	}
}

// release mirrors Service.release.
func (c *Core) release(now time.Time, j *coreJob) {
	for len(j.steps) > 0 && j.steps[0].durable {
		s := j.steps[0]
		j.steps = j.steps[1:]
		for _, e := range s.effects {
			c.perform(now, j, e)
		}
	}
}

// follow mirrors Service.follow: it asks how the jobs end that a job depends on.
func (j *coreJob) follow(now time.Time) {
	for _, d := range j.core.unmet() {
		if !slices.ContainsFunc(j.follows, func(f followed) bool { return f.job == d.Job }) {
			j.follows = append(j.follows, followed{job: d.Job, next: now})
		}
	}
}

func (c *Core) pollFollowed(now time.Time, j *coreJob) {
	if j.core.rec.state.Final() {
		j.follows = nil
	}
	for i := range j.follows {
		f := &j.follows[i]
		if f.asked || now.Before(f.next) {
			continue
		}
		job := f.job
		to, ok := c.cfg.Origin(job)
		if !ok {
			f.next = now.Add(askAgain)
			continue
		}
		f.asked = true
		c.ask(now, to, job, nil, question{job}, askAgain, func(now time.Time, _ bool) {
			j.askLater(job, now.Add(askAgain))
		}, func(now time.Time, r reply) {
			if r.state != "" && !r.state.Final() {
				j.askLater(job, now.Add(askAgain))
				return
			}
			j.follows = slices.DeleteFunc(j.follows, func(f followed) bool { return f.job == job })
			j.core.followed(now, job, r.state)
			c.flush(now, j)
		})
	}
}

// askLater has a job asked about again.
func (j *coreJob) askLater(job ID, next time.Time) {
	for i := range j.follows {
		if f := &j.follows[i]; f.job == job {
			f.asked, f.next = false, next
		}
	}
}

// questioned tells the state of a job of this node, the final one once it is
// durable.
func (c *Core) questioned(id ID) State {
	j := c.jobs[id]
	switch {
	case j == nil:
		return ""
	case j.core.rec.state.Final() && len(j.steps) > 0:
		return Collecting
	}
	return j.core.rec.state
}

func (c *Core) perform(now time.Time, j *coreJob, e effect) {
	switch e := e.(type) {
	case doAnswer:
		c.send(e.to, Reply, j.core.rec.id, e.ack, reply{number: e.number, ack: e.ack})
	case doFlood:
		payload := append(make([]byte, signatureLen), codec.MustMarshal(e.ad)...)
		sent := c.cfg.Flood(now, Advert{Job: e.ad.Job, Round: e.ad.Round, Radius: e.radius, Payload: payload})
		j.core.sent(now, e.ad.Round, sent)
		a := c.claims.advertised(now, e.ad)
		c.soon = append(c.soon, func() {
			c.answered(now, c.cfg.Self.ID, a)
			c.sendAnswers(now, c.claims.takenBack())
		})
	case doExtend:
		c.out.Extends = append(c.out.Extends, Extend{Job: j.core.rec.id, Flood: e.flood, Rim: e.rim})
	case doYield:
		c.yield(now, e.to, e.job, e.forget)
	case doGrant:
		c.ask(now, e.to, e.grant.Job, &e.grant, &e.grant, grantTimeout, func(now time.Time, refused bool) {
			j.core.grantFailed(now, e.to, e.grant.Ranks, refused)
			c.flush(now, j)
		}, func(time.Time, reply) {})
	case doStart:
		start := e.start
		start.Hosts = slices.Clone(start.Hosts)
		for i := range start.Hosts {
			if m, _, ok := c.cfg.Member(start.Hosts[i].Node); ok {
				start.Hosts[i].Addr = hostOf(m.Addrs)
			}
		}
		c.send(e.to, Request, start.Job, &start, request{body: &start})
	case doRelease:
		c.send(e.to, Request, e.release.Job, &e.release, request{body: &e.release})
	case doCollect:
		ra := RankAttempt{e.output.Rank, e.output.Attempt}
		collected := func(now time.Time, err error) {
			j.core.collected(now, ra, err)
			c.flush(now, j)
		}
		c.ask(now, e.from, j.core.rec.id, nil, fetch{j.core.rec.id, ra}, reportTimeout, func(now time.Time, _ bool) {
			collected(now, errNoFiles)
		}, func(now time.Time, _ reply) { collected(now, nil) })
	case doProbe:
		c.out.Probes = append(c.out.Probes, e.id)
	case doMeasure:
		c.haveMeasured(now, j, e)
	default: // a simulation must not pass over what a node does
		panic(fmt.Sprintf("jobs.Core does not know %T", e))
	}
}

// answered mirrors Service.answered.
func (c *Core) answered(now time.Time, from vicinity.ID, a Answer) {
	j := c.jobs[a.Job]
	if j == nil {
		if a.Job.Origin() == c.cfg.Self.ID && a.Workers > 0 {
			c.yield(now, from, a.Job, true)
		}
		return
	}
	m, rtt, ok := c.cfg.Member(from)
	if !ok {
		m = vicinity.Member{ID: from}
	}
	if from == c.cfg.Self.ID {
		m, rtt = c.cfg.Self, 1 // nearer than all others
	}
	j.core.answered(now, m, rtt, a)
	c.flush(now, j)
}

func (c *Core) yield(now time.Time, to vicinity.ID, id ID, forget bool) {
	if to == c.cfg.Self.ID {
		c.soon = append(c.soon, func() { c.yielded(now, to, id, forget) })
		return
	}
	c.packet(to, packet{Yield: id, Forget: forget})
}

// yielded mirrors Service.yielded.
func (c *Core) yielded(now time.Time, from vicinity.ID, id ID, forget bool) {
	if id.Origin() == from {
		c.claims.released(id, forget)
		c.offerQueued(now)
	}
}

func (c *Core) offerQueued(now time.Time) { c.sendAnswers(now, c.claims.offers(now)) }

func (c *Core) sendAnswers(now time.Time, list []outgoing) {
	for _, out := range list {
		if out.to == c.cfg.Self.ID {
			c.answered(now, out.to, out.answer)
		} else {
			c.packet(out.to, packet{Answer: &out.answer})
		}
	}
}
