package main

import "testing"

func TestLayoutIsOfThePaper(t *testing.T) {
	l, sum := layout(), 0
	for s, size := range l.Sizes {
		sum += size
		if s > 1 && l.RTT[0][s] < l.RTT[0][s-1] {
			t.Errorf("site %d is nearer than the one before", s)
		}
	}
	if sum != nodes || len(siteNames) != len(l.Sizes) {
		t.Errorf("%d nodes, want %d", sum, nodes)
	}
}
