package search

import (
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/vicinity"
)

// quick is a hunt for one worker by bandwidth, where files go to the nodes at these speeds.
func quick(input int64, speeds map[int]float64) *hunt {
	h := newHunt(jobs.Spec{Min: 1, Max: 1, Slots: 1, Strategy: "bandwidth"})
	h.s.Input = input
	h.s.Speed = func(id vicinity.ID) (s vicinity.Speed) {
		for n, rate := range speeds {
			if id == jobtest.Node(n) {
				s.Rate = rate
			}
		}
		return s
	}
	h.s.Near = func(time.Duration, int) (list []vicinity.Measured) {
		for n := range 9 {
			list = append(list, vicinity.Measured{ID: jobtest.Node(n + 1), RTT: time.Duration(n+1) * time.Millisecond})
		}
		return list
	}
	return h
}

// took returns which of the nodes 1 to 9 was taken, and when, if all answer by and by.
func (h *hunt) took() (node int, after time.Duration) {
	h.next()
	for n := 1; n < 20; n++ {
		if h.now = h.now.Add(time.Millisecond); n < 10 {
			h.answer(n, 1, nil)
		}
		next := h.next()
		for node := range 10 {
			if len(next.Grant) > 0 && jobtest.Node(node) == next.Grant[0].Node {
				return node, h.now.Sub(jobtest.Start)
			}
		}
		if n >= 10 && next.Until.After(h.now) {
			h.now = next.Until
		}
	}
	return 0, 0
}

// A job goes where its input is soonest, though others are nearer, once enough has been seen
// of others; without input, or where nothing is known, it goes to the nearest at once.
func TestSearchByBandwidth(t *testing.T) {
	for name, c := range map[string]struct {
		input  int64
		speeds map[int]float64
		want   int
		most   time.Duration
	}{
		"a farther one is faster": {100 << 20, map[int]float64{1: 1e6, 2: 1e6, 3: 1e6, 7: 10e6}, 7, time.Second},
		"little input":            {1000, map[int]float64{1: 1e6, 2: 1e6, 3: 1e6, 7: 10e6}, 1, time.Second},
		"no input":                {0, map[int]float64{1: 1e6, 7: 10e6}, 1, 10 * time.Millisecond},
		"nothing is known":        {100 << 20, nil, 1, 10 * time.Millisecond},
	} {
		if node, after := quick(c.input, c.speeds).took(); node != c.want || after > c.most {
			t.Errorf("%s: node %d, after %v", name, node, after)
		}
	}
}

// This node has the input: nobody else is asked if it has room.
func TestSearchByBandwidthBeginsHere(t *testing.T) {
	h := quick(100<<20, map[int]float64{1: 1e9})
	if n := h.s.Next(h.now, h.d); n.Flood.Number == 0 || n.Flood.Radius != 0 {
		t.Fatalf("begins with %+v", n)
	}
	h.answer(0, 1, nil)
	for range 5 {
		n := h.s.Next(h.now, h.d)
		if len(n.Grant) > 0 {
			if n.Grant[0].Node != jobtest.Node(0) {
				t.Errorf("took %s", n.Grant[0].Node)
			}
			return
		}
		h.now = n.Until
	}
	t.Error("it was not taken")
}
