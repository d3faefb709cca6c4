package swarm

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// FuzzPlan has holders answer a plan in any way and order, and late; then one that has all
// answers as it should. Whatever has happened before, what is asked makes sense, and
// in the end all is there, unless nothing came for the time of the patience.
func FuzzPlan(f *testing.F) {
	f.Add(uint16(100), uint64(1), []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20})
	f.Add(uint16(1), uint64(2), []byte("0123456789abcdef0123456789abcdef"))
	f.Add(uint16(64), uint64(3), []byte{0xff, 0x80, 0x40, 0x20, 0, 0, 0, 7, 7, 7, 7, 7, 3, 3, 3, 3})
	f.Add(uint16(0), uint64(4), []byte{1})
	f.Add(uint16(2), uint64(102), bytes.Repeat([]byte("<"), 600)) // so many are heard of that the one who has all is asked late, or never
	for seed := range uint64(12) {                                // many answers in a row
		rnd, deeds := rand.New(rand.NewPCG(seed, 3)), make([]byte, 600)
		for i := range deeds {
			deeds[i] = byte(rnd.Uint32())
		}
		f.Add(uint16(290*seed), seed, deeds)
	}
	f.Fuzz(func(t *testing.T, chunks uint16, seed uint64, deeds []byte) {
		s := newStage(t, int(chunks%300), seed)
		if len(deeds) > 600 {
			deeds = deeds[:600]
		}
		for i, name := range []string{"a", "b", "c", "d"} {
			if seed>>i&1 == 0 {
				s.p.Add(name)
			}
		}
		for i, d := range deeds {
			s.next()
			if len(s.open) == 0 {
				s.now = s.now.Add(time.Duration(d) * 20 * time.Millisecond)
				continue
			}
			n := int(d>>3) % len(s.open)
			s.answer(n, int(d&7), i)
		}
		s.finish()
	})
}

// stage is a plan with what it asked and heard.
type stage struct {
	t      *testing.T
	p      *Plan
	now    time.Time
	rnd    *rand.Rand
	chunks int
	got    Set
	open   []*Request
}

func newStage(t *testing.T, chunks int, seed uint64) *stage {
	s := &stage{t: t, now: time.Unix(1e9, 0), rnd: rand.New(rand.NewPCG(seed, 1)), chunks: chunks, got: NewSet(chunks)}
	s.p = New(Config{Chunks: chunks, Rand: rand.New(rand.NewPCG(seed, 2)), Now: s.now, Patience: time.Minute})
	return s
}

// next takes what the plan asks, and looks at it.
func (s *stage) next() (wake time.Time) {
	s.t.Helper()
	ask, wake := s.p.Next(s.now)
	for _, r := range ask {
		if err := s.check(r); err != nil {
			s.t.Fatal(err)
		}
		s.open = append(s.open, r)
	}
	if n := s.chunkRequests(); n > MaxRequests {
		s.t.Fatalf("%d chunks are asked for at a time", n)
	}
	for _, h := range s.p.holders {
		out := 0
		for _, r := range s.open {
			if r.Kind != Poll && r.Holder == h.name {
				out++
			}
		}
		if h.out != out {
			s.t.Fatalf("%s has %d requests, the plan believes %d", h.name, out, h.out)
		}
	}
	if !wake.IsZero() && !wake.After(s.now) {
		s.t.Fatalf("it wants to be woken %v ago", s.now.Sub(wake))
	}
	return wake
}

func (s *stage) chunkRequests() (n int) {
	for _, r := range s.open {
		if r.Kind != Poll {
			n++
		}
	}
	return n
}

func (s *stage) check(r *Request) error {
	switch r.Kind {
	case One, Verify:
		if r.Chunk < 0 || r.Chunk >= s.chunks || s.got.Has(r.Chunk) {
			return fmt.Errorf("chunk %d of %d is asked for, which is of no use", r.Chunk, s.chunks)
		}
	case Any:
		useful := 0
		for i, w := range r.Want {
			if r.From+i >= len(s.got) || w&s.got[r.From+i] != 0 {
				return fmt.Errorf("words %x from %d of %d chunks are wanted, of which some are here", r.Want, r.From, s.chunks)
			}
			if w != 0 {
				useful++
			}
		}
		if useful == 0 {
			return fmt.Errorf("nothing is wanted of %s", r.Holder)
		}
	case Poll:
		if slices.ContainsFunc(s.open, func(o *Request) bool { return o.Kind == Poll && o.Holder == r.Holder }) {
			return fmt.Errorf("%s is asked twice at a time what it has", r.Holder)
		}
	}
	return nil
}

// take ends a request that is under way.
func (s *stage) take(n int) *Request {
	r := s.open[n]
	s.open = slices.Delete(s.open, n, n+1)
	return r
}

// answer is one of the things that may become of a request.
func (s *stage) answer(n, how, step int) {
	r := s.take(n)
	s.now = s.now.Add(time.Duration(how) * 7 * time.Millisecond)
	switch {
	case how == 0:
		s.p.Failed(s.now, r, Broken)
	case how == 1:
		s.p.Failed(s.now, r, Missing)
	case how == 2:
		s.p.Older(r)
	case r.Kind == Poll:
		has := NewSet(s.chunks)
		for i := range s.chunks {
			if s.rnd.IntN(2) == 0 {
				has.Add(i)
			}
		}
		if how == 3 { // more, or fewer, than there are
			has = has.Fit(s.rnd.IntN(2 * (s.chunks + 1)))
		}
		s.p.Told(s.now, r, State{Version: uint64(step), Has: has, Seed: how == 4, Peers: []string{"a", fmt.Sprint("p", step), r.Holder}}, 100*time.Millisecond)
	case how == 3:
		s.p.Failed(s.now, r, Wrong)
	case how == 4 && r.Kind == Any:
		s.p.Gave(s.now, r, "b", "c")
	case r.Kind == Any:
		s.bring(r, s.rnd.IntN(s.chunks+2)-1)
	default:
		s.got.Add(r.Chunk)
		s.ended(s.p.Got(s.now, r))
	}
}

// bring answers a request for any chunk with one, which may be of no use.
func (s *stage) bring(r *Request, chunk int) {
	useful := chunk >= 0 && chunk < s.chunks && !s.got.Has(chunk)
	if got := s.p.Chosen(r, chunk); got != useful {
		s.t.Fatalf("chunk %d of %d: it says %v", chunk, s.chunks, got)
	}
	if !useful {
		s.p.Failed(s.now, r, Unwanted)
		return
	}
	s.got.Add(chunk)
	s.ended(s.p.Got(s.now, r))
}

// ended lets go of requests that are of no use any more.
func (s *stage) ended(useless []*Request) {
	for _, r := range useless {
		if i := slices.Index(s.open, r); i >= 0 {
			s.take(i)
			s.p.Failed(s.now, r, Unwanted)
		}
	}
	if left := s.chunks - s.got.Count(); s.p.Left() != left || (s.p.Missing() < 0) != (left == 0) {
		s.t.Fatalf("%d chunks are missing, it says %d, the first is %d", left, s.p.Left(), s.p.Missing())
	}
}

// finish has one holder do all that it is asked, and others nothing.
func (s *stage) finish() {
	s.p.Add("whole")
	began := s.now
	for steps := 0; s.p.Left() > 0; steps++ {
		if s.now.Sub(later(s.p.lastGot, began)) > 2*s.p.cfg.Patience { // each step takes time
			s.t.Fatalf("%d of %d chunks are still missing", s.p.Left(), s.chunks)
		}
		wake := s.next()
		if s.p.Lost(s.now) {
			return // it is tried again by who wants it
		}
		i := slices.IndexFunc(s.open, func(r *Request) bool { return r.Holder == "whole" })
		if i < 0 && len(s.open) > 0 {
			i = 0
		}
		if i < 0 {
			if wake.IsZero() {
				s.t.Fatalf("%d of %d chunks are missing, and it waits for nothing", s.p.Left(), s.chunks)
			}
			s.now = wake
			continue
		}
		r := s.take(i)
		s.now = s.now.Add(10 * time.Millisecond)
		switch {
		case r.Holder != "whole":
			s.p.Failed(s.now, r, Broken)
		case r.Kind == Poll:
			s.p.Told(s.now, r, State{Version: uint64(steps), Has: Full(s.chunks), Seed: true}, 100*time.Millisecond)
		case r.Kind == Any:
			chunk := 0
			for !r.Want.Has(chunk) {
				chunk++
			}
			s.bring(r, r.From*64+chunk)
		default:
			s.got.Add(r.Chunk)
			s.ended(s.p.Got(s.now, r))
		}
	}
}
