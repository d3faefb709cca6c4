package core

import (
	"time"

	"zorilla/jobs/internal/primary"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// Nobody answers a yield. One that is lost keeps slots from others for as long as a hold lasts,
// and has them look for workers farther away; so each is sent twice. What the node was told
// since is not undone: see wire.Packet.Signed.

// repeats are the yields that are to be sent again, in order.
type repeats []repeated

type repeated struct {
	at     time.Time
	packet DoPacket
}

const (
	repeatAfter = 50 * time.Millisecond
	maxRepeats  = 4096
)

// yield lets a node know that something is not wanted. This node itself does it at once, before it
// is asked again, which it is at once as well.
func (c *Core) yield(now time.Time, to vicinity.ID, p wire.Packet) {
	if to == c.Self.ID {
		c.Yielded(now, to, primary.DoYield{Job: p.Yield, Key: p.Key, Forget: p.Forget})
		return
	}
	p.Signed = now.UnixMilli()
	c.do(DoPacket{to, p})
	c.yieldLater(now, to, p)
}

// yieldLater tells it in a while, when what was said before has arrived.
func (c *Core) yieldLater(now time.Time, to vicinity.ID, p wire.Packet) {
	p.Signed = now.UnixMilli()
	switch {
	case to == c.Self.ID:
		c.post(to, p)
	case len(c.again) < maxRepeats:
		c.again = append(c.again, repeated{now.Add(repeatAfter), DoPacket{to, p}})
	}
}

// due takes out those whose time has come.
func (r *repeats) due(now time.Time) (list []DoPacket) {
	n := 0
	for ; n < len(*r) && !now.Before((*r)[n].at); n++ {
		list = append(list, (*r)[n].packet)
	}
	if *r = (*r)[n:]; len(*r) == 0 {
		*r = nil
	}
	return list
}

// next is when the first is due; zero = there is none.
func (r repeats) next() (at time.Time) {
	if len(r) > 0 {
		at = r[0].at
	}
	return at
}
