package testnet

import (
	"maps"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Config describes a network.
type Config struct {
	// Latency is the one-way delay from a to b; nil means 0.1 ms. It must be safe for
	// concurrent use and must not block.
	Latency func(a, b *Host) time.Duration
	Noise   Noise
	Seed    uint64 // of what the noise leaves to chance
}

// Counters tell what a network has carried so far.
type Counters struct {
	Packets Amount // sent, whatever became of them
	Streams Amount // connections, and the bytes written to them
}

// Amount is a number of packets, or connections, with their bytes.
type Amount struct{ Count, Bytes int64 }

// Network joins hosts. See the package documentation for how it behaves.
type Network struct {
	cfg Config

	mu       sync.Mutex // guards what follows, and the fields of Host that say so
	hosts    map[netip.Addr]*Host
	counters Counters
	noise    Noise
	rnd      *rand.Rand
}

// NewNetwork returns a network without hosts.
func NewNetwork(cfg Config) *Network {
	if cfg.Latency == nil {
		cfg.Latency = func(a, b *Host) time.Duration { return 100 * time.Microsecond }
	}
	return &Network{cfg: cfg, hosts: map[netip.Addr]*Host{}, noise: cfg.Noise, rnd: chance(cfg.Seed)}
}

// Host returns the host with the IP address, as in "10.0.1.7", and makes it if
// there is none. It panics if addr is not an IP address.
func (n *Network) Host(addr string) *Host {
	ip := netip.MustParseAddr(addr)
	n.mu.Lock()
	defer n.mu.Unlock()
	h := n.hosts[ip]
	if h == nil {
		h = &Host{
			net: n, ip: ip, up: true, nextPort: firstEphemeral,
			listeners: map[uint16]*listener{},
			sockets:   map[uint16]*packetConn{},
			conns:     map[*conn]struct{}{},
		}
		n.hosts[ip] = h
	}
	return h
}

// RTT returns the true round trip between two hosts, without noise.
func (n *Network) RTT(a, b *Host) time.Duration {
	return n.cfg.Latency(a, b) + n.cfg.Latency(b, a)
}

// Counters returns a copy of the counters.
func (n *Network) Counters() Counters {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.counters
}

// Partition cuts the network into the groups; hosts that are in none of them
// together form one more. It replaces an earlier partition.
func (n *Network) Partition(groups ...[]*Host) {
	n.mu.Lock()
	for _, h := range n.hosts {
		h.group = 0
	}
	for i, hosts := range groups {
		for _, h := range hosts {
			h.group = i + 1
		}
	}
	n.mu.Unlock()
	n.resume()
}

// Heal ends a partition. What connections held arrives one latency later.
func (n *Network) Heal() { n.Partition() }

// Crash takes the host off the network at once, as if its power had failed.
func (n *Network) Crash(h *Host) {
	n.mu.Lock()
	h.up = false
	h.life++
	listeners, sockets, conns := maps.Clone(h.listeners), maps.Clone(h.sockets), maps.Clone(h.conns)
	clear(h.listeners)
	clear(h.sockets)
	clear(h.conns)
	n.mu.Unlock()

	for _, l := range listeners {
		l.ready.shut()
	}
	for _, s := range sockets {
		s.in.shut()
	}
	for c := range conns {
		c.end(net.ErrClosed)
	}
}

// Restart lets a crashed host use the network again, with no sockets. Its
// former peers' connections are reset.
func (n *Network) Restart(h *Host) {
	n.mu.Lock()
	h.up = true
	n.mu.Unlock()
	n.resume()
}

// resume gives all connections a chance to go on after a change of the faults.
func (n *Network) resume() {
	var conns []*conn
	n.mu.Lock()
	for _, h := range n.hosts {
		conns = slices.AppendSeq(conns, maps.Keys(h.conns))
	}
	n.mu.Unlock()
	for _, c := range conns {
		c.resume()
	}
}

// reach reports whether a and b can exchange anything now.
func (n *Network) reach(a, b *Host) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.reachLocked(a, b)
}

func (n *Network) reachLocked(a, b *Host) bool {
	return a.up && b.up && (a == b || a.group == b.group)
}
