package wire

import (
	"fmt"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/vicinity"
)

// Packet is what jobs send as single packets: an answer to an advertisement,
// or word to a node that its offer is not needed. It travels signed by its
// sender.
type Packet struct {
	To     vicinity.ID `json:"t"`
	Answer *Answer     `json:"a,omitempty"`
	Yield  jobs.ID     `json:"y,omitempty"`
	// Forget tells with Yield that the job looks for nobody any more: its
	// advertisement need not be kept.
	Forget bool `json:"e,omitempty"`
	// Key is of the hold that a Yield gives back; 0 = whichever there is.
	Key uint64 `json:"k,omitempty"`
	// Signed is when a Yield was, by the clock of Advertisement.Signed.
	Signed int64 `json:"s,omitempty"`
}

// PacketDomain separates signatures of packets from all others.
const PacketDomain = "zorilla jobs packet 2"

// DecodePacket reads a packet: signature, then the message, in which exactly
// one of Answer and Yield is set. verify checks the signature; its error is
// returned as it is.
func DecodePacket(b []byte, verify func(msg, sig []byte) error) (Packet, error) {
	var p Packet
	if len(b) < SignatureLen {
		return p, fmt.Errorf("packet of %d bytes: %w", len(b), codec.ErrMalformed)
	}
	sig, msg := b[:SignatureLen], b[SignatureLen:]
	if err := codec.Unmarshal(msg, &p); err != nil {
		return p, err
	}
	bad := !p.To.Valid()
	if p.Answer != nil {
		if err := p.Answer.Check(); err != nil {
			return p, err
		}
		bad = bad || p.Yield != ""
	} else {
		bad = bad || !p.Yield.Valid()
	}
	if bad {
		return p, fmt.Errorf("packet: %w", codec.ErrMalformed)
	}
	return p, verify(msg, sig)
}
