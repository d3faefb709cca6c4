package node

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"zorilla/flood"
	"zorilla/jobs"
	"zorilla/jobs/process"
	"zorilla/node/gossip"
	"zorilla/vicinity"
)

// Kinds of the packets that travel in the overlay.
const (
	kindVicinity byte = 1
	kindFlood    byte = 2
	kindJobs     byte = 3
)

const (
	// advertisementLife bounds how long copies of a flood are passed on.
	advertisementLife = 30 * time.Second
	// savePeersEvery is how often addresses for the next start are kept.
	savePeersEvery = 2 * time.Second
	// probeTimeout bounds how long finding out what the sandbox can do takes;
	// it is a few milliseconds where the program begins with process.Main.
	probeTimeout = 10 * time.Second
)

// startNetwork makes the overlay on the node's port and what lives on it, and
// lets other nodes ask for twins.
func (n *Node) startNetwork(g *group, sockets *gossip.Sockets, seeds []string) error {
	if n.cfg.Seams.Runner == nil {
		runner := process.New(process.Config{Log: n.log})
		ctx, cancel := context.WithTimeout(g.ctx, probeTimeout)
		defer cancel()
		if err := runner.Probe(ctx); err != nil {
			return err
		}
		n.cfg.Seams.Runner = runner
	}
	rnd := n.cfg.Seams.Rand
	n.vicinity = vicinity.New(vicinity.Config{
		Self: n.creds.ID(), Rand: split(rnd), Log: n.log,
		Send: func(to vicinity.ID, p []byte) { n.overlay.Send(to, kindVicinity, p) },
	})
	n.flooder = flood.New(flood.Config{
		Self: n.creds.ID(), Rand: split(rnd), Log: n.log,
		Neighbours: n.neighbours,
		Send:       func(to vicinity.ID, p []byte) { n.overlay.Send(to, kindFlood, p) },
		Check:      func(origin vicinity.ID, p []byte) error { return n.jobs.CheckAdvertisement(origin, p) },
		Deliver:    func(m flood.Message) { n.jobs.Advertised(m) },
	})
	var err error
	n.overlay, err = n.newOverlay(gossip.Config{
		Self: n.member(n.cfg.Seams.Runner), Creds: n.creds, Net: n.cfg.Seams.Net,
		Sockets: sockets, Listen: n.cfg.Listen, Advertise: n.cfg.Advertise, Seeds: append(seeds, n.loadPeers()...),
		Handler: events{n}, Beacons: true, Rand: split(rnd), Log: n.log,
	})
	if err != nil {
		return err
	}
	if err := n.overlay.Listen(g.ctx); err != nil {
		return err
	}
	n.peers = newPeers(n.overlay)
	n.client = &http.Client{Transport: n.peers.transport()}
	n.startTwins()
	n.servePeers(g)
	return nil
}

// startOverlay lets the network run; everything that it calls exists by now.
func (n *Node) startOverlay(g *group) {
	g.run(n.vicinity.Run)
	g.run(n.flooder.Run)
	g.run(n.overlay.Run)
	g.run(n.keepPeers)
}

func (n *Node) neighbours() []vicinity.ID {
	list := n.vicinity.Neighbours()
	ids := make([]vicinity.ID, len(list))
	for i, nb := range list {
		ids[i] = nb.ID
	}
	return ids
}

// keepPeers saves members' addresses when they have changed, and at the end.
func (n *Node) keepPeers(ctx context.Context) error {
	tick := time.NewTicker(savePeersEvery)
	defer tick.Stop()
	var saved []string
	save := func() {
		peers := n.overlay.Seeds()
		if len(peers) == 0 || slices.Equal(peers, saved) {
			return
		}
		if err := n.savePeers(peers); err != nil {
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
type events struct{ n *Node }

// Join is called when a member has come, or has changed what it says of itself.
func (e events) Join(m vicinity.Member) {
	e.n.vicinity.Join(m)
	e.n.peers.Learn(m.ID, m.Addrs)
}

// Leave is called when a member has left or is dead.
func (e events) Leave(id vicinity.ID) {
	e.n.vicinity.Leave(id)
	e.n.jobs.MemberGone(id)
}

// Message is called with each packet of a member.
func (e events) Message(from vicinity.ID, kind byte, payload []byte) {
	switch kind {
	case kindVicinity:
		e.n.vicinity.Receive(from, payload)
	case kindFlood:
		e.n.flooder.Receive(from, payload)
	case kindJobs:
		e.n.jobs.Receive(from, payload)
	default: // of a newer version
		e.n.unknown.Add(1)
	}
}

// Elsewhere is called when others say that this node is at other addresses.
func (e events) Elsewhere(addrs []string) { e.n.twins.hint(addrs) }

// RTT is called when the overlay has measured a round trip.
func (e events) RTT(id vicinity.ID, rtt time.Duration) { e.n.vicinity.Observe(id, rtt) }

// overlay is what jobs see of the network.
type overlay struct{ n *Node }

func (o overlay) Flood(radius int, payload []byte) flood.Flood {
	f, err := o.n.flooder.Start(radius, advertisementLife, payload)
	if err != nil && !errors.Is(err, flood.ErrStopped) {
		o.n.log.Warn().Err(err).Msg("flood an advertisement")
	}
	return f
}

func (o overlay) Extend(f flood.Flood, rim []flood.Reach) { o.n.flooder.Extend(f, rim) }

func (o overlay) Size() int { return o.n.vicinity.Size() }

func (o overlay) Measured(id vicinity.ID) time.Duration {
	rtt, _ := o.n.vicinity.Sure(id)
	return rtt
}

func (o overlay) Nearer(than time.Duration, limit int) []vicinity.Measured {
	return o.n.vicinity.Nearer(than, limit)
}

func (o overlay) Distance(a, b vicinity.ID) time.Duration {
	rtt, _ := o.n.vicinity.Distance(a, b)
	return rtt
}

func (o overlay) Bearings() []byte { return o.n.vicinity.Bearings() }

func (o overlay) Placed(id vicinity.ID, bearings []byte) { o.n.vicinity.Placed(id, bearings) }

func (o overlay) Probe(id vicinity.ID) { o.n.vicinity.Probe(id) }

func (o overlay) Send(to vicinity.ID, payload []byte) {
	if err := o.n.overlay.Send(to, kindJobs, payload); err != nil {
		o.n.log.Debug().Err(err).Str("to", to.Short()).Msg("send")
	}
}

func (o overlay) Member(id vicinity.ID) (vicinity.Member, time.Duration, bool) {
	if self := o.n.overlay.Self(); self.ID == id {
		return self, 0, true
	}
	m, ok := o.n.overlay.Member(id)
	rtt, _ := o.n.vicinity.Estimate(id)
	return m, rtt, ok
}

func (o overlay) Learn(id vicinity.ID, addrs []string) { o.n.peers.Learn(id, addrs) }

var _ jobs.Overlay = overlay{}
