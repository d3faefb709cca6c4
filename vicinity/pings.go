package vicinity

import (
	"slices"
	"time"
)

const (
	maxPending = 1024            // answers awaited
	ackEvery   = 5 * time.Second // an answerer wants a sample of its own this often
)

// pending is a ping or pong whose answer is awaited.
type pending struct {
	nonce  uint64
	id     ID
	sent   time.Duration
	answer kind // pong or ack
	linked bool // a link was claimed with it
	ask    bool // a caller waits for the answer
}

// Answer is a round trip that was asked for.
type Answer struct {
	Nonce uint64
	RTT   time.Duration
}

// pings sends them and knows which answers are awaited.
type pings struct {
	*local
	where   *coordinates
	pending []pending // oldest first
	answers []Answer  // that Core.Answers has yet to return
}

// ping asks a peer for an answer. It tells the other end what is wanted of the
// link, and where this node is.
func (s *pings) ping(p *peer) {
	p.asked = s.at
	s.send(p.id, message{Kind: kindPing, Nonce: s.expect(p, kindPong), Link: p.claim(), Place: s.where.bearings().wire()})
}

// pong answers a ping. It wants an answer itself while the peer is not measured
// well.
func (s *pings) pong(p *peer, ping message) {
	pong := message{Kind: kindPong, Nonce: ping.Nonce, Link: p.claim(), Place: s.where.bearings().wire()}
	if p.count < freshSample || s.at-p.sampled > ackEvery || p.doubtful() {
		pong.Ack = s.expect(p, kindAck)
	}
	s.send(p.id, pong)
}

// ask is ping for a caller who waits for the answer with the nonce.
func (s *pings) ask(p *peer) (nonce uint64) {
	s.ping(p)
	last := &s.pending[len(s.pending)-1]
	last.ask = true
	return last.nonce
}

// expect returns a nonce for a question to a peer.
func (s *pings) expect(p *peer, answer kind) uint64 {
	for len(s.pending) > 0 && (len(s.pending) >= maxPending || s.at-s.pending[0].sent > maxRTT) {
		s.pending = slices.Delete(s.pending, 0, 1)
		s.stats.Unanswered++
	}
	nonce := max(1, s.cfg.Rand.Uint64())
	s.pending = append(s.pending, pending{nonce: nonce, id: p.id, sent: s.at, answer: answer, linked: p.link != nil})
	return nonce
}

// answered finds what a pong or an ack of a peer answers.
func (s *pings) answered(p *peer, m message) (w pending, ok bool) {
	i := slices.IndexFunc(s.pending, func(w pending) bool { return w.nonce == m.Nonce && w.id == p.id && w.answer == m.Kind })
	if i < 0 {
		return pending{}, false
	}
	w = s.pending[i]
	s.pending = slices.Delete(s.pending, i, i+1)
	if rtt := s.at - w.sent; w.ask && rtt <= maxRTT {
		s.answers = append(s.answers, Answer{Nonce: w.nonce, RTT: max(rtt, minRTT)})
	}
	return w, true
}
