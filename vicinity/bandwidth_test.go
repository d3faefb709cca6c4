package vicinity

import (
	"fmt"
	"math"
	"testing"
	"time"
)

// transfer lets chunks come from a node at a rate, two at a time.
type transfers struct {
	b   Bandwidth
	now time.Time
}

func (tr *transfers) chunks(from ID, n int, rate float64, alone bool) {
	const chunk, parts = 1 << 20, 16
	tr.b.Begin(tr.now, from, alone)
	for i := range n {
		if i < n-1 {
			tr.b.Begin(tr.now, from, alone)
		}
		for range parts {
			tr.now = tr.now.Add(time.Duration(chunk / parts / rate * float64(time.Second)))
			tr.b.Got(tr.now, from, chunk/parts)
		}
		tr.b.End(tr.now, from)
	}
}

func about(s Speed, rate float64, least bool) bool {
	return math.Abs(s.Rate-rate) <= 0.05*rate && s.Least == least
}

func TestBandwidth(t *testing.T) {
	tr := &transfers{now: time.Unix(1000, 0)}
	want := func(what string, rate float64, least bool) {
		t.Helper()
		if s := tr.b.From(tr.now, "a"); !about(s, rate, least) {
			t.Errorf("%s: %.0f bytes/s, least %v; want %.0f, %v", what, s.Rate, s.Least, rate, least)
		}
	}
	want("nothing has come", 0, false)
	tr.chunks("a", 1, 1e6, true)
	want("one chunk in a second", 1e6, false)
	tr.chunks("a", 64, 10e6, true)
	want("many chunks", 10e6, false)
	tr.chunks("a", 64, 1e6, false)
	want("while others are served, too", 10e6, false)
	tr.chunks("a", 1, 5e6, true)
	want("one chunk, which is too short", 10e6, false)
	tr.now = tr.now.Add(30 * time.Minute) // without traffic
	want("half an hour later", 10e6, false)
	tr.chunks("a", 4, 2e6, true)
	want("what is old gives way", 2e6, false)
	tr.now = tr.now.Add(speedLife + time.Second)
	want("what is too old is not known", 0, false)
	tr.chunks("a", 16, 3e6, false)
	want("that much at least", 3e6, true)
	tr.chunks("a", 16, 5e6, false)
	want("and more", 5e6, true)
	tr.chunks("a", 32, 4e6, true)
	want("when it is alone it is known", 4e6, false)
}

// Waits between requests, and what waited in a buffer, tell nothing.
func TestBandwidthOfPauses(t *testing.T) {
	tr := &transfers{now: time.Unix(1000, 0)}
	for range 10 {
		tr.chunks("a", 4, 8e6, true)
		tr.now = tr.now.Add(time.Minute)
	}
	if s := tr.b.From(tr.now, "a"); !about(s, 8e6, false) || tr.now.Sub(s.At) != time.Minute {
		t.Errorf("%+v", s)
	}
	tr.b.Begin(tr.now, "buffer", true) // a chunk that had come before it was read
	tr.b.Got(tr.now, "buffer", 1<<20)
	tr.b.End(tr.now.Add(time.Millisecond), "buffer")
	if s := tr.b.From(tr.now, "buffer"); s.Rate != 0 {
		t.Errorf("of a buffer: %+v", s)
	}
}

// Two nodes that send at the same time each send that much at least.
func TestBandwidthOfSeveral(t *testing.T) {
	tr := &transfers{now: time.Unix(1000, 0)}
	tr.b.Begin(tr.now, "b", true)
	tr.chunks("a", 8, 4e6, true)
	tr.b.Got(tr.now, "b", 8<<20)
	tr.b.End(tr.now, "b")
	for _, id := range []ID{"a", "b"} {
		if s := tr.b.From(tr.now, id); !about(s, 4e6, true) {
			t.Errorf("%s: %+v", id, s)
		}
	}
	tr.chunks("a", 8, 4e6, true)
	if s := tr.b.From(tr.now, "a"); !about(s, 4e6, false) {
		t.Errorf("afterwards: %+v", s)
	}
}

func TestBandwidthTold(t *testing.T) {
	b, now := Bandwidth{}, time.Unix(1000, 0)
	b.Told(now, "a", Speed{Rate: 5, Least: true})
	for _, nonsense := range []float64{0, -1, math.NaN(), math.Inf(1), 2 * MaxSpeed} {
		b.Told(now, "a", Speed{Rate: nonsense})
	}
	if s := b.To(now, "a"); s != (Speed{5, true, now}) || b.From(now, "a").Rate != 0 {
		t.Errorf("%+v", s)
	}
	if s := b.To(now.Add(speedLife+1), "a"); s.Rate != 0 {
		t.Errorf("after long: %+v", s)
	}
	b.Begin(now, "open", true)
	for i := range 3 * maxSpeeds {
		b.Told(now, ID(fmt.Sprint(i)), Speed{Rate: 5})
	}
	if len(b.nodes) > maxSpeeds+1 || b.nodes["open"] == nil {
		t.Errorf("%d are known", len(b.nodes))
	}
}
