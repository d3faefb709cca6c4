package testnet

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"zorilla/node"
	"zorilla/node/gossip"
	"zorilla/vicinity"
)

// What the directory's members learn when.
const (
	newsDelay  = time.Second      // who came and who left is known within this time
	deathDelay = 10 * time.Second // and who crashed, so much later
)

// directory knows all members of a network. Its overlays take the place of
// memberlist where that would cost too much, since it costs the square of the
// number of nodes: each learns of each other after a delay, and nobody gossips
// or probes. A network that is cut goes unnoticed. Packets and connections go
// over the emulated network as ever; packets are not encrypted.
type directory struct {
	mu      sync.Mutex // guards what follows
	log     []news
	members map[vicinity.ID]*entry
}

// news is one line of the directory's log.
type news struct {
	member vicinity.Member
	gone   bool
}

// entry is where in the log a member came and left.
type entry struct {
	member     vicinity.Member
	came, left int // left < came while it is there
}

func newDirectory() *directory {
	return &directory{members: map[vicinity.ID]*entry{}}
}

// tell appends to the log; everybody reads it within a delay.
func (d *directory) tell(m vicinity.Member, gone bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.members[m.ID]
	if e == nil {
		e = &entry{left: -1, came: -1}
		d.members[m.ID] = e
	}
	if gone {
		e.left = len(d.log)
	} else {
		e.member, e.came = m, len(d.log)
	}
	d.log = append(d.log, news{m, gone})
}

// directed is one node's overlay: a node.Overlay.
type directed struct {
	dir   *directory
	cfg   gossip.Config
	host  *Host
	delay time.Duration // of news

	// Set by Listen:
	self    vicinity.Member
	peers   net.Listener
	packets net.PacketConn

	read int // lines of the log; guarded by dir.mu
}

func (d *directory) overlay(cfg gossip.Config, host *Host) node.Overlay {
	return &directed{
		dir: d, cfg: cfg, host: host,
		delay: newsDelay/10 + time.Duration(cfg.Rand.Int64N(int64(newsDelay*9/10))),
	}
}

// Listen implements node.Overlay.
func (o *directed) Listen(context.Context) error {
	o.packets = o.cfg.Sockets.Packets
	o.peers = tls.NewListener(o.cfg.Sockets.Streams, o.cfg.Creds.ServerTLS("h2"))
	o.self = o.cfg.Self
	o.self.ID, o.self.Addrs = o.cfg.Creds.ID(), []string{o.cfg.Listen}
	return nil
}

// Run implements node.Overlay.
func (o *directed) Run(ctx context.Context) error {
	var reader sync.WaitGroup
	reader.Go(o.receive)
	o.dir.tell(o.self, false)
	for sleep(ctx, o.delay) == nil {
		o.hear()
	}
	o.bow()
	err := errors.Join(o.peers.Close(), o.packets.Close())
	reader.Wait()
	if errors.Is(err, net.ErrClosed) { // by a crash
		return nil
	}
	return err
}

// bow ends a membership: whoever crashed is missed only later, and not at all
// if it is back by then.
func (o *directed) bow() {
	d := o.dir
	d.mu.Lock()
	came := d.members[o.self.ID].came
	d.mu.Unlock()
	if _, up := o.host.state(); up {
		d.tell(o.self, true)
		return
	}
	time.AfterFunc(deathDelay, func() {
		d.mu.Lock()
		back := d.members[o.self.ID].came != came
		d.mu.Unlock()
		if !back {
			d.tell(o.self, true)
		}
	})
}

// hear reads the log as far as it goes.
func (o *directed) hear() {
	o.dir.mu.Lock()
	list := o.dir.log[o.read:] // of which no line ever changes
	o.read = len(o.dir.log)
	o.dir.mu.Unlock()
	for _, n := range list {
		switch {
		case n.member.ID == o.self.ID:
		case n.gone:
			o.cfg.Handler.Leave(n.member.ID)
		default:
			o.cfg.Handler.Join(n.member)
		}
	}
}

// receive takes packets until the socket is closed.
func (o *directed) receive() {
	buf := make([]byte, maxDatagram)
	for {
		size, _, err := o.packets.ReadFrom(buf)
		if err != nil {
			return
		}
		from, kind, payload, ok := splitPacket(buf[:size])
		if ok {
			o.cfg.Handler.Message(from, kind, payload)
		}
	}
}

// A packet is the sender's ID, the kind and the payload.
func splitPacket(b []byte) (from vicinity.ID, kind byte, payload []byte, ok bool) {
	if len(b) <= idSize {
		return "", 0, nil, false
	}
	return vicinity.ID(b[:idSize]), b[idSize], append([]byte(nil), b[idSize+1:]...), true
}

const idSize = 27

// Send implements node.Overlay.
func (o *directed) Send(to vicinity.ID, kind byte, payload []byte) error {
	m, ok := o.Member(to)
	if !ok {
		return fmt.Errorf("send to %s: %w", to.Short(), gossip.ErrNotMember)
	}
	at, err := net.ResolveUDPAddr("udp", m.Addrs[0])
	if err != nil {
		return err
	}
	b := make([]byte, 0, idSize+1+len(payload))
	b = append(append(append(b, o.self.ID...), kind), payload...)
	_, err = o.packets.WriteTo(b, at)
	return err
}

// Self implements node.Overlay.
func (o *directed) Self() vicinity.Member { return o.self }

// Member implements node.Overlay.
func (o *directed) Member(id vicinity.ID) (vicinity.Member, bool) {
	o.dir.mu.Lock()
	defer o.dir.mu.Unlock()
	e := o.dir.members[id]
	if e == nil || id == o.self.ID || !o.knowsLocked(e) {
		return vicinity.Member{}, false
	}
	return e.member, true
}

// knowsLocked reports whether this node has read that a member is there.
func (o *directed) knowsLocked(e *entry) bool {
	left := e.left > e.came && e.left < o.read
	return e.came < o.read && !left
}

// Members implements node.Overlay.
func (o *directed) Members() []vicinity.Member {
	o.dir.mu.Lock()
	defer o.dir.mu.Unlock()
	var list []vicinity.Member
	for id, e := range o.dir.members {
		if id != o.self.ID && o.knowsLocked(e) {
			list = append(list, e.member)
		}
	}
	slices.SortFunc(list, func(a, b vicinity.Member) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// Seeds implements node.Overlay: nobody has to be found.
func (o *directed) Seeds() []string { return nil }

// PeerListener implements node.Overlay.
func (o *directed) PeerListener() net.Listener { return o.peers }

// DialPeer implements node.Overlay.
func (o *directed) DialPeer(ctx context.Context, id vicinity.ID, addrs []string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	raw, err := o.host.Dial(ctx, addrs[0])
	if err != nil {
		return nil, err
	}
	c := tls.Client(raw, o.cfg.Creds.ClientTLS(id, "h2"))
	if err := c.HandshakeContext(ctx); err != nil {
		raw.Close()
		return nil, fmt.Errorf("dial node %s: %w", id.Short(), err)
	}
	return c, nil
}

const dialTimeout = 5 * time.Second

// Stats implements node.Overlay.
func (o *directed) Stats() map[string]int64 { return map[string]int64{} }
