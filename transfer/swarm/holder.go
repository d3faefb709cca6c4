package swarm

import (
	"cmp"
	"math/bits"
	"math/rand/v2"
	"slices"
	"time"
)

const (
	// missPause is long enough not to ask for chunk after chunk in vain, and
	// short enough to share the fetch with others that began at the same time.
	missPause  = 100 * time.Millisecond
	firstPause = 100 * time.Millisecond
	lastPause  = 5 * time.Second
	// looks bounds how many chunks are compared to find a rare one.
	looks = 4096
)

// holder is what one fetch knows of a partner.
type holder struct {
	name    string
	older   bool // it knows only requests for one chunk
	seed    bool
	has     Set // nil = not known
	gave    Set // what it has given to others, so that it is not asked for it again
	since   uint64
	rtt     time.Duration // of its first answer
	pollAt  time.Time     // not before
	out     int           // requests under way
	window  int           // how many there may be
	fails   int           // in a row
	until   time.Time     // it rests
	suspect int           // the chunk of which it sent wrong bytes, -1 = none
	wrong   int           // how often it did
}

func (h *holder) worked() {
	h.fails = 0
	h.window = min(h.window+1, maxWindow)
}

func (h *holder) failed(now time.Time, rnd *rand.Rand) {
	pause := min(firstPause<<min(h.fails, 10), lastPause)
	h.until = later(h.until, now.Add(pause/2+time.Duration(rnd.Int64N(int64(pause)))))
	h.fails++
	h.window = 1
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Next returns what to ask now, and when to call it again if nothing happens
// before; zero = that alone changes nothing.
func (p *Plan) Next(now time.Time) (ask []*Request, wake time.Time) {
	if p.left == 0 {
		return nil, time.Time{}
	}
	soon := func(at time.Time) {
		if at.After(now) && (wake.IsZero() || at.Before(wake)) {
			wake = at
		}
	}
	for _, h := range p.holders {
		at := later(h.until, h.pollAt)
		if h.older || p.polling[h.name] {
			at = h.until
		} else if !now.Before(at) {
			p.polling[h.name] = true
			ask = append(ask, &Request{Kind: Poll, Holder: h.name, Chunk: -1, Since: h.since, began: now})
		}
		soon(at)
	}
	soon(p.lastGot.Add(p.cfg.Patience))
	if p.late(now) {
		return ask, wake
	}
	p.reopen(now, soon)
	ask = append(ask, p.chunks(now, false)...)
	if !p.starving() {
		p.starved = time.Time{}
		return ask, wake
	}
	if p.starved.IsZero() {
		p.starved = now
	}
	at := p.starved.Add(p.insistAfter())
	if now.Before(at) {
		soon(at)
		return ask, wake
	}
	return append(ask, p.chunks(now, true)...), wake
}

// reopen lets what takes much longer than others be asked for elsewhere too.
func (p *Plan) reopen(now time.Time, soon func(time.Time)) {
	limit := 5 * time.Second
	if p.typical > 0 {
		limit = 4*p.typical + time.Second
	}
	for _, r := range p.under {
		if r.Chunk < 0 {
			continue // it waits for its turn
		}
		at := r.began.Add(limit)
		if r.stale || now.Before(at) {
			soon(at)
			continue
		}
		r.stale = true
		if h := p.find(r.Holder); h != nil {
			h.window = 1
		}
		copies := 0
		for _, o := range p.under {
			if o.Chunk == r.Chunk {
				copies++
			}
		}
		if copies == 1 {
			p.free.Add(r.Chunk)
		}
	}
}

// starving reports whether chunks are wanted that nobody can be asked for, and
// nothing comes from others.
func (p *Plan) starving() bool {
	return !p.free.Empty() && !slices.ContainsFunc(p.under, func(r *Request) bool { return !r.stale && !r.Insist })
}

func (p *Plan) insistAfter() time.Duration {
	return min(max(3*p.typical, 300*time.Millisecond), 5*time.Second)
}

// chunks asks holders for chunks as long as there is something to ask.
func (p *Plan) chunks(now time.Time, insist bool) (ask []*Request) {
	ready := slices.DeleteFunc(slices.Clone(p.holders), func(h *holder) bool { return now.Before(h.until) || !h.older && h.has == nil })
	if len(ready) == 0 {
		return nil
	}
	each := min(max(MaxRequests/len(ready), minWindow), maxWindow)
	p.cfg.Rand.Shuffle(len(ready), func(i, j int) { ready[i], ready[j] = ready[j], ready[i] })
	for len(ready) > 0 && len(p.under) < MaxRequests {
		best := slices.MinFunc(ready, func(a, b *holder) int {
			return cmp.Or(cmp.Compare(a.out, b.out), cmp.Compare(bits.Len64(uint64(a.rtt)), bits.Len64(uint64(b.rtt))))
		})
		var r *Request
		if best.out < min(each, best.window) {
			r = p.request(best, insist)
		}
		if r == nil {
			ready = slices.DeleteFunc(ready, func(h *holder) bool { return h == best })
			continue
		}
		r.Holder, r.began = best.name, now
		best.out++
		p.under = append(p.under, r)
		ask = append(ask, r)
		if r.Kind == Verify {
			best.until = now.Add(lastPause) // until that is known
		}
	}
	return ask
}

// request returns what to ask a holder, nil if there is nothing.
func (p *Plan) request(h *holder, insist bool) *Request {
	switch {
	case h.suspect >= 0 && !p.have.Has(h.suspect):
		if p.asked(h, h.suspect) {
			return nil
		}
		p.free.Del(h.suspect)
		return &Request{Kind: Verify, Chunk: h.suspect}
	case insist && !h.seed:
		return nil
	case h.seed:
		gave := h.gave
		if insist {
			gave = nil
		}
		want := p.free.without(gave)
		if rare := want.without(p.known); !rare.Empty() {
			want = rare
		}
		for i := range want {
			want[i] &= h.has[i]
		}
		if want.Empty() || !insist && p.anys(h) >= want.Count() {
			return nil
		}
		r := &Request{Kind: Any, Chunk: -1, Insist: insist}
		r.Want, r.From = want.window(wantWords)
		return r
	}
	i := p.rarest(h)
	if i < 0 {
		return nil
	}
	p.free.Del(i)
	return &Request{Kind: One, Chunk: i}
}

func (p *Plan) asked(h *holder, chunk int) bool {
	return slices.ContainsFunc(p.under, func(r *Request) bool { return r.Holder == h.name && r.Chunk == chunk })
}

// anys counts the requests at a holder of which is not known yet what they bring.
func (p *Plan) anys(h *holder) (n int) {
	for _, r := range p.under {
		if r.Holder == h.name && r.Kind == Any && r.Chunk < 0 {
			n++
		}
	}
	return n
}

// rarest returns a chunk that a holder has and that the fewest others have, by
// chance one of several; -1 if it has none that is wanted.
func (p *Plan) rarest(h *holder) int {
	n := p.cfg.Chunks
	best, ties, seen := -1, 0, 0
	start := p.cfg.Rand.IntN(n)
	for k := 0; k < n && seen < looks; {
		i := (start + k) % n
		w := p.free[i/64]
		if !h.older {
			w &= h.has[i/64]
		}
		if w>>(i%64) == 0 {
			k += min(64-i%64, n-i)
			continue
		}
		k++
		if w>>(i%64)&1 == 0 || p.asked(h, i) {
			continue
		}
		seen++
		switch {
		case best < 0 || p.spread[i] < p.spread[best]:
			best, ties = i, 1
		case p.spread[i] == p.spread[best]:
			if ties++; p.cfg.Rand.IntN(ties) == 0 {
				best = i
			}
		}
	}
	return best
}
