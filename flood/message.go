package flood

import (
	"crypto/sha256"
	"fmt"
	"time"

	"zorilla/internal/codec"
	"zorilla/vicinity"
)

// Limits of what travels.
const (
	MaxPayload = 1000 // bytes
	MaxPacket  = 1350 // bytes, the whole encoded message
	MaxRadius  = 32   // links
	MaxLife    = time.Hour
)

// MessageID names a message. It is random.
type MessageID [8]byte

// Message is a flooded message as it arrives.
type Message struct {
	ID      MessageID
	Origin  vicinity.ID
	TTL     uint8         // hops left, counting the one just made; from 1
	Hops    uint8         // links travelled; from 1
	LastHop vicinity.ID   // who sent this copy
	Life    time.Duration // how much longer the message is of use; whole milliseconds
	Payload []byte
	// Onward is how many neighbours of this node the message can go on to: it
	// has been sent to them if TTL is more than 1. Only set on delivery.
	Onward int
	// Again tells that its origin has sent it once more, since it has heard nothing of this
	// node; on delivery, that it was delivered before.
	Again bool

	cut bool // it came with more TTL than there is
}

// Flood is a flood that this node has started. It is a value: keep it to
// extend the flood.
type Flood struct {
	Copies  int // sent by this node; 0 means that there are no neighbours
	Size    int // bytes of a copy
	message Message
	to      []vicinity.ID
	until   time.Time
}

// packet is the layout in doc.go. Its integers are wide because the decoder
// cuts silently what does not fit.
type packet struct {
	ID      []byte      `json:"id"`
	Origin  vicinity.ID `json:"o"`
	TTL     uint64      `json:"t"`
	Hops    uint64      `json:"h"`
	LastHop vicinity.ID `json:"l"`
	Life    uint64      `json:"ms"`
	Payload []byte      `json:"p"`
	Again   bool        `json:"a,omitempty"` // see Message; only of the origin itself
}

func encode(m Message) []byte {
	return codec.MustMarshal(packet{
		ID: m.ID[:], Origin: m.Origin, TTL: uint64(m.TTL), Hops: uint64(m.Hops),
		Again: m.Again, LastHop: m.LastHop, Life: uint64(m.Life.Milliseconds()), Payload: m.Payload,
	})
}

// decode reads and bounds a packet. A life of 0 is well-formed: the message
// has expired.
func decode(b []byte) (Message, error) {
	var m Message
	if len(b) > MaxPacket {
		return m, fmt.Errorf("flood packet of more than %d bytes: %w", MaxPacket, codec.ErrMalformed)
	}
	var p packet
	if err := codec.Unmarshal(b, &p); err != nil {
		return m, err
	}
	bad := func(format string, args ...any) (Message, error) {
		return Message{}, fmt.Errorf("flood packet: %s: %w", fmt.Sprintf(format, args...), codec.ErrMalformed)
	}
	switch {
	case len(p.ID) != len(m.ID):
		return bad("ID of %d bytes", len(p.ID))
	case !p.Origin.Valid():
		return bad("origin %.40q is not a node ID", p.Origin)
	case !p.LastHop.Valid():
		return bad("last hop %.40q is not a node ID", p.LastHop)
	case p.Hops < 1 || p.Hops > MaxRadius:
		return bad("%d hops, want 1 to %d", p.Hops, MaxRadius)
	case p.TTL < 1 || p.TTL > 255:
		return bad("TTL %d, want 1 to 255", p.TTL)
	case len(p.Payload) > MaxPayload:
		return bad("payload of %d bytes, at most %d", len(p.Payload), MaxPayload)
	}
	copy(m.ID[:], p.ID)
	m.Origin, m.LastHop, m.Payload = p.Origin, p.LastHop, p.Payload
	m.Hops, m.Again = uint8(p.Hops), p.Again && p.Origin == p.LastHop
	m.TTL = uint8(min(p.TTL, MaxRadius+1-p.Hops))
	m.cut = p.TTL > MaxRadius
	m.Life = time.Duration(min(p.Life, uint64(MaxLife.Milliseconds()))) * time.Millisecond
	return m, nil
}

// key is what the seen-set remembers: all that the origin alone decides.
func (m *Message) key() seenKey {
	h := sha256.New()
	h.Write(m.ID[:])
	h.Write([]byte(m.Origin)) // of fixed length
	h.Write(m.Payload)
	var sum [sha256.Size]byte
	return seenKey(h.Sum(sum[:0])[:len(seenKey{})])
}
