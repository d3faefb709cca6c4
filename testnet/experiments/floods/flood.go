package main

import (
	"bytes"
	"compress/lzw"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"zorilla/internal/codec"
	"zorilla/node/trust"
	"zorilla/testnet/local"
)

// flood is something that a node is sent until ctx ends, and counted. The file has the network's
// secret, which strangers make no use of.
type flood struct {
	name, what string
	send       func(ctx context.Context, secret string, sent *atomic.Int64) error
}

var floods = []flood{
	{"none", "none", func(ctx context.Context, _ string, _ *atomic.Int64) error { <-ctx.Done(); return nil }},
	{"packets", "strangers: UDP packets, 10 000 a second", packets},
	{"hellos", "strangers: ClientHello, close; as many as one client can", hellos(0)},
	{"silence", "strangers: ClientHello, silence; 400 a client, of 120 addresses", hellos(400)},
	{"bodies", "a member: 100 requests of 8 MiB on each of 3 connections", bodies},
	{"connections", "a member: 3000 connections", connections},
	{"members", "a member: announces 5000 members that do not exist", members},
	{"growing", "a member: packets that grow to 39 MiB, 40 a second", growing},
}

func newSecret() []byte {
	s, err := trust.NewSecret(rand.Reader)
	if err != nil {
		panic(err) // the system has no random numbers
	}
	return []byte(s.Text() + "\n")
}

// every calls f that many times a second, in bursts that a timer can keep up with.
func every(ctx context.Context, perSecond int, f func()) {
	const bursts = 100
	tick := time.NewTicker(time.Second / bursts)
	defer tick.Stop()
	for owed := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for owed += perSecond; owed >= bursts; owed -= bursts {
			f()
		}
	}
}

func packets(ctx context.Context, _ string, sent *atomic.Int64) error {
	c, err := net.Dial("udp", victim)
	if err != nil {
		return err
	}
	defer c.Close()
	b := make([]byte, 1200)
	rand.Read(b)
	b[0] = 1 // the form of encrypted packets
	every(ctx, 10_000, func() { _, _ = c.Write(b); sent.Add(1) })
	return nil
}

// recorded keeps what is written, and fails reads.
type recorded struct {
	net.Conn
	bytes.Buffer
}

func (c *recorded) Write(p []byte) (int, error)      { return c.Buffer.Write(p) }
func (c *recorded) Read([]byte) (int, error)         { return 0, io.EOF }
func (c *recorded) Close() error                     { return nil }
func (c *recorded) SetDeadline(time.Time) error      { return nil }
func (c *recorded) SetWriteDeadline(time.Time) error { return nil }

// hello is a ClientHello, as a client of TLS sends it.
func hello() []byte {
	var c recorded
	_ = tls.Client(&c, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"zorilla-gossip/2"}, ServerName: "x"}).Handshake()
	return c.Bytes()
}

// hellos opens connections from many addresses, with eight clients at a time, each of which keeps the
// last ones open.
func hellos(keep int) func(context.Context, string, *atomic.Int64) error {
	return func(ctx context.Context, _ string, sent *atomic.Int64) error {
		first := hello()
		var wg sync.WaitGroup
		for w := range 8 {
			wg.Go(func() {
				var open []net.Conn
				for i := 0; ctx.Err() == nil; i++ {
					d := net.Dialer{Timeout: time.Second, LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 33, byte(128+(i*8+w)%120))}}
					c, err := d.DialContext(ctx, "tcp", victim)
					if err != nil {
						_ = local.Wait(ctx, 5*time.Millisecond)
						continue
					}
					_, _ = c.Write(first)
					sent.Add(1)
					if keep == 0 {
						_ = c.SetReadDeadline(time.Now().Add(time.Second))
						_, _ = c.Read(make([]byte, 1))
					}
					if open = append(open, c); len(open) > keep {
						open[0].Close()
						open = open[1:]
					}
				}
				for _, c := range open {
					c.Close()
				}
			})
		}
		wg.Wait()
		return nil
	}
}

// member is a node of the network that means harm.
type member struct {
	network *trust.Network
	*trust.Credentials
}

func newMember(secret string) (*member, error) {
	s, err := trust.LoadSecret(secret)
	if err != nil {
		return nil, err
	}
	network, err := trust.NewNetwork(s)
	if err != nil {
		return nil, err
	}
	id, err := trust.NewIdentity(rand.Reader)
	if err != nil {
		return nil, err
	}
	creds, err := trust.NewCredentials(id, network)
	return &member{network, creds}, err
}

func (m *member) dial(ctx context.Context) (*tls.Conn, error) {
	var d net.Dialer
	raw, err := d.DialContext(ctx, "tcp", victim)
	if err != nil {
		return nil, err
	}
	c := tls.Client(raw, m.ClientTLS("", "h2"))
	return c, c.HandshakeContext(ctx)
}

// newGossiper returns a member, and a socket for its packets.
func newGossiper(secret string) (*member, net.Conn, error) {
	m, err := newMember(secret)
	if err != nil {
		return nil, nil, err
	}
	c, err := net.Dial("udp", victim)
	return m, c, err
}

// bodies sends requests up to their last byte.
func bodies(ctx context.Context, secret string, sent *atomic.Int64) error {
	m, err := newMember(secret)
	if err != nil {
		return err
	}
	body := make([]byte, 8<<20-1)
	var wg sync.WaitGroup
	for range 3 {
		t := &http.Transport{DialTLSContext: func(context.Context, string, string) (net.Conn, error) { return m.dial(ctx) }, Protocols: new(http.Protocols)}
		t.Protocols.SetHTTP2(true)
		defer t.CloseIdleConnections()
		for range 100 {
			wg.Go(func() {
				sent.Add(1)
				r, w := io.Pipe()
				go func() { _, _ = w.Write(body); <-ctx.Done(); w.Close() }()
				req, _ := http.NewRequestWithContext(ctx, http.MethodPost, "https://x/v1/peer/report", r)
				if resp, err := t.RoundTrip(req); err == nil {
					resp.Body.Close()
				}
				r.CloseWithError(errors.New("refused"))
			})
		}
	}
	wg.Wait()
	return nil
}

// connections opens connections and has them idle.
func connections(ctx context.Context, secret string, sent *atomic.Int64) error {
	m, err := newMember(secret)
	if err != nil {
		return err
	}
	var open []net.Conn
	for len(open) < 3000 && ctx.Err() == nil {
		c, err := m.dial(ctx)
		if err != nil {
			_ = local.Wait(ctx, 10*time.Millisecond)
			continue
		}
		_, _ = io.WriteString(c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
		open = append(open, c)
		sent.Add(1)
	}
	<-ctx.Done()
	for _, c := range open {
		c.Close()
	}
	return nil
}

// Kinds of messages of memberlist, and the form in which they are sent (package memberlist).
const (
	kindAlive      = 4
	kindCompressed = 9
	kindChecked    = 12
	encrypted      = 1
)

// seal makes a packet of a message.
func (m *member) seal(kind byte, v any) ([]byte, error) {
	msg := append([]byte{kind}, codec.MustMarshal(v)...)
	checked := append(binary.BigEndian.AppendUint32([]byte{kindChecked}, crc32.ChecksumIEEE(msg)), msg...)
	block, err := aes.NewCipher(m.network.GossipKey())
	if err != nil {
		return nil, err
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, gcm.NonceSize())
	rand.Read(nonce)
	return gcm.Seal(append([]byte{encrypted}, nonce...), nonce, checked, nil), nil
}

// members announces nodes at an address where there is none.
func members(ctx context.Context, secret string, sent *atomic.Int64) error {
	m, c, err := newGossiper(secret)
	if err != nil {
		return err
	}
	defer c.Close()
	meta := codec.MustMarshal(map[string]any{"n": "no" + strings.Repeat("x", 50), "c": 64, "m": int64(64 << 30),
		"p": "linux/amd64", "v": 5, "l": map[string]string{"a": strings.Repeat("y", 60)}})
	for i := range 5000 {
		id, err := trust.NewIdentity(rand.Reader)
		if err != nil {
			return err
		}
		b, err := m.seal(kindAlive, struct {
			Incarnation uint32
			Node        string
			Addr        []byte
			Port        uint16
			Meta        []byte
			Vsn         []uint8
		}{1, string(id.ID()), []byte{127, 0, 33, 200}, uint16(1024 + i), meta, []uint8{1, 5, 2, 1, 1, 1}})
		if err != nil {
			return err
		}
		_, _ = c.Write(b)
		sent.Add(1)
		if i%100 == 99 {
			_ = local.Wait(ctx, 5*time.Millisecond)
		}
	}
	<-ctx.Done()
	return nil
}

// growing sends packets that are small while they are compressed.
func growing(ctx context.Context, secret string, sent *atomic.Int64) error {
	m, c, err := newGossiper(secret)
	if err != nil {
		return err
	}
	defer c.Close()
	var small bytes.Buffer
	w := lzw.NewWriter(&small, lzw.LSB, 8)
	if _, err := w.Write(make([]byte, 39<<20)); err != nil {
		return err
	}
	w.Close()
	b, err := m.seal(kindCompressed, struct {
		Algo uint8
		Buf  []byte
	}{0, small.Bytes()})
	if err != nil {
		return err
	}
	if len(b) > 65_000 {
		return fmt.Errorf("a packet of %d bytes", len(b))
	}
	every(ctx, 40, func() { _, _ = c.Write(b); sent.Add(1) })
	return nil
}
