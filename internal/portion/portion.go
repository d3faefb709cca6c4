// Package portion bounds what the requests of one sender, and of all senders, take of a
// node: how many there are at a time, the memory for bodies that are read whole, and the
// time that such a body may take. A sender that exceeds its own portion waits or is refused,
// without holding up the others.
package portion

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Limits say what there is.
type Limits struct {
	Requests int           // of one sender, at a time
	Each     int64         // bytes of bodies of one sender, until they have been answered
	All      int64         // bytes of bodies of all senders
	Waiting  int64         // bytes of bodies of one sender that may wait for room
	Ahead    int64         // of one body, that are received before it is read
	Body     int64         // the largest body
	Within   time.Duration // how long a body may wait for room, and then take to come
}

// Counts count requests.
type Counts struct {
	Refused int64 // too many at a time, no room in time, or a body of unknown or too large size
	Late    int64 // the body was not there in time
}

// Portions hold what senders have. Their methods may be called from any goroutine.
type Portions struct {
	limits        Limits
	refused, late atomic.Int64

	mu      sync.Mutex // guards what follows
	all     int64
	senders map[string]*sender
	queue   []*waiter // in the order in which they came
}

// sender is one that has requests here.
type sender struct {
	requests      int
	held, waiting int64
}

// waiter is a body that waits for room.
type waiter struct {
	from  *sender
	bytes int64
	ready chan struct{} // closed when it has room
}

// New returns Portions of which nothing is taken.
func New(l Limits) *Portions { return &Portions{limits: l, senders: map[string]*sender{}} }

// Counts returns the counters.
func (p *Portions) Counts() Counts { return Counts{p.refused.Load(), p.late.Load()} }

// Serve returns a handler that bounds the requests that h answers. from names the sender; h gets a
// request for which from fails, and has to refuse it. A request that is no stream reaches h only if
// the size of its body is known and there is room in memory for it, and its body has to come in time.
func (p *Portions) Serve(h http.Handler, from func(*http.Request) (string, error), stream func(*http.Request) bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, err := from(r)
		if err != nil {
			h.ServeHTTP(w, r)
			return
		}
		s := p.enter(name)
		if s == nil {
			p.refuse(w, http.StatusServiceUnavailable, "too many requests at a time")
			return
		}
		defer p.leave(name, s)
		if r.ContentLength == 0 || stream(r) {
			h.ServeHTTP(w, r)
			return
		}
		switch {
		case r.ContentLength < 0:
			p.refuse(w, http.StatusLengthRequired, "want the length of the body")
			return
		case r.ContentLength > p.limits.Body:
			p.refuse(w, http.StatusRequestEntityTooLarge, "the body is too large")
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), p.limits.Within)
		err = p.acquire(ctx, s, r.ContentLength)
		cancel()
		if err != nil {
			p.refuse(w, http.StatusServiceUnavailable, err.Error())
			return
		}
		defer p.giveBack(s, r.ContentLength)
		// Not every ResponseWriter has deadlines; those of real servers have.
		deadlines := http.NewResponseController(w)
		_ = deadlines.SetReadDeadline(time.Now().Add(p.limits.Within))
		r.Body = &body{ReadCloser: r.Body, p: p, left: r.ContentLength, came: func() { _ = deadlines.SetReadDeadline(time.Time{}) }}
		h.ServeHTTP(w, r)
	})
}

func (p *Portions) refuse(w http.ResponseWriter, status int, text string) {
	p.refused.Add(1)
	http.Error(w, text, status)
}

// enter counts a request; nil = its sender has too many.
func (p *Portions) enter(name string) *sender {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.senders[name]
	if s == nil {
		s = &sender{}
		p.senders[name] = s
	}
	if s.requests >= p.limits.Requests {
		return nil
	}
	s.requests++
	return s
}

func (p *Portions) leave(name string, s *sender) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.requests--; s.requests == 0 {
		delete(p.senders, name)
	}
}

var errRoom = errors.New("no room for the body")

// acquire waits until there is room for a body.
func (p *Portions) acquire(ctx context.Context, s *sender, bytes int64) error {
	w := &waiter{s, bytes, make(chan struct{})}
	if !p.queued(w) {
		return errRoom
	}
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
	}
	if p.unqueued(w) {
		return errRoom
	}
	return nil // it got room at the last moment
}

// queued puts a body into the queue. It reports false if the body would have to wait and its sender
// has too many waiting.
func (p *Portions) queued(w *waiter) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue = append(p.queue, w)
	w.from.waiting += min(w.bytes, p.limits.Ahead)
	p.admitLocked()
	select {
	case <-w.ready:
		return true
	default:
	}
	if w.from.waiting > p.limits.Waiting {
		p.dropLocked(w)
		return false
	}
	return true
}

// unqueued takes a body out of the queue, and reports whether it was there.
func (p *Portions) unqueued(w *waiter) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dropLocked(w)
}

func (p *Portions) dropLocked(w *waiter) bool {
	for i, other := range p.queue {
		if other == w {
			p.queue = append(p.queue[:i], p.queue[i+1:]...)
			w.from.waiting -= min(w.bytes, p.limits.Ahead)
			p.admitLocked() // those behind it may have room
			return true
		}
	}
	return false
}

func (p *Portions) giveBack(s *sender, bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.held -= bytes
	p.all -= bytes
	p.admitLocked()
}

// admitLocked gives bodies room in the order in which they came. A body that waits for the portion
// of its sender is overtaken by those of others, but not by more of the same sender.
func (p *Portions) admitLocked() {
	over := map[*sender]bool{}
	kept := p.queue[:0]
	full := false
	for _, w := range p.queue {
		own := over[w.from] || w.from.held+w.bytes > p.limits.Each
		if over[w.from] = own; !own {
			full = full || p.all+w.bytes > p.limits.All
		}
		if own || full {
			kept = append(kept, w)
			continue
		}
		w.from.held += w.bytes
		w.from.waiting -= min(w.bytes, p.limits.Ahead)
		p.all += w.bytes
		close(w.ready)
	}
	clear(p.queue[len(kept):])
	p.queue = kept
}

// body is that of a request that has room.
type body struct {
	io.ReadCloser
	p    *Portions
	left int64
	came func() // called when all of it has
	over bool
}

// Read implements io.Reader.
func (b *body) Read(buf []byte) (int, error) {
	n, err := b.ReadCloser.Read(buf)
	b.left -= int64(n)
	if b.over || b.left > 0 && err == nil {
		return n, err
	}
	b.over = true
	if b.came(); b.left > 0 && errors.Is(err, os.ErrDeadlineExceeded) {
		b.p.late.Add(1)
	}
	return n, err
}

// Read reads the whole body of a request, of at most so many bytes, and allocates no more than its
// size where that is known.
func Read(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	if r.ContentLength <= 0 || r.ContentLength > most {
		return io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	}
	b := make([]byte, r.ContentLength)
	_, err := io.ReadFull(r.Body, b)
	return b, err
}
