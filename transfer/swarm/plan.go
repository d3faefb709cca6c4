package swarm

import (
	"math/rand/v2"
	"slices"
	"time"
)

const (
	// MaxPartners is how many holders one fetch deals with at a time.
	MaxPartners = 16
	// MaxRequests is how many chunks one fetch asks for at a time: enough for
	// 100 MB/s over 160 ms.
	MaxRequests = 16
	// maxKnown bounds whom a fetch remembers beside its partners.
	maxKnown = 256
	// maxWindow and minWindow bound how many chunks one holder is asked for at
	// a time.
	maxWindow, minWindow = 8, 2
	// rotateEvery is how soon a partner of no use is exchanged after another one.
	rotateEvery = 1000 * time.Millisecond
	// maxWrong bounds how often a holder may send wrong bytes if it is right
	// when it is asked to check them.
	maxWrong = 3
	// wantWords bounds the set of a request for any chunk: 32768 chunks.
	wantWords = 512
)

// Kind is what is asked of a holder.
type Kind int

// One chunk; the same after the holder has checked its own copy; any of those
// wanted; what the holder has and whom it knows.
const (
	One Kind = iota
	Verify
	Any
	Poll
)

// Request is what to ask a holder. Each ends with one call of Got, Gave, Failed,
// Older or Told.
type Request struct {
	Kind   Kind
	Holder string
	Chunk  int    // One, Verify; of Any: what Chosen told, -1 before
	Want   Set    // Any: words of the set of chunks wanted
	From   int    // Any: number of the first of these words
	Insist bool   // Any: what others were given, too
	Since  uint64 // Poll: the version that is known

	began time.Time
	stale bool // another holder may be asked for the same
}

// Config is what a Plan begins with.
type Config struct {
	Chunks   int
	Have     Set           // what is here already
	Rand     *rand.Rand    // used by nobody else
	Now      time.Time     // the beginning
	Patience time.Duration // how long nothing may arrive before nothing more is asked
	NoPolls  bool          // holders are asked for one chunk or another
}

// Plan is the state of one fetch. It is not safe for use by several goroutines.
type Plan struct {
	cfg     Config
	have    Set
	free    Set      // neither here nor asked for
	spread  []uint16 // how many partners that are no seeds have each chunk
	known   Set      // chunks of which spread is not 0
	left    int
	waiting []string // whom to deal with when there is room
	heard   map[string]bool
	holders []*holder
	polling map[string]bool // who is asked what it has, also if it is no partner any more
	under   []*Request      // under way, but polls

	lastGot time.Time
	rotated time.Time     // when a partner was exchanged last
	starved time.Time     // since when nothing can be asked for; zero = not so
	typical time.Duration // of a chunk, until now; 0 = not known
}

// New returns the plan of a fetch.
func New(c Config) *Plan {
	p := &Plan{
		cfg: c, have: c.Have.Fit(c.Chunks), spread: make([]uint16, c.Chunks), known: NewSet(c.Chunks),
		heard: make(map[string]bool), polling: make(map[string]bool), lastGot: c.Now,
	}
	p.free = Full(c.Chunks).without(p.have)
	p.left = p.free.Count()
	return p
}

// Left returns how many chunks are not here.
func (p *Plan) Left() int { return p.left }

// Missing returns a chunk that is not here, -1 if there is none.
func (p *Plan) Missing() int {
	for i := range p.cfg.Chunks {
		if !p.have.Has(i) {
			return i
		}
	}
	return -1
}

// Lost reports whether nothing more will come: there is nobody left to ask, or
// nothing has come for the time of the patience and nothing is under way.
func (p *Plan) Lost(now time.Time) bool {
	nobody := len(p.holders) == 0 && len(p.waiting) == 0
	return p.left > 0 && len(p.under) == 0 && (nobody || p.late(now))
}

func (p *Plan) late(now time.Time) bool { return now.Sub(p.lastGot) >= p.cfg.Patience }

// Waits notes that a holder has said that what was asked of it will come: it is no time in
// which nothing is to be had.
func (p *Plan) Waits(now time.Time) { p.lastGot = now }

// Add reports nodes that may have some of the tree. Those named first are
// dealt with first.
func (p *Plan) Add(names ...string) {
	for _, name := range names {
		if name == "" || p.heard[name] || len(p.heard) >= maxKnown {
			continue
		}
		p.heard[name] = true
		p.waiting = append(p.waiting, name)
	}
	p.recruit()
}

// recruit makes partners of those who wait.
func (p *Plan) recruit() {
	for len(p.holders) < MaxPartners && len(p.waiting) > 0 {
		if len(p.holders) > 0 { // the first is whom the caller knows best
			i := p.cfg.Rand.IntN(len(p.waiting))
			p.waiting[0], p.waiting[i] = p.waiting[i], p.waiting[0]
		}
		h := &holder{name: p.waiting[0], window: minWindow, suspect: -1, older: p.cfg.NoPolls}
		p.waiting = p.waiting[1:]
		for _, r := range p.under { // it was a partner before
			if r.Holder == h.name {
				h.out++
			}
		}
		p.holders = append(p.holders, h)
	}
}

func (p *Plan) find(name string) *holder {
	for _, h := range p.holders {
		if h.name == name {
			return h
		}
	}
	return nil
}

// forget ends what a holder has part in.
func (p *Plan) forget(h *holder) {
	p.learn(h, NewSet(p.cfg.Chunks))
	p.holders = slices.DeleteFunc(p.holders, func(x *holder) bool { return x == h })
	p.recruit()
}

// learn notes what a holder has.
func (p *Plan) learn(h *holder, has Set) {
	if h.has == nil {
		h.has = NewSet(p.cfg.Chunks)
	}
	if !h.seed {
		for w := range has {
			if has[w] == h.has[w] {
				continue
			}
			for i := w * 64; i < min(w*64+64, p.cfg.Chunks); i++ {
				switch now, before := has.Has(i), h.has.Has(i); {
				case now && !before:
					p.spread[i]++
					p.known.Add(i)
				case before && !now:
					if p.spread[i]--; p.spread[i] == 0 {
						p.known.Del(i)
					}
				}
			}
		}
	}
	h.has = has
}

// Chosen notes which chunk a holder sends that was asked for any, and reports
// whether it is of use.
func (p *Plan) Chosen(r *Request, chunk int) bool {
	if chunk < 0 || chunk >= p.cfg.Chunks || p.have.Has(chunk) {
		return false
	}
	r.Chunk = chunk
	p.free.Del(chunk)
	return true
}

// Got notes that a chunk arrived, and was right. It returns requests that are
// of no use any more; they end with Failed.
func (p *Plan) Got(now time.Time, r *Request) (useless []*Request) {
	p.end(r)
	p.lastGot = now
	if took := now.Sub(r.began); p.typical == 0 {
		p.typical = took
	} else {
		p.typical += (took - p.typical) / 8
	}
	if h := p.find(r.Holder); h != nil {
		h.worked()
		if r.Kind == Verify {
			h.suspect, h.until = -1, now
		}
	}
	if !r.Insist {
		p.starved = time.Time{}
	}
	if !p.have.Has(r.Chunk) {
		p.have.Add(r.Chunk)
		p.left--
	}
	p.free.Del(r.Chunk)
	for _, o := range p.under {
		if o.Chunk == r.Chunk {
			useless = append(useless, o)
		}
	}
	return useless
}

// Gave notes that a holder sends nothing, since others were given what is
// wanted.
func (p *Plan) Gave(now time.Time, r *Request, others ...string) {
	p.end(r)
	if h := p.find(r.Holder); h != nil {
		h.worked()
		if h.gave == nil {
			h.gave = NewSet(p.cfg.Chunks)
		}
		for i, w := range r.Want {
			h.gave[r.From+i] |= w
		}
	}
	if r.Insist {
		p.starved = now
	}
	p.Add(others...)
}

// Failure is why a request came to nothing.
type Failure int

// The holder has no such chunk; it sent wrong bytes; anything else; it is not
// wanted any more.
const (
	Missing Failure = iota
	Wrong
	Broken
	Unwanted
)

// Failed notes that a request came to nothing.
func (p *Plan) Failed(now time.Time, r *Request, why Failure) {
	p.drop(r)
	h := p.find(r.Holder)
	if h == nil {
		return
	}
	switch {
	case why == Unwanted:
	case why == Missing:
		h.until = later(h.until, now.Add(missPause))
		if h.has != nil && r.Kind != Poll && r.Chunk >= 0 {
			has := slices.Clone(h.has)
			has.Del(r.Chunk)
			p.learn(h, has)
		}
	case why == Wrong && (r.Kind == Verify || p.cfg.NoPolls || h.older):
		p.forget(h)
	case why == Wrong:
		h.suspect = r.Chunk
		if h.wrong++; h.wrong > maxWrong || r.Chunk < 0 {
			p.forget(h)
		}
	default:
		h.failed(now, p.cfg.Rand)
		if h.fails >= 3 && len(p.waiting) > 0 { // others may do better; its turn may come again
			p.forget(h)
			p.waiting = append(p.waiting, h.name)
		}
	}
}

// end takes a request off those under way, and the polls.
func (p *Plan) end(r *Request) {
	if r.Kind == Poll {
		delete(p.polling, r.Holder)
		return
	}
	n := len(p.under)
	p.under = slices.DeleteFunc(p.under, func(o *Request) bool { return o == r })
	if h := p.find(r.Holder); h != nil && len(p.under) < n {
		h.out--
	}
}

// drop is end for a request that brought nothing: its chunk may be asked for elsewhere.
func (p *Plan) drop(r *Request) {
	p.end(r)
	if r.Chunk >= 0 && !p.have.Has(r.Chunk) && !slices.ContainsFunc(p.under, func(o *Request) bool { return o.Chunk == r.Chunk }) {
		p.free.Add(r.Chunk)
	}
}

// Older notes that a holder does not know what a request means.
func (p *Plan) Older(r *Request) {
	p.drop(r)
	if h := p.find(r.Holder); h != nil {
		h.older = true
	}
}

// State is what a holder tells of itself.
type State struct {
	Version uint64   // names this state, so that the next poll waits for another one
	Has     Set      // which chunks it has
	Seed    bool     // it had them before anybody asked
	Peers   []string // who else fetches the tree, as far as it knows
}

// Told notes the answer to a poll. The next one waits for pause.
func (p *Plan) Told(now time.Time, r *Request, s State, pause time.Duration) {
	p.end(r)
	h := p.find(r.Holder)
	if h == nil {
		return
	}
	h.worked()
	h.since, h.pollAt = s.Version, now.Add(pause)
	if h.rtt == 0 {
		h.rtt = max(1, now.Sub(r.began))
	}
	if h.seed != s.Seed {
		p.learn(h, NewSet(p.cfg.Chunks))
		h.seed, h.gave = s.Seed, nil
	}
	p.learn(h, s.Has.Fit(p.cfg.Chunks))
	p.Add(s.Peers...)
	p.rotate(now, h)
}

// rotate takes another partner in place of one that has nothing of use, now and
// then: else all who began together would deal with those first heard of only.
func (p *Plan) rotate(now time.Time, h *holder) {
	if h.seed || h.out > 0 || len(p.waiting) == 0 || now.Before(p.rotated.Add(rotateEvery)) {
		return
	}
	for i, w := range h.has {
		if p.free[i]&w != 0 {
			return
		}
	}
	p.rotated = now
	p.forget(h)
	p.waiting = append(p.waiting, h.name)
}
