package gossip

import "sync/atomic"

// counters count since the node was made.
type counters struct {
	sent, received, malformed   atomic.Int64 // user packets
	refusedPackets              atomic.Int64
	strangers, badHandshakes    atomic.Int64
	overload                    atomic.Int64 // connections dropped because too many had not proven who they are
	crowded                     atomic.Int64 // connections of members that had too many
	silent                      atomic.Int64 // connections that did not say a word
	broken                      atomic.Int64 // connections that ended before they had proven who they are
	badMembers                  atomic.Int64
	putOff                      atomic.Int64 // handshakes
	unanswered                  atomic.Int64 // newcomers
	pingsAgain                  atomic.Int64
	beacons, foreign, badBeacon atomic.Int64
	joins, failedJoins          atomic.Int64
}

// Stats returns counters by name.
func (o *Overlay) Stats() map[string]int64 {
	c := &o.count
	return map[string]int64{
		"packets sent":               c.sent.Load(),
		"packets received":           c.received.Load(),
		"packets malformed":          c.malformed.Load(),
		"packets refused":            c.refusedPackets.Load(),
		"strangers refused":          c.strangers.Load(),
		"handshakes failed":          c.badHandshakes.Load(),
		"connections over the limit": c.overload.Load(),
		"connections too many":       c.crowded.Load(),
		"handshakes put off":         c.putOff.Load(),
		"connections silent":         c.silent.Load(),
		"connections broken":         c.broken.Load(),
		"members malformed":          c.badMembers.Load(),
		"newcomers unanswered":       c.unanswered.Load(),
		"pings sent again":           c.pingsAgain.Load(),
		"beacons received":           c.beacons.Load(),
		"beacons of other networks":  c.foreign.Load(),
		"beacons malformed":          c.badBeacon.Load(),
		"joins":                      c.joins.Load(),
		"joins failed":               c.failedJoins.Load(),
	}
}
