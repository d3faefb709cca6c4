package gossip

import (
	"fmt"
	"time"

	"github.com/hashicorp/memberlist"

	"zorilla/vicinity"
)

// delegate is the overlay as memberlist sees it. Most of these are called with
// memberlist's lock held: they must return at once and call nothing of it.
type delegate struct{ o *Overlay }

// NodeMeta implements memberlist.Delegate.
func (d delegate) NodeMeta(int) []byte { return d.o.said.get().meta }

// NotifyMsg implements memberlist.Delegate: a user packet has come.
func (d delegate) NotifyMsg(b []byte) {
	from, kind, payload, err := decodePacket(b)
	if err != nil {
		d.o.count.malformed.Add(1)
		return
	}
	if from == d.o.self.ID || d.o.ctx.Err() != nil {
		return
	}
	d.o.count.received.Add(1)
	d.o.cfg.Handler.Message(from, kind, payload)
}

// GetBroadcasts implements memberlist.Delegate: there are none.
func (delegate) GetBroadcasts(int, int) [][]byte { return nil }

// LocalState implements memberlist.Delegate: there is none.
func (delegate) LocalState(bool) []byte { return nil }

// MergeRemoteState implements memberlist.Delegate.
func (delegate) MergeRemoteState([]byte, bool) {}

// NotifyAlive implements memberlist.AliveDelegate: an error keeps a node that
// describes itself badly from becoming a member.
func (d delegate) NotifyAlive(n *memberlist.Node) error {
	if d.o.table.same(n) {
		return nil
	}
	m, err := decodeMember(n)
	if _, known := d.o.table.get(m.ID); err == nil && !known && m.ID != d.o.self.ID && !d.o.newcomers.room(m.ID) {
		return errCrowd
	}
	if err != nil {
		d.o.count.badMembers.Add(1)
		if d.o.once.first("meta " + label(n.Name, idSize)) {
			d.o.log.Warn().Err(err).Msg(fmt.Sprintf("ignored node %.30q at %s", n.Name, n.Addr))
		}
	}
	return err
}

// NotifyJoin implements memberlist.EventDelegate.
func (d delegate) NotifyJoin(n *memberlist.Node) {
	if vicinity.ID(n.Name) == d.o.self.ID {
		return
	}
	m, err := decodeMember(n)
	if err != nil {
		return
	}
	if _, known := d.o.table.get(m.ID); known || d.o.newcomers.joined(m, n) {
		d.o.table.put(m, n)
	}
}

// NotifyUpdate implements memberlist.EventDelegate.
func (d delegate) NotifyUpdate(n *memberlist.Node) { d.NotifyJoin(n) }

// NotifyLeave implements memberlist.EventDelegate.
func (d delegate) NotifyLeave(n *memberlist.Node) {
	d.o.transport.pings.Gone(n.Name)
	d.o.paths.gone(vicinity.ID(n.Name))
	d.o.newcomers.left(vicinity.ID(n.Name)) // before the table, which has no more of it then
	d.o.table.remove(vicinity.ID(n.Name))
}

// NotifyConflict implements memberlist.ConflictDelegate: a node is said to be
// at another address than where it was.
func (d delegate) NotifyConflict(existing, other *memberlist.Node) {
	if vicinity.ID(existing.Name) != d.o.self.ID {
		return
	}
	if m, err := decodeMember(other); err == nil {
		d.o.cfg.Handler.Elsewhere(m.Addrs)
	}
	select {
	case d.o.misplaced <- struct{}{}:
	default:
	}
}

// AckPayload implements memberlist.PingDelegate.
func (delegate) AckPayload() []byte { return nil }

// NotifyPingComplete implements memberlist.PingDelegate.
func (d delegate) NotifyPingComplete(n *memberlist.Node, rtt time.Duration, _ []byte) {
	d.o.answered(vicinity.ID(n.Name))
	if d.o.transport.pings.Answered(n.Name, rtt) && rtt > 0 && d.o.ctx.Err() == nil {
		d.o.cfg.Handler.RTT(vicinity.ID(n.Name), rtt)
	}
}
