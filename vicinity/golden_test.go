package vicinity

import (
	"encoding/binary"
	"testing"

	"zorilla/internal/golden"
)

// told is a message with the bearings in it unpacked: round trips in
// nanoseconds, by the tags of landmarks.
type told struct {
	Message message
	Place   map[uint16]int64
	Known   []knownNode
}

type knownNode struct {
	Node  ID
	Age   int // seconds
	Place map[uint16]int64
}

func byTag(b bearings) map[uint16]int64 {
	m := map[uint16]int64{}
	for _, x := range b {
		m[x.tag] = int64(x.rtt)
	}
	return m
}

// tell decodes a message and unpacks it as Core does.
func tell(b []byte) (any, error) {
	m, err := decode(b)
	if err != nil {
		return nil, err
	}
	at, _ := bearingsFromWire(m.Place)
	out := told{Message: m, Place: byTag(at)}
	for r := m.Known; len(r) > 0; r = r[recordLength(m.Tags):] {
		k := knownNode{Node: unpackID(r[:packedID]), Age: int(binary.BigEndian.Uint16(r[packedID:])), Place: map[uint16]int64{}}
		for i := 0; i < len(m.Tags); i += 2 {
			if code := binary.BigEndian.Uint16(r[packedID+2+i:]); code != noBearing {
				k.Place[binary.BigEndian.Uint16(m.Tags[i:])] = int64(decodeRTT(code))
			}
		}
		out.Known = append(out.Known, k)
	}
	return out, nil
}

// TestGoldenMessages reads what earlier versions sent. What today's bytes are is
// pinned by TestGoldenBytes.
func TestGoldenMessages(t *testing.T) {
	messages := map[string]golden.Message{}
	for i, name := range []string{"ping", "pong", "ack", "swap", "list-places", "list-names", "drop"} {
		messages[name] = golden.Message{Bytes: someMessages()[i].encode(), Decode: tell, Varies: true}
	}
	golden.Messages(t, "messages", messages)
}
