package flood

import (
	"testing"
	"time"
)

// step makes the next flood when it is due, and returns its radius and how
// long after now that was.
func step(t *testing.T, s *Search, now *time.Time) (radius int, waited time.Duration) {
	t.Helper()
	at := s.Wake()
	if before := at.Add(-time.Nanosecond); before.After(*now) {
		if _, due := s.Next(before); due {
			t.Fatal("due before Wake")
		}
	}
	from := *now
	if at.After(*now) {
		*now = at
	}
	radius, due := s.Next(*now)
	if !due {
		t.Fatalf("not due at Wake")
	}
	s.Flooded(*now)
	return radius, now.Sub(from)
}

// "The base 10 logarithm of the number of nodes required."
func TestFirstRadius(t *testing.T) {
	for wanted, want := range map[int]int{-1: 1, 0: 1, 1: 1, 9: 1, 10: 1, 99: 1, 100: 2, 999: 2, 1000: 3, 100000: 5} {
		s := NewSearch(Schedule{}, wanted)
		if got, due := s.Next(begin); got != want || !due {
			t.Errorf("%d wanted: radius %d, due %v, want %d", wanted, got, due, want)
		}
	}
}

// "By default the timeout starts at 1 second and is doubled each time a flood
// is send", and the radius grows by one.
func TestGrowth(t *testing.T) {
	s := NewSearch(Schedule{MaxRadius: 7}, 8)
	now := begin
	for i, want := range []struct {
		radius int
		waited time.Duration
	}{{1, 0}, {2, 1}, {3, 2}, {4, 4}, {5, 8}, {6, 16}, {7, 32}, {7, 60}, {7, 60}} {
		radius, waited := step(t, &s, &now)
		if radius != want.radius || waited != want.waited*time.Second {
			t.Fatalf("flood %d: radius %d after %v, want %+v", i, radius, waited, want)
		}
		s.Heard(10 * radius) // each reaches more
	}
}

func TestScheduleIsAdjustable(t *testing.T) {
	s := NewSearch(Schedule{First: 100 * time.Millisecond, Factor: 1.5, Max: 200 * time.Millisecond}, 1)
	now := begin
	for i, want := range []time.Duration{0, 100, 150, 200, 200} {
		if _, waited := step(t, &s, &now); waited != want*time.Millisecond {
			t.Fatalf("flood %d after %v, want %v", i, waited, want*time.Millisecond)
		}
	}
	steep := NewSearch(Schedule{Factor: 1e300}, 1)
	step(t, &steep, &now)
	step(t, &steep, &now)
	if _, waited := step(t, &steep, &now); waited != time.Minute {
		t.Fatalf("a steep factor waits %v", waited)
	}
}

func TestLossResetsTimerNotRadius(t *testing.T) {
	s := NewSearch(Schedule{}, 1)
	now := begin
	for i := range 4 {
		step(t, &s, &now)
		s.Heard(10 * (i + 1))
	}
	now = now.Add(time.Hour)
	s.Reset(now)
	for i, want := range []struct {
		radius int
		waited time.Duration
	}{{4, 0}, {5, 1}, {6, 2}} {
		radius, waited := step(t, &s, &now)
		if radius != want.radius || waited != want.waited*time.Second {
			t.Fatalf("flood %d: radius %d after %v, want %+v", i, radius, waited, want)
		}
		s.Heard(100 * radius)
	}
	// Many losses in a row do not make many floods.
	for range 100 {
		s.Reset(now)
	}
	if radius, waited := step(t, &s, &now); radius != 6 || waited != time.Second {
		t.Fatalf("radius %d after %v, want 6 after 1s", radius, waited)
	}
}

func TestWholeNetworkReached(t *testing.T) {
	s := NewSearch(Schedule{}, 1)
	now := begin
	step(t, &s, &now)
	s.Heard(20)
	step(t, &s, &now) // radius 2 reaches the same 20
	s.Heard(20)
	for i := range patience {
		if radius, waited := step(t, &s, &now); radius != 2 || waited < time.Second {
			t.Fatalf("flood %d: radius %d after %v, want 2 by the timer", i, radius, waited)
		}
		s.Heard(19) // one answer is lost
	}
	if radius, _ := step(t, &s, &now); radius != 3 {
		t.Fatalf("radius %d, want 3: a try further out after %d floods", radius, patience)
	}
	s.Heard(19)
	if radius, _ := step(t, &s, &now); radius != 3 {
		t.Fatalf("radius %d, want 3", radius)
	}
	s.Heard(25) // nodes have joined
	if radius, _ := step(t, &s, &now); radius != 4 {
		t.Fatalf("radius %d, want 4", radius)
	}
}
