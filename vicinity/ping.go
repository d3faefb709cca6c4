package vicinity

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	pingTimeout = 3 * time.Second
	pingPause   = 200 * time.Millisecond // between pings to one member; it drops more than maxBurst a second
	pingQueue   = 10 * time.Second       // callers do not wait longer for their turn
	probePause  = time.Second            // between probes of one member
	sureSamples = 2
)

// Errors of Ping.
var (
	ErrUnknown  = errors.New("no such member")
	ErrNoAnswer = errors.New("no answer")
	ErrBusy     = errors.New("too many pings at a time: try again later")
)

// Answer is a round trip that was asked for.
type Answer struct {
	Nonce uint64
	RTT   time.Duration
}

// Ask pings a member for a caller who waits; Answers tells what comes of it.
// The nonce is 0 if id is no other member.
func (c *Core) Ask(now time.Time, id ID) (nonce uint64, out []Packet) {
	c.enter(now)
	if id == c.cfg.Self || !c.cfg.Roster.Has(id) {
		return 0, nil
	}
	c.ping(c.peer(id))
	last := &c.pending[len(c.pending)-1]
	last.ask = true
	return last.nonce, c.flush()
}

// Answers returns what came of Ask since the last call.
func (c *Core) Answers() []Answer {
	out := c.answers
	c.answers = nil
	return out
}

// Probe pings a member soon to be compared with others, unless it was asked
// within the last second: twice, so that Sure has an answer then.
func (c *Core) Probe(now time.Time, id ID) []Packet {
	c.enter(now)
	if id == c.cfg.Self || !c.cfg.Roster.Has(id) {
		return c.flush()
	}
	if p := c.peer(id); c.at-p.asked >= probePause {
		for range sureSamples {
			c.ping(p)
		}
	}
	return c.flush()
}

// Sure is RTT, but false for a member that was measured only once: one packet in
// a hundred is held up on its way.
func (c *Core) Sure(id ID) (time.Duration, bool) {
	if p := c.known[id]; p == nil || p.count < sureSamples {
		return 0, false
	}
	return c.RTT(id)
}

// Sure returns the round trip to a member that was measured more than once.
func (t *Table) Sure(id ID) (time.Duration, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.core.Sure(id)
}

// Probe asks for measurements of a member soon, at most once a second. It
// returns nothing: Sure tells when the answers are there. Who is no other member
// is not asked.
func (t *Table) Probe(id ID) {
	t.feed(func(now time.Time) []Packet { return t.core.Probe(now, id) })
}

// Ping measures the round trip to another member once, now, while Run runs.
// Its errors wrap ErrUnknown, ErrNoAnswer after 3 s (a single packet may be
// lost on its way: ask again), ErrBusy, or are those of ctx. Pings to one
// member follow each other at 200 ms; who would wait 10 s for that gets
// ErrBusy.
func (t *Table) Ping(ctx context.Context, id ID) (time.Duration, error) {
	turn, err := t.turn(id)
	if err == nil {
		err = wait(ctx, turn)
	}
	if err != nil {
		return 0, fmt.Errorf("ping %s: %w", id.Short(), err)
	}
	answer, forget := t.ask(id)
	if answer == nil {
		return 0, fmt.Errorf("ping %s: %w", id.Short(), ErrUnknown)
	}
	defer forget()
	timer := time.NewTimer(pingTimeout)
	defer timer.Stop()
	select {
	case rtt := <-answer:
		return rtt, nil
	case <-timer.C:
		return 0, fmt.Errorf("ping %s: %w within %v", id.Short(), ErrNoAnswer, pingTimeout)
	case <-ctx.Done():
		return 0, fmt.Errorf("ping %s: %w", id.Short(), ctx.Err())
	}
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// turn returns how long a caller has to wait before it may ping a member.
func (t *Table) turn(id ID) (time.Duration, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if id == t.cfg.Self || !t.roster.Has(id) {
		return 0, ErrUnknown
	}
	now := time.Now()
	for other, at := range t.turns {
		if at.Before(now) {
			delete(t.turns, other)
		}
	}
	at := now
	if t.turns[id].After(now) {
		at = t.turns[id]
	}
	if at.Sub(now) > pingQueue {
		return 0, ErrBusy
	}
	t.turns[id] = at.Add(pingPause)
	return at.Sub(now), nil
}

// ask pings a member. The answer comes through the channel, which is nil if
// there is no such member. The caller must call forget at the end.
func (t *Table) ask(id ID) (answer <-chan time.Duration, forget func()) {
	ch := make(chan time.Duration, 1)
	var nonce uint64
	t.feed(func(now time.Time) []Packet {
		var out []Packet
		if nonce, out = t.core.Ask(now, id); nonce != 0 {
			t.asked[nonce] = ch
		}
		return out
	})
	if nonce == 0 {
		return nil, nil
	}
	return ch, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.asked, nonce)
	}
}

// tellLocked passes on what pings have brought.
func (t *Table) tellLocked() {
	for _, a := range t.core.Answers() {
		if ch := t.asked[a.Nonce]; ch != nil {
			ch <- a.RTT // there is room: a nonce is answered once
			delete(t.asked, a.Nonce)
		}
	}
}
