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

func somePlace() []byte { return bearings{{7, 0}, {9, 200 * time.Microsecond}, {500, 12 * ms}}.wire() }

// someRecords returns a list's records of two nodes and two landmarks.
func someRecords() (tags, known []byte) {
	known = append(appendID(nil, testID(3)), 0, 5, 1, 2, 3, 4)
	known = append(appendID(known, testID(4)), 0, 0, 255, 255, 3, 4)
	return []byte{0, 7, 0, 9}, known
}

func someMessages() []message {
	tags, known := someRecords()
	return []message{
		{Kind: kindPing, Nonce: 1, Link: claimNear, Place: somePlace()},
		{Kind: kindPong, Nonce: math.MaxUint64, Ack: 2, Link: claimHeld, Place: somePlace()},
		{Kind: kindAck, Nonce: 2},
		{Kind: kindSwap, Names: []named{{ID: testID(1), RTT: 200}}},
		{Kind: kindList, Place: somePlace(), Tags: tags, Known: known},
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
		{message{Kind: kindPing, Nonce: 1, Link: claimFar, Place: bearings{{258, 0}, {0x4567, 10 * time.Second}}.wire()},
			"84 a16b 01 a16e 01 a16c 03 a178 c408 0102 0000 4567 fffe"},
		{message{Kind: kindList, Tags: []byte{0, 7}, Known: append(appendID(nil, "z"+ID(strings.Repeat("7", 26))), 0, 60, 255, 255)},
			"83 a16b 05 a174 c402 0007 a171 c415" + strings.Repeat("ff", 16) + "c0 003c ffff"},
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
		c.cfg.Roster.Add(testID(i + 1))
	}
	for i := range 50 {
		p := c.peers.get(testID(i + 1))
		p.sample(0, maxRTT, rowLength)
		p.sample(0, maxRTT, rowLength)
		c.where.learn(p, c.where.bearings(), ms)
	}
	for i := range 50 {
		c.where.learn(c.peers.get(testID(i+1)), c.where.bearings(), 2*ms)
	}
	c.peers.stale = true
	m := c.list(kindSwap, nil)
	if len(m.Names) != listLength || len(m.Known) != listPlaces*recordLength(m.Tags) || len(m.Tags) != 2*maxLandmarks || len(m.Place) != maxLandmarks*bearingLength {
		t.Fatalf("%d names, %d bytes of places, %d of tags, %d of bearings", len(m.Names), len(m.Known), len(m.Tags), len(m.Place))
	}
	if n := len(m.encode()); n > MaxPacket {
		t.Errorf("a list takes %d bytes", n)
	}
	if n := len(message{Kind: kindPong, Nonce: math.MaxUint64, Ack: math.MaxUint64, Link: claimFar, Place: somePlace()}.encode()); n > 120 {
		t.Errorf("a pong takes %d bytes", n)
	}
}

func TestMalformedMessagesAreRefused(t *testing.T) {
	tags, known := someRecords()
	bad := map[string][]byte{
		"empty":              {},
		"no msgpack":         {0xc1},
		"text":               codec.MustMarshal("hello"),
		"no kind":            message{Nonce: 1}.encode(),
		"unknown kind":       message{Kind: 7, Nonce: 1}.encode(),
		"no nonce":           message{Kind: kindPing}.encode(),
		"unknown link":       message{Kind: kindPing, Nonce: 1, Link: 4}.encode(),
		"short bearings":     message{Kind: kindPing, Nonce: 1, Place: somePlace()[1:]}.encode(),
		"too many bearings":  message{Kind: kindPing, Nonce: 1, Place: make([]byte, (maxLandmarks+1)*bearingLength)}.encode(),
		"bearings twice":     message{Kind: kindPing, Nonce: 1, Place: append(somePlace()[:4], somePlace()[:4]...)}.encode(),
		"half a record":      message{Kind: kindList, Tags: tags, Known: known[1:]}.encode(),
		"half a landmark":    message{Kind: kindList, Tags: tags[1:], Known: known[:20]}.encode(),
		"landmarks unsorted": message{Kind: kindList, Tags: []byte{0, 9, 0, 7}, Known: known}.encode(),
		"too many landmarks": message{Kind: kindList, Tags: make([]byte, 2*maxLandmarks+2)}.encode(),
		"too many records":   message{Kind: kindList, Known: make([]byte, (maxPlaces+1)*recordLength(nil))}.encode(),
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
		if n := len(talk.core.links.list); n > maxLinks(talk.core.cfg) {
			t.Fatalf("%d links", n)
		}
		for _, x := range talk.core.Neighbours() {
			if x.RTT < 0 || x.RTT > maxRTT {
				t.Fatalf("impossible neighbour %+v", x)
			}
		}
		for i := range 7 {
			if at, ok := talk.core.Coordinate(testID(i)); ok && !(at.flat(Coordinate{}) < 100) {
				t.Fatalf("node %d is at %v", i, at)
			}
		}
	})
}
