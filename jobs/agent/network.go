package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"zorilla/flood"
	"zorilla/internal/stall"
	"zorilla/jobs/internal/core"
	"zorilla/jobs/internal/participant"
	"zorilla/jobs/internal/peer"
	"zorilla/jobs/internal/primary"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// perform does what the core wants done; what waits for the network does so in a
// goroutine of its own.
func (s *Service) perform(a core.Action) {
	switch e := a.Effect.(type) {
	case core.DoPacket:
		s.sendPacket(e.To, e.Packet)
	case primary.DoExtend:
		s.overlay.Extend(e.Flood, e.Rim)
	case core.DoConnect:
		s.overlay.Learn(e.To, e.Addrs)
		if s.preconnects.due(time.Now(), e.To) {
			s.loop.Go(func() { connect(s.loop.Stopped, s.peers, e.To) })
		}
	case primary.DoProbe:
		s.overlay.Probe(e.ID)
	case primary.DoMeasure:
		s.loop.Go(func() { s.haveMeasured(a.Job, e) })
	case core.DoFollow:
		s.follow(e)
	case primary.DoGrant:
		s.loop.Go(func() { s.grant(e) })
	case primary.DoStart:
		s.loop.Go(func() {
			s.sendOnce(e.To, peer.PathStart, e.Start.WithAddrs(s.overlay.Member))
		})
	case primary.DoKnock:
		s.loop.Go(func() { s.knock(e) })
	case primary.DoRelease:
		s.loop.Go(func() { s.sendOnce(e.To, peer.PathRelease, e.Release) })
	case primary.DoBook:
		s.loop.Go(func() { s.bookings.order(a.Job, e) })
	case core.DoKeepBooking:
		s.bookings.keep(e)
	case core.DoForgetBooking:
		s.bookings.journal.Delete(e.Name, nil)
	case core.DoBooked:
		s.bookings.answer(e)
	case primary.DoKeep:
		s.loop.Go(func() { s.checkpoints.needed(e.To, &e.Keep) })
	case participant.Effect:
		s.exec.Execute(e)
	default:
		if !s.own.Perform(a) { // what waits for it would do so for ever
			panic(fmt.Sprintf("agent: nobody does %T", e))
		}
	}
}

// around is the network as the core sees it: what is flooded is an advertisement, and
// signed.
type around struct {
	Overlay
	sign  func(domain string, msg []byte) []byte
	speed func(vicinity.ID) vicinity.Speed
}

func (a around) Speed(id vicinity.ID) (s vicinity.Speed) {
	if a.speed != nil {
		s = a.speed(id)
	}
	return s
}

func (a around) Flood(_ time.Time, radius int, ad wire.Advertisement) flood.Flood {
	msg := ad.Packed()
	return a.Overlay.Flood(radius, append(a.sign(wire.SignatureDomain, msg), msg...))
}

func (s *Service) grant(e primary.DoGrant) {
	ctx, cancel := context.WithTimeout(s.loop.Stopped, e.Within)
	defer cancel()
	err := s.peers.Send(ctx, e.To, peer.PathGrant, e.Grant, nil)
	if err == nil || s.loop.Stopped.Err() != nil {
		return
	}
	s.log.Debug().Err(err).Str("job", string(e.Grant.Job)).Str("node", e.To.Short()).Msg("grant")
	s.loop.Post(func() {
		s.core.Update(time.Now(), e.Grant.Job, func(p *primary.Primary) {
			p.GrantFailed(time.Now(), e.To, e.Grant.Ranks, wire.WhyRefused(err))
		})
	})
}

// sendOnce sends a message that need not arrive: a participant asks again for
// a START, and hears with its next report that it is not wanted.
func (s *Service) sendOnce(to vicinity.ID, path string, msg any) {
	ctx, cancel := context.WithTimeout(s.loop.Stopped, wire.GrantTimeout)
	defer cancel()
	if err := s.peers.Send(ctx, to, path, msg, nil); err != nil && s.loop.Stopped.Err() == nil {
		s.log.Debug().Err(err).Str("node", to.Short()).Msg(path)
	}
}

// knock finds out whether a node runs.
func (s *Service) knock(e primary.DoKnock) {
	ctx, cancel := context.WithTimeout(s.loop.Stopped, e.Within)
	defer cancel()
	begun := time.Now()
	how := primary.KnockAnswered
	if s.cfg.Knock == nil {
		how = primary.KnockVoid
	} else if err := s.cfg.Knock(ctx, e.To); err != nil {
		how = missed(err, time.Since(begun), e.Within)
	}
	s.loop.Post(func() { s.core.Signs.Knocked(time.Now(), e, how) })
}

// missed says what a knock that has failed tells. A process that was starved finds its time
// over although the answer may lie in its sockets.
func missed(err error, took, within time.Duration) primary.Knock {
	if errors.Is(err, ErrNoAddress) || took > within+stall.Late {
		return primary.KnockVoid
	}
	return primary.KnockMissed
}
