package wire

import (
	"fmt"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/vicinity"
)

// Packet is what jobs send as single packets: an answer to an advertisement,
// or word to a node that its offer is not needed, or is being granted, or that a job would
// take what is held there for others. It travels signed by its sender.
type Packet struct {
	To     vicinity.ID `json:"t"`
	Answer *Answer     `json:"a,omitempty"`
	// EarlyKey is of a node that offers: small requests to it may be packets, see node/fastrpc.
	EarlyKey []byte  `json:"x,omitempty"`
	Yield    jobs.ID `json:"y,omitempty"`
	// Recall is a job that would take what is held for jobs after it.
	Recall jobs.ID `json:"l,omitempty"`
	// Grant is a job of which Workers of the hold with the Key are granted; the grant comes
	// over a connection, which may have to be made first.
	Grant   jobs.ID `json:"g,omitempty"`
	Workers int     `json:"w,omitempty"`
	// Held is the batch that what is granted is held for, as of Grant.Held.
	Held jobs.ID `json:"h,omitempty"`
	// Forget tells with Yield that the job looks for nobody any more: its
	// advertisement need not be kept.
	Forget bool `json:"e,omitempty"`
	// Key is of the hold that is granted, or that a Yield gives back; 0 = whichever there is.
	Key uint64 `json:"k,omitempty"`
	// Signed is when the others than an Answer were, by the clock of Advertisement.Signed.
	Signed int64 `json:"s,omitempty"`
}

// PacketDomain separates signatures of packets from all others.
const PacketDomain = "zorilla jobs packet 2"

// DecodePacket reads a packet: signature, then the message, in which exactly
// one of Answer, Grant, Recall and Yield is set. verify checks the signature; its error is
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
	switch {
	case p.Answer != nil:
		if err := p.Answer.Check(); err != nil {
			return p, err
		}
		bad = bad || p.Yield != "" || p.Recall != "" || p.Grant != ""
	case p.Grant != "":
		bad = bad || !p.Grant.Valid() || p.Held != "" && !p.Held.Valid() || p.Key == 0 ||
			p.Workers < 1 || p.Workers > jobs.MaxRanks || p.Yield != "" || p.Recall != ""
	case p.Recall != "":
		bad = bad || !p.Recall.Valid() || p.Yield != ""
	default:
		bad = bad || !p.Yield.Valid()
	}
	if bad {
		return p, fmt.Errorf("packet: %w", codec.ErrMalformed)
	}
	return p, verify(msg, sig)
}
