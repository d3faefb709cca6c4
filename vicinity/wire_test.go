package vicinity

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"zorilla/internal/codec"
)

func somePlace() []float32 {
	return Coordinate{Vec: [dimensions]float32{0.001, -0.002}, Error: 0.5, Height: 1e-5}.wire()
}

func someMessages() []message {
	return []message{
		{Kind: kindPing, Nonce: 1, Link: claimNear, Place: somePlace()},
		{Kind: kindPong, Nonce: math.MaxUint64, Ack: 2, Link: claimHeld, Place: somePlace()},
		{Kind: kindAck, Nonce: 2},
		{Kind: kindSwap, Names: []named{{ID: testID(1), RTT: 200}}},
		{Kind: kindList, Names: []named{{ID: testID(1), RTT: 200}, {ID: testID(2), RTT: 10_000_000}}},
		{Kind: kindDrop},
	}
}

// The bytes are part of the protocol: a change here needs a new version.
func TestGoldenBytes(t *testing.T) {
	for _, x := range []struct {
		m    message
		want string
	}{
		{message{Kind: kindAck, Nonce: 258}, "82 a16b 03 a16e cd0102"},
		{message{Kind: kindDrop}, "81 a16b 06"},
		{message{Kind: kindPing, Nonce: 1, Link: claimFar, Place: make([]float32, coordinateLength)},
			"84 a16b 01 a16e 01 a16c 03 a163 9b" + strings.Repeat(" ca00000000", coordinateLength)},
		{message{Kind: kindSwap, Names: []named{{ID: testID(1), RTT: 200}}},
			"82 a16b 04 a170 91 82 a169 bb" + hex.EncodeToString([]byte(testID(1))) + " a172 ccc8"},
	} {
		want := strings.ReplaceAll(x.want, " ", "")
		if got := hex.EncodeToString(x.m.encode()); got != want {
			t.Errorf("%+v\n got %s\nwant %s", x.m, got, want)
		}
	}
}

func TestLargestMessagesFitIntoAPacket(t *testing.T) {
	c := newTalk(t, 6, 2, 0).core
	for i := range 50 {
		c.peer(testID(i+1)).sample(0, maxRTT)
	}
	c.stale = true
	m := c.list(kindSwap, nil)
	if len(m.Names) != listLength {
		t.Fatalf("%d names", len(m.Names))
	}
	if n := len(m.encode()); n > 500 {
		t.Errorf("a list takes %d bytes", n)
	}
	if n := len(message{Kind: kindPong, Nonce: math.MaxUint64, Ack: math.MaxUint64, Link: claimFar, Place: somePlace()}.encode()); n > 120 {
		t.Errorf("a pong takes %d bytes", n)
	}
}

func TestMalformedMessagesAreRefused(t *testing.T) {
	place := func(i int, v float32) []float32 {
		p := somePlace()
		p[i] = v
		return p
	}
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	bad := map[string][]byte{
		"empty":              {},
		"no msgpack":         {0xc1},
		"text":               codec.MustMarshal("hello"),
		"no kind":            message{Nonce: 1}.encode(),
		"unknown kind":       message{Kind: 7, Nonce: 1}.encode(),
		"no nonce":           message{Kind: kindPing}.encode(),
		"unknown link":       message{Kind: kindPing, Nonce: 1, Link: 4}.encode(),
		"short coordinate":   message{Kind: kindPing, Nonce: 1, Place: somePlace()[1:]}.encode(),
		"nan":                message{Kind: kindPing, Nonce: 1, Place: place(3, nan)}.encode(),
		"infinite":           message{Kind: kindPing, Nonce: 1, Place: place(0, -inf)}.encode(),
		"huge":               message{Kind: kindPing, Nonce: 1, Place: place(0, 1e30)}.encode(),
		"nan error":          message{Kind: kindPing, Nonce: 1, Place: place(8, nan)}.encode(),
		"infinite adjust":    message{Kind: kindPing, Nonce: 1, Place: place(9, inf)}.encode(),
		"negative height":    message{Kind: kindPing, Nonce: 1, Place: place(10, -0.1)}.encode(),
		"too many names":     message{Kind: kindList, Names: make([]named, maxList+1)}.encode(),
		"hostile name":       message{Kind: kindList, Names: []named{{ID: "../../etc/passwd"}}}.encode(),
		"absurd round trip":  message{Kind: kindList, Names: []named{{ID: testID(1), RTT: math.MaxUint32}}}.encode(),
		"negative kind":      codec.MustMarshal(map[string]any{"k": -1}),
		"nonce of the wrong": codec.MustMarshal(map[string]any{"k": 1, "n": "x"}),
		"too long":           codec.MustMarshal(map[string]any{"k": 6, "x": make([]byte, MaxPacket)}),
	}
	for name, b := range bad {
		if m, err := decode(b); !errors.Is(err, errMessage) {
			t.Errorf("%s: got %+v, %v", name, m, err)
		}
	}
}

func TestUnknownFieldsAreIgnored(t *testing.T) {
	m, err := decode(codec.MustMarshal(map[string]any{"k": 6, "new": []int{1}}))
	if err != nil || m.Kind != kindDrop {
		t.Errorf("got %+v, %v", m, err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, m := range someMessages() {
		f.Add(m.encode())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decode(b)
		if err != nil {
			return
		}
		again := m.encode()
		m2, err := decode(again)
		if len(again) > MaxPacket {
			return // fields that others may use more thriftily
		}
		if err != nil {
			t.Fatalf("own encoding %x is refused: %v", again, err)
		}
		if !bytes.Equal(again, m2.encode()) {
			t.Fatalf("%x changes when encoded again", again)
		}
	})
}

// FuzzReceive gives a node, linked to the sender and not, whatever comes.
func FuzzReceive(f *testing.F) {
	for _, m := range someMessages() {
		f.Add(m.encode(), message{Kind: kindDrop}.encode(), uint16(3))
	}
	f.Fuzz(func(t *testing.T, a, b []byte, ms uint16) {
		talk := newTalk(t, 2, 1, 5)
		for _, payload := range [][]byte{a, b, a} {
			talk.took(talk.core.Receive(talk.now, testID(1), payload))
			talk.after(time.Duration(ms) * time.Millisecond)
		}
		if n := len(talk.core.links); n > maxLinks(talk.core.cfg) {
			t.Fatalf("%d links", n)
		}
		for _, x := range talk.core.Neighbours() {
			if x.RTT < 0 || x.RTT > maxRTT {
				t.Fatalf("impossible neighbour %+v", x)
			}
		}
		if !talk.core.place.here.Valid() {
			t.Fatal("the own coordinate became invalid")
		}
	})
}
