package agent

import (
	"errors"
	"time"

	"zorilla/flood"
	"zorilla/internal/codec"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// CheckAdvertisement says whether a flood's payload is an advertisement that
// its origin has signed, and signed just now: else it is flood.ErrLate.
func (s *Service) CheckAdvertisement(origin vicinity.ID, payload []byte) error {
	ad, err := wire.DecodeAdvertisement(payload, func(from vicinity.ID, msg, sig []byte) error {
		return s.cfg.Verify(wire.SignatureDomain, from, msg, sig)
	})
	switch {
	case err != nil:
		return err
	case ad.Origin() != origin:
		return codec.ErrMalformed
	case !s.clocks.fresh(time.Now(), origin, ad.Signed):
		s.tooLate(ad)
		return flood.ErrLate
	}
	return nil
}

// Advertised takes a flooded advertisement that CheckAdvertisement has
// accepted. It does not wait.
func (s *Service) Advertised(m flood.Message) {
	ad, err := wire.DecodeAdvertisement(m.Payload, func(vicinity.ID, []byte, []byte) error { return nil })
	if err != nil || ad.Origin() == s.self.ID {
		return
	}
	s.overlay.Learn(ad.Origin(), ad.Addrs)
	s.loop.TryPost(func() { s.core.Advertised(time.Now(), ad, m) })
}

// sendPacket signs a packet and sends it. Who is offered workers may have a grant soon.
func (s *Service) sendPacket(to vicinity.ID, p wire.Packet) {
	p.To = to
	if s.cfg.Early != nil && p.Answer != nil && p.Answer.Workers > 0 {
		p.EarlyKey = s.cfg.Early.Key()
	}
	msg := codec.MustMarshal(p)
	s.overlay.Send(to, append(s.cfg.Sign(wire.PacketDomain, msg), msg...))
}

// Receive takes a packet of another node's jobs. It does not wait.
func (s *Service) Receive(from vicinity.ID, payload []byte) {
	p, err := wire.DecodePacket(payload, func(msg, sig []byte) error {
		if err := s.cfg.Verify(wire.PacketDomain, from, msg, sig); err != nil {
			return errors.Join(errForged, err)
		}
		return nil
	})
	if err == nil && p.To != s.self.ID {
		err = errForged // meant for another node
	}
	if err != nil {
		if errors.Is(err, errForged) {
			s.dropped.Forged()
		} else {
			s.dropped.Malformed()
		}
		return
	}
	if s.cfg.Early != nil && len(p.EarlyKey) > 0 {
		s.cfg.Early.Learn(from, p.EarlyKey)
	}
	s.loop.TryPost(func() { s.core.Received(time.Now(), from, p) })
}

// errForged: the packet is not by the node that it seems to come from, or not
// for this one.
var errForged = errors.New("forged packet")
