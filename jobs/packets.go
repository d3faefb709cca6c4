package jobs

import (
	"errors"
	"fmt"

	"zorilla/flood"
	"zorilla/internal/codec"
	"zorilla/vicinity"
)

// CheckAdvertisement says whether a flood's payload is an advertisement that
// its origin has signed, and signed just now: else it is flood.ErrLate.
func (s *Service) CheckAdvertisement(origin vicinity.ID, payload []byte) error {
	ad, err := decodeAdvertisement(payload, func(from vicinity.ID, msg, sig []byte) error {
		return s.cfg.Verify(SignatureDomain, from, msg, sig)
	})
	switch {
	case err != nil:
		return err
	case ad.Origin() != origin:
		return codec.ErrMalformed
	case !s.clocks.fresh(s.now(), origin, ad.Signed):
		s.tooLate(ad)
		return flood.ErrLate
	}
	return nil
}

// Advertised takes a flooded advertisement that CheckAdvertisement has
// accepted. It does not wait.
func (s *Service) Advertised(m flood.Message) {
	ad, err := decodeAdvertisement(m.Payload, func(vicinity.ID, []byte, []byte) error { return nil })
	if err != nil || ad.Origin() == s.self.ID {
		return
	}
	s.overlay.Learn(ad.Origin(), ad.Addrs)
	s.tryPost(func() { s.core.advertised(s.now(), ad, m) })
}

// tryPost is post for the overlay's goroutines: what does not fit is lost, as
// packets may be; it reports whether it fits.
func (s *Service) tryPost(f func()) bool {
	select {
	case s.inbox <- f:
		return true
	default:
		return false
	}
}

// sendPacket signs a packet and sends it.
func (s *Service) sendPacket(to vicinity.ID, p packet) {
	p.To = to
	msg := codec.MustMarshal(p)
	s.overlay.Send(to, append(s.cfg.Sign(PacketDomain, msg), msg...))
}

// Receive takes a packet of another node's jobs. It does not wait.
func (s *Service) Receive(from vicinity.ID, payload []byte) {
	p, err := decodePacket(payload, func(msg, sig []byte) error {
		if err := s.cfg.Verify(PacketDomain, from, msg, sig); err != nil {
			return errors.Join(errForged, err)
		}
		return nil
	})
	if err == nil && p.To != s.self.ID {
		err = errForged // meant for another node
	}
	if err != nil {
		s.mu.Lock()
		if errors.Is(err, errForged) {
			s.counts.Forged++
		} else {
			s.counts.Malformed++
		}
		s.mu.Unlock()
		return
	}
	s.tryPost(func() { s.core.received(s.now(), from, p) })
}

// errForged: the packet is not by the node that it seems to come from, or not
// for this one.
var errForged = errors.New("forged packet")

// packet is what jobs send as single packets: an answer to an advertisement,
// or word to a node that its offer is not needed. It travels signed by its
// sender.
type packet struct {
	To     vicinity.ID `json:"t"`
	Answer *Answer     `json:"a,omitempty"`
	Yield  ID          `json:"y,omitempty"`
	// Forget tells with Yield that the job looks for nobody any more: its
	// advertisement need not be kept.
	Forget bool `json:"e,omitempty"`
	// Signed is when a Yield was, by the clock of Advertisement.Signed.
	Signed int64 `json:"s,omitempty"`
}

// PacketDomain separates signatures of packets from all others.
const PacketDomain = "zorilla jobs packet 2"

// decodePacket reads a packet: signature, then the message, in which exactly
// one of Answer and Yield is set. verify checks the signature; its error is
// returned as it is.
func decodePacket(b []byte, verify func(msg, sig []byte) error) (packet, error) {
	var p packet
	if len(b) < signatureLen {
		return p, fmt.Errorf("packet of %d bytes: %w", len(b), codec.ErrMalformed)
	}
	sig, msg := b[:signatureLen], b[signatureLen:]
	if err := codec.Unmarshal(msg, &p); err != nil {
		return p, err
	}
	bad := !p.To.Valid()
	if p.Answer != nil {
		if err := p.Answer.check(); err != nil {
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
