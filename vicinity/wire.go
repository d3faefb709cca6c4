package vicinity

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
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

// Records of other nodes' bearings are packed, as they are most of a list: the
// tags of the landmarks stand once for all of them, then for each node 17
// bytes of its ID, the age in seconds and, in the tags' order, the round trips.
const (
	packedID  = 17
	noBearing = math.MaxUint16
	maxPlaces = 24 // records accepted in a list
)

const idAlphabet = "abcdefghijklmnopqrstuvwxyz234567"

// appendID packs a valid ID: 26 characters of 5 bits, then 6 bits of zero.
func appendID(b []byte, id ID) []byte {
	var bits, count uint
	for _, c := range []byte(id[1:]) {
		bits, count = bits<<5|uint(strings.IndexByte(idAlphabet, c)), count+5
		if count >= 8 {
			count -= 8
			b = append(b, byte(bits>>count))
		}
	}
	return append(b, byte(bits<<(8-count)))
}

func unpackID(b []byte) ID {
	out := make([]byte, 1, idLength)
	out[0] = 'z'
	var bits, count uint
	for _, x := range b {
		bits, count = bits<<8|uint(x), count+8
		for count >= 5 && len(out) < idLength {
			count -= 5
			out = append(out, idAlphabet[bits>>count&31])
		}
	}
	return ID(out)
}

func recordLength(tags []byte) int { return packedID + 2 + len(tags) }

func (m *message) validRecords() bool {
	if len(m.Known) == 0 {
		return len(m.Tags) <= 2*maxLandmarks
	}
	if len(m.Tags)%2 != 0 || len(m.Tags) > 2*maxLandmarks || len(m.Known)%recordLength(m.Tags) != 0 || len(m.Known) > maxPlaces*recordLength(m.Tags) {
		return false
	}
	for i := 2; i < len(m.Tags); i += 2 {
		if binary.BigEndian.Uint16(m.Tags[i:]) <= binary.BigEndian.Uint16(m.Tags[i-2:]) {
			return false
		}
	}
	return true
}
