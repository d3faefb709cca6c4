package vicinity

import (
	"errors"
	"fmt"
	"time"

	"zorilla/internal/codec"
)

const (
	// MaxPacket is the longest payload that Send is given and Receive takes.
	MaxPacket = 1200

	listLength = 10 // names in a list
	maxList    = 20 // names accepted in a list

	minRTT = time.Microsecond
	maxRTT = 10 * time.Second
)

// kind tells the messages apart; the values are part of the protocol.
type kind uint8

const (
	kindPing kind = iota + 1 // are you there? with the link's state
	kindPong                 // answer to ping
	kindAck                  // answer to a pong that asks for one
	kindSwap                 // a list, asking for one
	kindList                 // answer to swap
	kindDrop                 // the sender does not keep a link with you
)

// claim is what an end says of a link; the values are part of the protocol.
type claim uint8

const (
	claimNone claim = iota // no link
	claimHeld              // kept for the other's sake
	claimNear              // wanted, as one of the nearest
	claimFar               // wanted, as a random long link
)

func (c claim) wants() bool { return c >= claimNear }

type message struct {
	Kind  kind    `json:"k"`
	Nonce uint64  `json:"n,omitempty"`
	Ack   uint64  `json:"a,omitempty"` // pong: nonce to send back in an ack
	Link  claim   `json:"l,omitempty"` // ping, pong
	Place []byte  `json:"x,omitempty"` // the sender's bearings; not in ack and drop
	Names []named `json:"p,omitempty"` // swap, list: the sender's nearest
	Tags  []byte  `json:"t,omitempty"` // swap, list: the landmarks of Known
	Known []byte  `json:"q,omitempty"` // swap, list: bearings of some others
}

// named is a node in a list, with its round trip to the list's sender.
type named struct {
	ID  ID     `json:"i"`
	RTT uint32 `json:"r"` // microseconds
}

var errMessage = errors.New("malformed vicinity message")

func (m message) encode() []byte { return codec.MustMarshal(m) }

// decode refuses what is not a well-formed message of a known kind, so that
// nobody else has to look again.
func decode(b []byte) (message, error) {
	if len(b) > MaxPacket {
		return message{}, fmt.Errorf("%w: %d bytes", errMessage, len(b))
	}
	var m message
	if err := codec.Unmarshal(b, &m); err != nil {
		return message{}, fmt.Errorf("%w: %w", errMessage, err)
	}
	if m.Kind < kindPing || m.Kind > kindDrop {
		return message{}, fmt.Errorf("%w: kind %d", errMessage, m.Kind)
	}
	if m.Link > claimFar {
		return message{}, fmt.Errorf("%w: link %d", errMessage, m.Link)
	}
	if (m.Kind == kindPing || m.Kind == kindPong || m.Kind == kindAck) && m.Nonce == 0 {
		return message{}, fmt.Errorf("%w: no nonce", errMessage)
	}
	if _, ok := bearingsFromWire(m.Place); !ok {
		return message{}, fmt.Errorf("%w: impossible bearings", errMessage)
	}
	if len(m.Names) > maxList {
		return message{}, fmt.Errorf("%w: %d names", errMessage, len(m.Names))
	}
	if !m.validRecords() {
		return message{}, fmt.Errorf("%w: records of %d bytes for %d of landmarks", errMessage, len(m.Known), len(m.Tags))
	}
	for _, n := range m.Names {
		if !n.ID.Valid() || time.Duration(n.RTT)*time.Microsecond > maxRTT {
			return message{}, fmt.Errorf("%w: impossible entry", errMessage)
		}
	}
	return m, nil
}
