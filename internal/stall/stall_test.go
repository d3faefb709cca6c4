package stall

import (
	"testing"
	"time"
)

func TestGuard(t *testing.T) {
	at := func(ms int) time.Time { return time.Unix(0, 0).Add(time.Duration(ms) * time.Millisecond) }
	const deadline = 1000
	for name, c := range map[string]struct {
		looks []int
		want  []bool
		next  int
	}{
		"on time":              {[]int{999, 1000}, []bool{false, true}, deadline},
		"a little late":        {[]int{900, 1200}, []bool{false, true}, deadline},
		"starved":              {[]int{900, 1201}, []bool{false, false}, 1701},
		"never looked before":  {[]int{5000}, []bool{false}, 5500},
		"starved, then not":    {[]int{900, 3000, 3400, 3500}, []bool{false, false, false, true}, 3500},
		"starved, and again":   {[]int{900, 3000, 9000}, []bool{false, false, true}, 3500},
		"looked on time, late": {[]int{1001, 9000}, []bool{true, true}, deadline},
	} {
		var g Guard
		for i, ms := range c.looks {
			if got := g.Passed(at(ms), at(deadline)); got != c.want[i] {
				t.Errorf("%s: at %d ms %t", name, ms, got)
			}
		}
		if got := g.Next(at(deadline)); !got.Equal(at(c.next)) {
			t.Errorf("%s: next look at %v, want %d ms", name, got.Sub(at(0)), c.next)
		}
	}
}

// Several deadlines are looked at by one guard, at the same times.
func TestGuardOfSeveralDeadlines(t *testing.T) {
	at := func(ms int) time.Time { return time.Unix(0, 0).Add(time.Duration(ms) * time.Millisecond) }
	var g Guard
	for _, ms := range []int{3000, 3500} {
		for _, deadline := range []int{1000, 1100, 2900} {
			if got := g.Passed(at(ms), at(deadline)); got != (ms == 3500) {
				t.Errorf("at %d ms %d has passed: %t", ms, deadline, got)
			}
		}
	}
	if g.Passed(at(3600), at(4000)) {
		t.Error("a deadline in the future has passed")
	}
}
