package gossip

import (
	"context"
	crand "crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	stdlog "log"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/rs/zerolog"

	"zorilla/internal/connlimit"
	"zorilla/node/trust"
	"zorilla/vicinity"
)

// ErrNotMember is wrapped by Send's error about a node that is not a member.
var ErrNotMember = errors.New("not a member")

// Handler takes what the overlay tells. Its methods must return at once; see
// the package comment for the goroutines that call them.
type Handler interface {
	// Join is called when a member has come, or has changed what it says of
	// itself.
	Join(m vicinity.Member)
	// Done is called when a member has left or is dead.
	Leave(id vicinity.ID)
	// Message is called with each packet that somebody has sent by Send. The
	// payload belongs to the Handler.
	Message(from vicinity.ID, kind byte, payload []byte)
	// Elsewhere is called when others say that this node is at other addresses
	// than its own: it was there before, or another node has its identity.
	Elsewhere(addrs []string)
	// RTT is called when a round trip to a member has been measured.
	RTT(id vicinity.ID, rtt time.Duration)
}

// Config says what an overlay is made of.
type Config struct {
	Self      vicinity.Member // ID and Addrs are filled in
	Creds     *trust.Credentials
	Net       Net      // nil = RealNet
	Listen    string   // "host:port"; port 0 = a free one
	Sockets   *Sockets // that are bound already; nil = Listen binds them
	Advertise string   // "host:port" or "host" where others find this node; "" = what Listen says
	Seeds     []string
	Said      *Said // changes what Self says; nil = nobody does
	Handler   Handler
	Beacons   bool // find nodes on the local network, unless Listen is loopback
	Rand      *rand.Rand
	Log       zerolog.Logger
}

// Overlay is one node's part of the overlay. Make it with New, bind it with
// Listen; it works while Run does.
type Overlay struct {
	cfg       Config
	log       zerolog.Logger
	count     counters
	once      *once
	table     *table
	paths     *paths
	connLimit *connlimit.Limiter // connections that have not proven who they are
	callers   *callers           // those that have
	unproven  unproven
	newcomers *newcomers // nodes that others have announced and that have not answered

	ctx  context.Context // ends with the sockets
	stop context.CancelFunc

	// Set by Listen:
	listener  net.Listener
	packets   net.PacketConn
	bound     netip.AddrPort
	self      vicinity.Member // what never changes of it
	said      *Said
	peers     *peerListener
	transport *transport

	mu sync.Mutex             // guards what follows
	ml *memberlist.Memberlist // nil before Run

	misplaced chan struct{} // others think that this node is at another address
	heard     chan string   // addresses in beacons
}

// New makes an overlay. It does no I/O.
func New(cfg Config) (*Overlay, error) {
	switch {
	case cfg.Creds == nil:
		return nil, errors.New("overlay: no credentials")
	case cfg.Handler == nil:
		return nil, errors.New("overlay: no handler")
	}
	if cfg.Net == nil {
		cfg.Net = RealNet{}
	}
	if cfg.Rand == nil {
		var seed [16]byte
		crand.Read(seed[:])
		cfg.Rand = rand.New(rand.NewPCG(binary.LittleEndian.Uint64(seed[:8]), binary.LittleEndian.Uint64(seed[8:])))
	}
	if cfg.Said == nil {
		cfg.Said = &Said{}
	}
	o := &Overlay{
		cfg: cfg, said: cfg.Said, log: cfg.Log, once: newOnce(), table: newTable(), paths: newPaths(),
		connLimit: connlimit.New(maxHandshakes, maxFromOne), callers: newCallers(), newcomers: newNewcomers(),
		misplaced: make(chan struct{}, 1), heard: make(chan string, 16),
	}
	o.ctx, o.stop = context.WithCancel(context.Background())
	return o, nil
}

// Listen binds the node's port, unless it is bound, and takes connections of
// members. After it Self, Addr, PeerListener and DialPeer can be used. Without a Run, Close gives the port back.
func (o *Overlay) Listen(ctx context.Context) error {
	sockets, err := o.cfg.Sockets, error(nil)
	if sockets == nil {
		if sockets, err = Bind(ctx, o.cfg.Net, o.cfg.Listen); err != nil {
			return err
		}
	}
	o.listener, o.packets, o.bound = sockets.Streams, sockets.Packets, sockets.at
	m := o.cfg.Self
	m.ID = o.cfg.Creds.ID()
	m.Addrs, err = advertised(ctx, o.cfg.Net, o.bound, o.cfg.Advertise)
	if err == nil && o.cfg.Advertise == "" {
		m.Addrs = joinedBy(ctx, o.cfg.Net, m.Addrs, o.cfg.Seeds)
	}
	if err == nil {
		err = o.said.describe(m)
	}
	if err == nil {
		o.self = o.Self()
	}
	o.peers = newPeerListener(o.listener.Addr())
	if err == nil {
		o.transport, err = newTransport(o)
	}
	if err != nil {
		o.Close()
		return fmt.Errorf("describe this node: %w", err)
	}
	o.transport.running.Go(o.accept)
	return nil
}

// Close closes all sockets and connections to others at once, without announcing it. Run does it by itself.
func (o *Overlay) Close() error {
	o.stop()
	o.paths.close(func(*outbound) bool { return true })
	if o.listener == nil {
		return nil
	}
	return errors.Join(o.listener.Close(), o.packets.Close(), o.peers.Close())
}

// Run takes part in the network until ctx ends, then leaves (without a farewell
// if vicinity.ErrTwin is the cause) and returns nil when everything has ended. It needs Listen before it and works once.
func (o *Overlay) Run(ctx context.Context) error {
	if o.listener == nil {
		return errors.New("overlay: Run without Listen")
	}
	defer o.Close()
	o.transport.joining = ctx
	o.transport.running.Go(o.transport.readPackets)
	ml, err := o.create()
	if err != nil {
		o.Close()
		o.transport.running.Wait()
		return fmt.Errorf("start overlay: %w", err)
	}
	var children sync.WaitGroup
	children.Go(func() { o.beacons(ctx) })
	children.Go(func() { o.watch(ctx, ml) })
	children.Go(func() { o.askNewcomers(ctx, ml) })
	children.Wait()
	if !errors.Is(context.Cause(ctx), vicinity.ErrTwin) {
		o.leave(ml)
	}
	return ml.Shutdown()
}

// Done announces to the members that this node leaves, and closes the connections to them. New
// ones can be made until Run ends.
func (o *Overlay) Leave() {
	o.mu.Lock()
	ml := o.ml
	o.mu.Unlock()
	if ml == nil {
		return
	}
	o.leave(ml)
	o.paths.close(func(*outbound) bool { return true })
}

func (o *Overlay) leave(ml *memberlist.Memberlist) {
	if err := ml.Leave(leaveTimeout); err != nil {
		o.log.Debug().Err(err).Msg("leave the network")
	}
}

const (
	leaveTimeout = 2 * time.Second
	// reclaimTime passes before a dead node is believed to be at another
	// address: long enough for the news of its death to have gone round, which
	// would else kill its new incarnation as well.
	reclaimTime = 3 * time.Second
	tcpTimeout  = 10 * time.Second // of memberlist's connections, but for those of probes
)

func (o *Overlay) create() (*memberlist.Memberlist, error) {
	keys := gossipKeys(o.cfg.Creds)
	ring, err := memberlist.NewKeyring(keys, keys[0])
	if err != nil {
		return nil, err
	}
	conf := memberlist.DefaultLANConfig()
	conf.Name = string(o.self.ID)
	conf.BindPort = int(o.bound.Port())
	conf.Transport = o.transport
	conf.Keyring = ring
	conf.EnableCompression = false
	conf.RetransmitMult = 6 // with 4, one start of fifty nodes in twenty left somebody out until the next push/pull
	// It is most of the traffic of a calm network, but with 2 min a node that
	// comes back at another address may be unknown for that long.
	conf.PushPullInterval = 30 * time.Second
	conf.UDPBufferSize = 1400
	conf.HandoffQueueDepth = 4096
	// Each packet has room for some five news. To three members in 200 ms, which is the
	// default, the news of 300 nodes that start together took 20 s until all had all, in as
	// many packets; now 5. Without news there are no packets.
	conf.GossipInterval, conf.GossipNodes = 100*time.Millisecond, 4
	conf.TCPTimeout = tcpTimeout
	conf.ProbeInterval, conf.ProbeTimeout, conf.SuspicionMult = probeInterval, probeTimeout, suspicionMult
	conf.DeadNodeReclaimTime = reclaimTime
	conf.DelegateProtocolMin, conf.DelegateProtocolMax, conf.DelegateProtocolVersion = 1, 1, 1
	d := delegate{o}
	conf.Delegate, conf.Alive, conf.Events, conf.Conflict, conf.Ping = d, d, d, d, d
	conf.Logger = stdlog.New(memberlistLog{o.log}, "", 0)
	ml, err := memberlist.Create(conf)
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	o.ml = ml
	o.mu.Unlock()
	o.said.run(ml)
	return ml, nil
}

// Self returns this node as others see it.
func (o *Overlay) Self() vicinity.Member { return o.said.get().member }

// Addr returns the first of this node's addresses.
func (o *Overlay) Addr() string { return o.self.Addrs[0] }

// Members returns all other nodes that are alive, sorted by ID.
func (o *Overlay) Members() []vicinity.Member { return o.table.list() }

// Member returns one of them.
func (o *Overlay) Member(id vicinity.ID) (vicinity.Member, bool) {
	e, ok := o.table.get(id)
	return e.Member, ok
}

// Way returns what hinders packets to and from a member.
func (o *Overlay) Way(id vicinity.ID) Way {
	e, ok := o.table.get(id)
	if !ok {
		return Way{}
	}
	return Way{NoUDP: o.transport.pings.NoUDP(string(id)), Small: o.paths.small(o.paths.to(id, e.Addrs[0]))}
}

// Seeds returns at most 32 addresses that are worth trying after a restart.
func (o *Overlay) Seeds() []string { return saved(o.table.list(), o.cfg.Seeds) }

// PeerListener returns the listener of HTTP connections of members. They are
// ready *tls.Conn; trust.PeerID reports who is at the other end.
func (o *Overlay) PeerListener() net.Listener { return o.peers }

// Send sends at most MaxPayload bytes to a member; they may get lost. The kind
// is the caller's, and not 0.
func (o *Overlay) Send(to vicinity.ID, kind byte, payload []byte) error {
	if len(payload) > MaxPayload || kind == 0 {
		return fmt.Errorf("send %d bytes of kind %d: want at most %d bytes and a kind", len(payload), kind, MaxPayload)
	}
	o.mu.Lock()
	ml := o.ml
	o.mu.Unlock()
	e, ok := o.table.get(to)
	if !ok || ml == nil {
		return fmt.Errorf("send to %s: %w", to.Short(), ErrNotMember)
	}
	if err := ml.SendBestEffort(&e.node, encodePacket(o.self.ID, kind, payload)); err != nil {
		return fmt.Errorf("send to %s: %w", to.Short(), err)
	}
	o.count.sent.Add(1)
	return nil
}
