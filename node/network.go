package node

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"zorilla/flood"
	"zorilla/internal/portion"
	"zorilla/jobs/agent"
	"zorilla/node/api"
	"zorilla/node/fastrpc"
	"zorilla/node/flow"
	"zorilla/node/gossip"
	"zorilla/node/trust"
	"zorilla/vicinity"
)

// Kinds of the packets that travel in the overlay.
const (
	kindVicinity byte = 1
	kindFlood    byte = 2
	kindJobs     byte = 3
	kindEarly    byte = 4
)

const (
	// advertisementLife bounds how long copies of a flood are passed on.
	advertisementLife = 30 * time.Second
	// savePeersEvery is how often addresses for the next start are kept.
	savePeersEvery = 2 * time.Second
)

// network is a node's overlay and what lives on it.
type network struct {
	self     vicinity.ID
	overlay  Overlay
	near     *vicinity.Table
	flooder  *flood.Flooder
	peers    *peers
	flow     *flow.Flow
	portions *portion.Portions
	client   *http.Client
	sessions *http.Client // for sessions alone
	files    *http.Client // for large files alone
	state    stateDir
	log      zerolog.Logger

	unknown atomic.Int64 // packets of kinds that this version does not know

	// Set before run, since they need the network's addresses.
	jobs  *agent.Service
	early *fastrpc.Messenger
	twins *twins
}

// newNetwork makes the overlay on the node's port, by make if that is not nil.
// It takes no part in the network before run.
func newNetwork(cfg gossip.Config, rnd *rand.Rand, make func(gossip.Config) (Overlay, error), state stateDir) (*network, error) {
	n := &network{self: cfg.Self.ID, state: state, log: cfg.Log, portions: portion.New(perMember),
		flow: flow.New(flow.Config{Self: cfg.Self.ID, PeerID: peerID, File: isFile, Stream: isStream})}
	n.near = vicinity.New(vicinity.Config{
		Self: n.self, Rand: split(rnd), Log: n.log,
		Send: func(to vicinity.ID, p []byte) { n.overlay.Send(to, kindVicinity, p) },
	})
	n.flooder = flood.New(flood.Config{
		Self: n.self, Rand: split(rnd), Log: n.log,
		Neighbours: n.neighbours,
		Send:       func(to vicinity.ID, p []byte) { n.overlay.Send(to, kindFlood, p) },
		Check:      func(origin vicinity.ID, p []byte) error { return n.jobs.CheckAdvertisement(origin, p) },
		Deliver:    func(m flood.Message) { n.jobs.Advertised(m) },
	})
	cfg.Handler, cfg.Rand = events{n}, split(rnd)
	var err error
	if make != nil {
		n.overlay, err = make(cfg)
	} else {
		n.overlay, err = gossip.New(cfg)
	}
	if err != nil {
		return nil, err
	}
	n.peers = newPeers(n.overlay, cfg.Net)
	n.client = &http.Client{Transport: n.flow.Over(n.peers.transport(gossip.HTTP2))}
	n.sessions = &http.Client{Transport: n.peers.sessions()}
	n.files = &http.Client{Transport: n.flow.Over(n.peers.files())}
	return n, nil
}

// split makes an independent source of randomness.
func split(r *rand.Rand) *rand.Rand { return rand.New(rand.NewPCG(r.Uint64(), r.Uint64())) }

// run lets the network run; everything that it calls exists by now.
func (n *network) run(g *group) {
	g.run(n.near.Run)
	g.run(n.flooder.Run)
	g.run(n.overlay.Run)
	g.run(n.early.Run)
	g.run(n.keepPeers)
}

// at is what another node does for this one.
func (n *network) at(id vicinity.ID) api.Peer {
	return api.NewClient(n.client.Transport, peerURL(id)+apiPrefix)
}

// send sends a packet, as well as may be.
func (n *network) send(to vicinity.ID, kind byte, payload []byte) {
	if err := n.overlay.Send(to, kind, payload); err != nil {
		n.log.Debug().Err(err).Str("to", to.Short()).Msg("send")
	}
}

// sendAhead lets small requests of jobs, and those of others to h, be packets.
func (n *network) sendAhead(creds *trust.Credentials, h http.Handler) {
	n.early = fastrpc.New(fastrpc.Config{
		Self: n.self, Sign: creds.Sign, Verify: trust.Verify,
		Send:   func(to vicinity.ID, p []byte) { n.send(to, kindEarly, p) },
		Member: func(id vicinity.ID) bool { _, ok := n.overlay.Member(id); return ok },
		Early:  agent.Early, Over: n.client.Transport, PeerID: peerID, Log: n.log,
		Serve: func(w http.ResponseWriter, r *http.Request, from vicinity.ID) { h.ServeHTTP(w, sentBy(r, from)) },
	})
}

func (n *network) neighbours() []vicinity.ID {
	list := n.near.Neighbours()
	ids := make([]vicinity.ID, len(list))
	for i, nb := range list {
		ids[i] = nb.ID
	}
	return ids
}

// keepPeers saves members' addresses when they have changed, and at the end.
func (n *network) keepPeers(ctx context.Context) error {
	tick := time.NewTicker(savePeersEvery)
	defer tick.Stop()
	var saved []string
	save := func() {
		peers, own := n.overlay.Seeds(), n.overlay.Self().Addrs
		moved := errors.Is(context.Cause(ctx), ErrMoved)
		if moved {
			own = nil // no twin can be there
		}
		if len(peers) == 0 || slices.Equal(peers, saved) && !moved {
			return
		}
		if err := n.state.savePeers(peers, own); err != nil {
			n.log.Warn().Err(err).Msg("save the addresses of members")
		}
		saved = peers
	}
	for {
		save()
		select {
		case <-tick.C:
		case <-ctx.Done():
			save()
			return nil
		}
	}
}

// events takes what the overlay tells.
type events struct{ *network }

// Join is called when a member has come, or has changed what it says of itself.
func (e events) Join(m vicinity.Member) {
	e.near.Join(m)
	e.peers.Learn(m.ID, m.Addrs)
	e.jobs.Membership(m.ID, true)
}

// Leave is called when a member has left or is dead.
func (e events) Leave(id vicinity.ID) {
	e.near.Leave(id)
	e.jobs.Membership(id, false)
}

// Message is called with each packet of a member.
func (e events) Message(from vicinity.ID, kind byte, payload []byte) {
	switch kind {
	case kindVicinity:
		e.near.Receive(from, payload)
	case kindFlood:
		e.flooder.Receive(from, payload)
	case kindJobs:
		e.jobs.Receive(from, payload)
	case kindEarly:
		e.early.Receive(from, payload)
	default: // of a newer version
		e.unknown.Add(1)
	}
}

// Elsewhere is called when others say that this node is at other addresses.
func (e events) Elsewhere(addrs []string) { e.twins.hint(addrs) }

// RTT is called when the overlay has measured a round trip.
func (e events) RTT(id vicinity.ID, rtt time.Duration) { e.near.Observe(id, rtt) }

// jobsOverlay is what jobs see of the network.
type jobsOverlay struct{ *network }

func (o jobsOverlay) Flood(radius int, payload []byte) flood.Flood {
	f, err := o.flooder.Start(radius, advertisementLife, payload)
	if err != nil && !errors.Is(err, flood.ErrStopped) {
		o.log.Warn().Err(err).Msg("flood an advertisement")
	}
	return f
}

func (o jobsOverlay) Extend(f flood.Flood, rim []flood.Reach) { o.flooder.Extend(f, rim) }

func (o jobsOverlay) Size() int { return o.near.Size() }

func (o jobsOverlay) Measured(id vicinity.ID, within time.Duration) (rtt time.Duration) {
	if within == 0 {
		rtt, _ = o.near.Sure(id)
	} else {
		rtt, _ = o.near.Fresh(id, within)
	}
	return rtt
}

func (o jobsOverlay) Nearer(than time.Duration, limit int) []vicinity.Measured {
	return o.near.Nearer(than, limit)
}

func (o jobsOverlay) Distance(a, b vicinity.ID) time.Duration {
	rtt, _ := o.near.Distance(a, b)
	return rtt
}

func (o jobsOverlay) Bearings() []byte { return o.near.Bearings() }

func (o jobsOverlay) Placed(id vicinity.ID, bearings []byte) { o.near.Placed(id, bearings) }

func (o jobsOverlay) Probe(id vicinity.ID) { o.near.Probe(id) }

func (o jobsOverlay) Send(to vicinity.ID, payload []byte) { o.send(to, kindJobs, payload) }

func (o jobsOverlay) Member(id vicinity.ID) (vicinity.Member, bool) {
	if self := o.overlay.Self(); self.ID == id {
		return self, true
	}
	return o.overlay.Member(id)
}

func (o jobsOverlay) Learn(id vicinity.ID, addrs []string) { o.peers.Learn(id, addrs) }

var _ agent.Overlay = jobsOverlay{}
