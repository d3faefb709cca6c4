package core

import (
	"cmp"
	"time"

	"zorilla/flood"
	"zorilla/jobs"
	"zorilla/jobs/internal/claims"
	"zorilla/jobs/internal/primary"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// Advertised takes an advertisement that came over so many hops; rim reports that
// it was not to be passed on, else to how many nodes it is.
func (c *Core) Advertised(now time.Time, ad wire.Advertisement, m flood.Message) {
	c.Clock.Saw(ad.Stamp, now)
	a := c.Claims.Advertised(now, ad)
	c.number(now, &a)
	a.Hops, a.Rim, a.Onward = int(m.Hops), m.TTL == 1, min(m.Onward, wire.MaxOnward)
	if ad.Near {
		a.At = c.network.Bearings()
	}
	c.do(DoPacket{ad.Origin(), wire.Packet{Answer: &a}})
	if a.Workers > 0 || a.Held > 0 { // what others may leave is offered later, and then there is no time to lose
		c.connect(ad.Origin(), c.far(ad.Origin()), ad.Addrs)
	}
	c.send(now, c.Claims.TakenBack())
}

// Received takes a packet of another node.
func (c *Core) Received(now time.Time, from vicinity.ID, p wire.Packet) {
	switch {
	case p.Answer != nil:
		c.answered(now, from, *p.Answer)
	case p.Grant != "":
		if p.Grant.Origin() == from {
			if h := c.Claims.Announced(now, p.Grant, p.Held, p.Key, p.Workers); h != nil && from != c.Self.ID {
				c.do(DoConnect{from, h.Ad.Addrs})
			}
			c.offerQueued(now)
		}
	case p.Recall != "":
		c.recalled(now, from, p.Recall)
	case p.Signed >= c.Claims.Signed(p.Yield): // else it was recorded before the advertisement that it would undo
		c.Yielded(now, from, primary.DoYield{Job: p.Yield, Key: p.Key, Forget: p.Forget})
	}
}

// answered hands an answer to the job's primary.
func (c *Core) answered(now time.Time, from vicinity.ID, a wire.Answer) {
	j, b := c.Jobs[a.Job], c.batches.calls[a.Job]
	if b != nil {
		b.answered[from] = true
	}
	if j == nil && (b == nil || b.search == nil) {
		if b == nil && a.Job.Origin() == c.Self.ID && a.Workers > 0 {
			c.yield(now, from, wire.Packet{Yield: a.Job, Forget: true})
		}
		return
	}
	m, ok := c.network.Member(from)
	rtt := c.network.Measured(from, 0)
	if from == c.Self.ID {
		m, ok, rtt = c.Self, true, 1 // nearer than all others; 0 would mean "not known"
	}
	if !ok { // it could not be reached, nor others be told where it is: it has just come, or is gone
		return
	}
	if len(a.At) > 0 {
		c.network.Placed(from, a.At)
	}
	if b != nil {
		c.batches.hears(now, b, m, rtt, a)
		return
	}
	j.Primary.Answered(now, m, rtt, a)
	c.Flush(now, j)
}

// post sends a packet, to this node itself as well.
func (c *Core) post(to vicinity.ID, p wire.Packet) {
	if to == c.Self.ID {
		c.soon = append(c.soon, p)
		return
	}
	c.do(DoPacket{to, p})
}

// recalled asks for offers back that keep a job from workers which its origin would take.
func (c *Core) recalled(now time.Time, from vicinity.ID, job jobs.ID) {
	if job.Origin() == from {
		c.Claims.Recalled(now, job)
		c.send(now, c.Claims.TakenBack())
	}
}

// Yielded ends a hold that the origin does not need.
func (c *Core) Yielded(now time.Time, from vicinity.ID, y primary.DoYield) {
	if y.Job.Origin() == from {
		c.Claims.Released(y.Job, y.Key, y.Forget)
		c.offerQueued(now)
	}
}

// number lets an origin tell which of two answers was sent later: packets overtake each
// other. Numbers grow over lives of the node, as far as its clock does.
func (c *Core) number(now time.Time, a *wire.Answer) {
	c.answers = max(c.answers+1, uint64(max(1, now.UnixMicro())))
	a.Number = c.answers
}

// offerQueued offers free room to queued jobs.
func (c *Core) offerQueued(now time.Time) { c.send(now, c.Claims.Offers(now)) }

func (c *Core) send(now time.Time, list []claims.Outgoing) {
	for _, out := range list {
		c.number(now, &out.Answer)
		if out.To == c.Self.ID {
			c.answered(now, out.To, out.Answer)
		} else {
			c.do(DoPacket{out.To, wire.Packet{Answer: &out.Answer}})
			if h := c.Claims.Holds[out.Answer.Job]; h != nil && out.Answer.Workers > 0 {
				c.connect(out.To, c.far(out.To), h.Ad.Addrs)
			}
		}
	}
}

// connectFrom is from which round trip on it is worth the work of both nodes, a few
// milliseconds, to connect before it is known that something is to be told.
const connectFrom = 5 * time.Millisecond

// connect connects to a node that will probably have to be told something soon, while its
// answer or a grant of it is on its way: where nodes have not talked lately a start takes three
// round trips then, not four, if its messages are too long to be sent ahead of a connection, and
// inputs and output come sooner.
func (c *Core) connect(to vicinity.ID, rtt time.Duration, addrs []string) {
	if rtt >= connectFrom {
		c.do(DoConnect{to, addrs})
	}
}

// far returns how far a node is, by its bearings if it was not measured; 0 = not known.
func (c *Core) far(id vicinity.ID) time.Duration {
	return cmp.Or(c.network.Measured(id, 0), c.network.Distance(c.Self.ID, id))
}

// Drain makes the node take no new workers.
func (c *Core) Drain(now time.Time) {
	c.Claims.Drain()
	c.Part.GiveSparesBack(now)
}
