// Package uplink bounds how many bytes a node sends to other nodes in a second, and
// shares them out fairly: the node that was sent least is next, however much each of
// them asks for.
//
// Where there is a limit only a few files are sent at a time, so that each of them has
// enough of it not to be taken for broken by who receives; the others wait before they
// begin. Streams have a place of their own, which they take for a moment each.
package uplink

import (
	"context"
	"io"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// Least is the lowest limit, in bytes per second. With it, and so few at a time, a file
	// gets 13 kB/s, which is more than what is taken for broken.
	Least = 64 << 10
	// minPlaces and maxPlaces bound how many files are sent at a time where there is a
	// limit; between them each has share bytes per second.
	minPlaces, maxPlaces = 4, 32
	share                = 1 << 20

	// piece is what is sent at once.
	piece = 16 << 10
	// burst is for how long nothing may have been sent that is made good for.
	burst = 20 * time.Millisecond
	// stillEvery is how often is told that somebody still waits.
	stillEvery = 5 * time.Second
	// maxKnown bounds of how many is remembered what they were sent.
	maxKnown = 1024
)

// Uplink is what a node has to send to others with. Its methods may be called from any
// goroutine. Nil has no limit.
type Uplink struct {
	self string // what it sends to itself does not count

	tokens *rate.Limiter

	mu             sync.Mutex // guards what follows
	limit          int64      // bytes per second; 0 = none
	files, streams queue
	bytes          int64 // sent, in all
}

// queue is who waits for one of some places.
type queue struct {
	taken   int
	waiting []*Turn          // in the order in which they came
	sent    map[string]int64 // bytes, to whom
	now     int64            // what whoever was next last had been sent by then
}

// New returns an Uplink of a node, without a limit.
func New(self string) *Uplink {
	return &Uplink{self: self, tokens: rate.NewLimiter(rate.Inf, piece),
		files: queue{sent: map[string]int64{}}, streams: queue{sent: map[string]int64{}}}
}

// Limit sets how many bytes are sent in a second, from now on; 0 = no limit. It is Least
// at the lowest.
func (u *Uplink) Limit(perSecond int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.limit = perSecond
	if perSecond == 0 {
		u.tokens.SetLimit(rate.Inf)
	} else {
		u.limit = max(perSecond, Least)
		u.tokens.SetBurst(max(piece, int(min(u.limit, 1<<32)*int64(burst)/int64(time.Second))))
		u.tokens.SetLimit(rate.Limit(u.limit))
	}
	u.admit()
}

// Stats is what an Uplink tells of itself.
type Stats struct {
	Limit   int64 // bytes per second; 0 = none
	Sent    int64 // bytes, since it was made
	Waiting int   // for their turn, now
}

// Stats returns it.
func (u *Uplink) Stats() Stats {
	u.mu.Lock()
	defer u.mu.Unlock()
	return Stats{u.limit, u.bytes, len(u.files.waiting) + len(u.streams.waiting)}
}

// Turn is the right to send to somebody. It is used by one goroutine.
type Turn struct {
	u         *Uplink // nil = nothing is bounded, nor counted
	q         *queue
	to        string
	want, got int64
	place     bool          // it takes one
	come      chan struct{} // closed when it has begun
}

// Begin waits until it is the turn of a node that is to be sent a file of about so many
// bytes. Still, unless it is nil, is called every few seconds meanwhile. The caller ends
// the turn.
func (u *Uplink) Begin(ctx context.Context, to string, size int, still func()) (*Turn, error) {
	if u == nil {
		return &Turn{}, nil
	}
	return u.begin(ctx, &u.files, to, size, still)
}

func (u *Uplink) begin(ctx context.Context, q *queue, to string, size int, still func()) (*Turn, error) {
	if to == u.self {
		return &Turn{}, nil
	}
	t := &Turn{u: u, q: q, to: to, want: int64(size), come: make(chan struct{})}
	u.mu.Lock()
	q.waiting = append(q.waiting, t)
	u.admit()
	u.mu.Unlock()
	select {
	case <-t.come: // most often
		return t, nil
	default:
	}
	tick := time.NewTicker(stillEvery)
	defer tick.Stop()
	for {
		select {
		case <-t.come:
			return t, nil
		case <-tick.C:
			if still != nil {
				still()
			}
		case <-ctx.Done():
			u.giveUp(t)
			return nil, context.Cause(ctx)
		}
	}
}

// giveUp ends a turn that may not have begun.
func (u *Uplink) giveUp(t *Turn) {
	u.mu.Lock()
	i := slices.Index(t.q.waiting, t)
	if i >= 0 {
		t.q.waiting = slices.Delete(t.q.waiting, i, i+1)
	}
	u.mu.Unlock()
	if i < 0 {
		t.End()
	}
}

// admit lets those begin whose turn it is.
func (u *Uplink) admit() {
	u.files.admit(int(min(max(u.limit/share, minPlaces), maxPlaces)), u.limit > 0)
	u.streams.admit(1, u.limit > 0)
}

// admit gives the places that are free to those who were sent least, or lets all begin if
// there is no limit.
func (q *queue) admit(places int, limited bool) {
	for len(q.waiting) > 0 && (!limited || q.taken < places) {
		next := 0
		for i, t := range q.waiting {
			if q.had(t.to) < q.had(q.waiting[next].to) {
				next = i
			}
		}
		t := q.waiting[next]
		q.waiting = slices.Delete(q.waiting, next, next+1)
		if limited {
			t.place = true
			q.taken++
			q.now = q.had(t.to)
			q.sent[t.to] = q.now + t.want
			q.forget()
		}
		close(t.come)
	}
}

// had is what somebody was sent. Who has not asked for long does not get it all now.
func (q *queue) had(to string) int64 { return max(q.sent[to], q.now) }

// forget bounds what is remembered.
func (q *queue) forget() {
	if len(q.sent) <= maxKnown {
		return
	}
	for to, n := range q.sent {
		if n <= q.now {
			delete(q.sent, to)
		}
	}
	if len(q.sent) > maxKnown {
		clear(q.sent)
	}
}

// End lets others have the turn.
func (t *Turn) End() {
	if t.u == nil {
		return
	}
	t.u.mu.Lock()
	defer t.u.mu.Unlock()
	t.u.bytes += t.got
	if t.place {
		t.q.taken--
		if n, ok := t.q.sent[t.to]; ok { // want was counted
			t.q.sent[t.to] = n + t.got - t.want
		}
	}
	t.u.admit()
}

// Write writes to w as fast as is allowed.
func (t *Turn) Write(ctx context.Context, w io.Writer, b []byte) (n int, err error) {
	for len(b) > 0 && err == nil {
		part := b[:min(len(b), piece)]
		if !t.place {
			part = b
		}
		if err = t.acquire(ctx, len(part)); err != nil {
			break
		}
		var wrote int
		if wrote, err = w.Write(part); err == nil && wrote < len(part) {
			err = io.ErrShortWrite
		}
		n, b = n+wrote, b[wrote:]
	}
	return n, err
}

// acquire waits until so many bytes may be sent, and counts them.
func (t *Turn) acquire(ctx context.Context, n int) error {
	t.got += int64(n)
	for n > 0 && t.place {
		part := min(n, piece)
		if err := t.u.tokens.WaitN(ctx, part); err != nil {
			return err
		}
		n -= part
	}
	return nil
}

// Writer returns a writer of a stream: it has a turn for each part that is written. Who
// does not read keeps nobody waiting.
func (u *Uplink) Writer(ctx context.Context, to string, w io.Writer) io.Writer {
	if u == nil {
		return w
	}
	return &stream{u, ctx, to, w}
}

type stream struct {
	u   *Uplink
	ctx context.Context
	to  string
	w   io.Writer
}

// streamPart is what a stream sends in one turn: less than a chunk, so that nobody waits
// long for it to be over.
const streamPart = 64 << 10

// Write implements io.Writer.
func (s *stream) Write(b []byte) (n int, err error) {
	for len(b) > 0 && err == nil {
		part := b[:min(len(b), streamPart)]
		if err = s.wait(len(part)); err != nil {
			break
		}
		var wrote int
		if wrote, err = s.w.Write(part); err == nil && wrote < len(part) {
			err = io.ErrShortWrite
		}
		n, b = n+wrote, b[wrote:]
	}
	return n, err
}

// wait returns when so many bytes may be sent.
func (s *stream) wait(n int) error {
	t, err := s.u.begin(s.ctx, &s.u.streams, s.to, n, nil)
	if err != nil {
		return err
	}
	defer t.End()
	return t.acquire(s.ctx, n)
}
