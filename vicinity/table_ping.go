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
)

// Errors of Ping.
var (
	ErrUnknown  = errors.New("no such member")
	ErrNoAnswer = errors.New("no answer")
	ErrBusy     = errors.New("too many pings at a time: try again later")
)

// Sure returns the round trip to a member that was measured more than once.
func (t *Table) Sure(id ID) (time.Duration, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.core.Sure(id)
}

// Fresh returns the round trip to a member that was measured more than once in a time up to
// now; see Core.Fresh.
func (t *Table) Fresh(id ID, within time.Duration) (time.Duration, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.core.Fresh(time.Now(), id, within)
}

// Probe asks for measurements of a member soon, at most once a second. It
// returns nothing: Sure reports when the answers are there. Who is no other member
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
	pause, err := t.reserve(id)
	if err == nil {
		err = wait(ctx, pause)
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

// reserve returns how long a caller has to wait before it may ping a member, and
// keeps that time for it.
func (t *Table) reserve(id ID) (time.Duration, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if id == t.cfg.Self || !t.roster.Has(id) {
		return 0, ErrUnknown
	}
	now := time.Now()
	for other, at := range t.nextPing {
		if at.Before(now) {
			delete(t.nextPing, other)
		}
	}
	at := now
	if t.nextPing[id].After(now) {
		at = t.nextPing[id]
	}
	if at.Sub(now) > pingQueue {
		return 0, ErrBusy
	}
	t.nextPing[id] = at.Add(pingPause)
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

// notifyLocked passes on what pings have brought.
func (t *Table) notifyLocked() {
	for _, a := range t.core.Answers() {
		if ch := t.asked[a.Nonce]; ch != nil {
			ch <- a.RTT // there is room: a nonce is answered once
			delete(t.asked, a.Nonce)
		}
	}
}
