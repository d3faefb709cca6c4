package gossip

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/crypto/chacha20poly1305"

	"zorilla/internal/codec"
	"zorilla/node/trust"
	"zorilla/vicinity"
)

const (
	beaconMagic   = "zorb\x01"
	networkIDSize = 8
	maxBeacon     = 1024
	beaconAddrs   = 4

	beaconAlone = 10 * time.Second
	beaconCalm  = 30 * time.Second
)

var (
	errForeign = errors.New("beacon of another network")
	errBeacon  = errors.New("malformed beacon")
)

type beacon struct {
	ID    vicinity.ID `json:"i"`
	Addrs []string    `json:"a"`
}

// sealBeacon makes the packet that says where a member of the network is.
func sealBeacon(n *trust.Network, b beacon) ([]byte, error) {
	id, err := hex.DecodeString(n.ID())
	if err != nil || len(id) != networkIDSize {
		return nil, fmt.Errorf("network ID %q: not %d bytes of hexadecimal", n.ID(), networkIDSize)
	}
	aead, err := chacha20poly1305.NewX(n.BeaconKey())
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, aead.NonceSize())
	rand.Read(nonce)
	head := slices.Concat([]byte(beaconMagic), id, nonce)
	return aead.Seal(head, nonce, codec.MustMarshal(b), head), nil
}

// openBeacon reads a packet of a member of one of the networks.
func openBeacon(networks []*trust.Network, p []byte) (beacon, error) {
	const head = len(beaconMagic) + networkIDSize + chacha20poly1305.NonceSizeX
	if len(p) < head || len(p) > maxBeacon || string(p[:len(beaconMagic)]) != beaconMagic {
		return beacon{}, errBeacon
	}
	id := hex.EncodeToString(p[len(beaconMagic):][:networkIDSize])
	i := slices.IndexFunc(networks, func(n *trust.Network) bool { return n.ID() == id })
	if i < 0 {
		return beacon{}, errForeign
	}
	aead, err := chacha20poly1305.NewX(networks[i].BeaconKey())
	if err != nil {
		return beacon{}, err
	}
	plain, err := aead.Open(nil, p[head-chacha20poly1305.NonceSizeX:head], p[head:], p[:head])
	if err != nil {
		return beacon{}, fmt.Errorf("%w: not sealed with the network's key", errBeacon)
	}
	var b beacon
	if err := codec.Unmarshal(plain, &b); err != nil {
		return beacon{}, fmt.Errorf("%w: %w", errBeacon, err)
	}
	if !b.ID.Valid() || len(b.Addrs) == 0 || len(b.Addrs) > beaconAddrs {
		return beacon{}, fmt.Errorf("%w: ID or addresses", errBeacon)
	}
	for _, a := range b.Addrs {
		p, err := netip.ParseAddrPort(a)
		if err != nil || p.Port() == 0 || !p.Addr().IsGlobalUnicast() || p.String() != a {
			return beacon{}, fmt.Errorf("%w: address", errBeacon)
		}
	}
	return b, nil
}

// where returns the address at which to knock: the one that the packet came
// from if the node is there, since that way is known to work.
func (b beacon) where(from net.Addr) string {
	if src, err := addrPortOf(from); err == nil {
		for _, a := range b.Addrs {
			if netip.MustParseAddrPort(a).Addr() == src.Addr() {
				return a
			}
		}
	}
	return b.Addrs[0]
}

// beacons sends and hears beacons until ctx ends.
func (o *Overlay) beacons(ctx context.Context) {
	n, ok := o.cfg.Net.(beaconNet)
	if !ok || !o.cfg.Beacons || o.bound.Addr().IsLoopback() || netip.MustParseAddrPort(o.self.Addrs[0]).Addr().IsLoopback() {
		return
	}
	c, err := n.ListenBeacon(ctx)
	if err != nil {
		o.log.Warn().Err(err).Msg("nodes on the local network are not found by themselves: use --join")
		return
	}
	var both sync.WaitGroup
	both.Go(func() { o.hear(ctx, c) })
	both.Go(func() { o.call(ctx, c, n) })
	<-ctx.Done()
	c.Close()
	both.Wait()
}

// call sends beacons: often in the beginning, then now and then.
func (o *Overlay) call(ctx context.Context, c net.PacketConn, n beaconNet) {
	mine := beacon{o.self.ID, o.self.Addrs[:min(len(o.self.Addrs), beaconAddrs)]}
	for wait := 500 * time.Millisecond; ; wait *= 2 {
		p, err := sealBeacon(o.cfg.Creds.Networks()[0], mine)
		if err != nil {
			o.log.Warn().Err(err).Msg("make a beacon")
			return
		}
		for _, to := range n.BroadcastAddrs() {
			// Some of these never work on some machines; one that does is enough.
			_, _ = c.WriteTo(p, net.UDPAddrFromAddrPort(to))
		}
		most := beaconAlone
		if o.table.len() > 0 {
			most = beaconCalm
		}
		if wait = min(wait, most); !pause(ctx, wait) {
			return
		}
	}
}

// hear passes on where nodes are that are not members yet.
func (o *Overlay) hear(ctx context.Context, c net.PacketConn) {
	buf := make([]byte, maxBeacon+1)
	for {
		n, from, err := c.ReadFrom(buf)
		if err != nil {
			if errors.Is(err, net.ErrClosed) || !pause(ctx, 20*time.Millisecond) {
				return
			}
			continue
		}
		b, err := openBeacon(o.cfg.Creds.Networks(), buf[:n])
		switch {
		case errors.Is(err, errForeign):
			o.count.foreign.Add(1)
			continue
		case err != nil:
			o.count.badBeacon.Add(1)
			continue
		case b.ID == o.self.ID:
			continue
		}
		o.count.beacons.Add(1)
		if _, known := o.table.get(b.ID); known {
			continue
		}
		select {
		case o.heard <- b.where(from):
		case <-ctx.Done():
			return
		}
	}
}
