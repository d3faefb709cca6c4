package jobs

import (
	"time"

	"zorilla/vicinity"
)

// coreMeasure is round trips that a Core measures for an origin.
type coreMeasure struct {
	to     vicinity.ID
	number uint64 // of its request
	job    ID
	nodes  []vicinity.ID
	next   time.Time // look again
	until  time.Time
}

// haveMeasured mirrors Service.haveMeasured.
func (c *Core) haveMeasured(now time.Time, j *coreJob, e doMeasure) {
	told := func(now time.Time, m Measured) {
		j.core.paired(now, e.from, e.nodes, m.times(len(e.nodes)))
		c.flush(now, j)
	}
	m := &Measure{Job: j.core.rec.id, Nodes: e.nodes}
	c.ask(now, e.from, m.Job, m, m, measureWait, func(now time.Time, _ bool) { told(now, Measured{}) }, func(now time.Time, r reply) { told(now, r.measured) })
}

// measure begins what Service.measureReceived does.
func (c *Core) measure(now time.Time, from vicinity.ID, number uint64, m *Measure) {
	for _, id := range m.Nodes {
		if _, rtt, _ := c.cfg.Member(id); rtt == 0 {
			c.out.Probes = append(c.out.Probes, id)
		}
	}
	c.measures = append(c.measures, &coreMeasure{to: from, number: number, job: m.Job, nodes: m.Nodes, next: now, until: now.Add(measureTime)})
}

// tellMeasured answers those whose round trips are known, or whose time is up.
func (c *Core) tellMeasured(now time.Time) {
	going := c.measures[:0]
	for _, m := range c.measures {
		if now.Before(m.next) {
			going = append(going, m)
			continue
		}
		out, missing := Measured{RTT: make([]int64, len(m.nodes))}, false
		for i, id := range m.nodes {
			_, rtt, _ := c.cfg.Member(id)
			out.RTT[i] = microseconds(rtt)
			missing = missing || out.RTT[i] == 0
		}
		if missing && now.Before(m.until) {
			m.next = earlier(m.until, now.Add(measurePause))
			going = append(going, m)
			continue
		}
		c.send(m.to, Reply, m.job, &out, reply{number: m.number, measured: out})
	}
	c.measures = going
}

// measuring returns when tellMeasured is due; zero = not by itself.
func (c *Core) measuring() (at time.Time) {
	for _, m := range c.measures {
		at = earlier(at, m.next)
	}
	return at
}
