package flood

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"zorilla/internal/codec"
	"zorilla/vicinity"
)

// node returns the ID of the n-th node of a test.
func node(n int) vicinity.ID {
	return vicinity.IDFromKey(ed25519.PublicKey([]byte{byte(n), byte(n >> 8)}))
}

func sampleMessage() Message {
	return Message{
		ID: MessageID{1, 2, 3, 4, 5, 6, 7, 8}, Origin: node(1), TTL: 3, Hops: 2, LastHop: node(2),
		Life: 1500 * time.Millisecond, Payload: []byte("work"),
	}
}

// The layout of doc.go. If this changes, old nodes cannot read new floods.
const goldenBytes = "87a26964c4080102030405060708a16fbb7a69376f66696465757a3233716a6972796f786172653437626e6fa17403a16802a16cbb7a74" +
	"673766353634697a69716268706d6f6a3279646c376b633275a26d73cd05dca170c404776f726b"

func TestGoldenPacket(t *testing.T) {
	if got := hex.EncodeToString(encode(sampleMessage())); got != goldenBytes {
		t.Fatalf("got  %s\nwant %s", got, goldenBytes)
	}
}

func TestRoundTripAndSize(t *testing.T) {
	m := sampleMessage()
	m.TTL, m.Hops, m.Life = 1, MaxRadius, MaxLife
	m.Payload = bytes.Repeat([]byte{0xff}, MaxPayload)
	b := encode(m)
	if len(b) > MaxPacket {
		t.Fatalf("the largest message takes %d bytes, want at most %d", len(b), MaxPacket)
	}
	got, err := decode(b)
	if err != nil || !reflect.DeepEqual(got, m) {
		t.Fatalf("got %+v, %v, want %+v", got, err, m)
	}
}

func TestDecodeClamps(t *testing.T) {
	m, err := decode(codec.MustMarshal(packet{
		ID: make([]byte, 8), Origin: node(1), LastHop: node(1), TTL: 255, Hops: 3, Life: 1 << 60,
	}))
	if err != nil || m.TTL != MaxRadius-2 || m.Life != MaxLife {
		t.Fatalf("got %+v, %v", m, err)
	}
}

func TestDecodeRefuses(t *testing.T) {
	good := packet{ID: make([]byte, 8), Origin: node(1), LastHop: node(2), TTL: 1, Hops: 1, Life: 1}
	if _, err := decode(codec.MustMarshal(good)); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*packet){
		"short ID":         func(p *packet) { p.ID = p.ID[:7] },
		"no ID":            func(p *packet) { p.ID = nil },
		"strange origin":   func(p *packet) { p.Origin = "../../etc" },
		"no last hop":      func(p *packet) { p.LastHop = "" },
		"TTL 0":            func(p *packet) { p.TTL = 0 },
		"TTL 256 + 1":      func(p *packet) { p.TTL = 257 },
		"no hops":          func(p *packet) { p.Hops = 0 },
		"too many hops":    func(p *packet) { p.Hops = MaxRadius + 1 },
		"payload too long": func(p *packet) { p.Payload = make([]byte, MaxPayload+1) },
		"packet too long":  func(p *packet) { p.Payload = make([]byte, MaxPacket) },
	} {
		p := good
		change(&p)
		if _, err := decode(codec.MustMarshal(p)); !errors.Is(err, codec.ErrMalformed) {
			t.Errorf("%s: got %v, want ErrMalformed", name, err)
		}
	}
	for _, b := range [][]byte{nil, []byte(strings.Repeat("x", 10)), codec.MustMarshal(map[string]any{"t": -1, "h": 1.5})} {
		if _, err := decode(b); !errors.Is(err, codec.ErrMalformed) {
			t.Errorf("%x: got %v, want ErrMalformed", b, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(encode(sampleMessage()))
	f.Add(codec.MustMarshal(map[string]any{"t": 300, "h": -1, "id": "text", "new": []int{1}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decode(b)
		if err != nil {
			return
		}
		again, err := decode(encode(m))
		if err != nil || again.key() != m.key() || again.TTL != m.TTL || again.Hops != m.Hops ||
			again.LastHop != m.LastHop || again.Life != m.Life {
			t.Fatalf("%+v came back as %+v, %v", m, again, err)
		}
		core := NewCore(Config{
			Self: node(0), Neighbours: func() []vicinity.ID { return []vicinity.ID{node(3)} },
			Check: func(vicinity.ID, []byte) error { return nil },
		})
		if out := core.Receive(time.Unix(0, 0), 0, m.LastHop, b); len(out.Packet) > MaxPacket {
			t.Fatalf("forwards %d bytes", len(out.Packet))
		}
	})
}
