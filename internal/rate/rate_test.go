package rate

import (
	"testing"
	"time"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// at notes counts at times in milliseconds.
func at(p *Meter, pairs ...int64) {
	for i := 0; i < len(pairs); i += 2 {
		p.Note(start.Add(time.Duration(pairs[i])*time.Millisecond), pairs[i+1])
	}
}

func TestRate(t *testing.T) {
	for _, c := range []struct {
		name  string
		pairs []int64
		want  int64
	}{
		{"nothing", nil, 0},
		{"one count", []int64{0, 100}, 0},
		{"too early", []int64{0, 0, 100, 1000}, 0},
		{"steady", []int64{0, 0, 500, 500, 1000, 1000}, 1000},
		{"does not begin with 0", []int64{0, 7000, 1000, 9000}, 2000},
		{"many close to each other", []int64{0, 0, 10, 10, 20, 20, 30, 30, 1000, 5000}, 5000},
		{"slower now", []int64{0, 0, 1000, 100_000, 2000, 100_100, 3000, 100_200, 4000, 100_300, 5000, 100_400, 6000, 100_500, 7000, 100_600}, 100},
		{"stands still", []int64{0, 0, 1000, 1000, 2000, 1000, 8000, 1000}, 0},
		{"begins anew", []int64{0, 0, 1000, 9000, 2000, 0, 3000, 50}, 50},
	} {
		var p Meter
		at(&p, c.pairs...)
		if got := p.Rate(); got != c.want {
			t.Errorf("%s: %d a second, want %d", c.name, got, c.want)
		}
	}
}

// However often it is called, it remembers little.
func TestMemory(t *testing.T) {
	var p Meter
	for i := range int64(100_000) {
		at(&p, i, i)
	}
	if n := len(p.marks); n > int(window/apart)+2 || p.Rate() != 1000 {
		t.Errorf("%d marks, %d a second", n, p.Rate())
	}
}

func TestLeft(t *testing.T) {
	for _, c := range []struct {
		rest, rate int64
		want       time.Duration
	}{{0, 10, 0}, {10, 0, 0}, {-1, 10, 0}, {1, 10, time.Second}, {100, 10, 10 * time.Second}, {1 << 62, 1, 1000 * 24 * time.Hour}} {
		if got := Left(c.rest, c.rate); got != c.want {
			t.Errorf("%d at %d: %v, want %v", c.rest, c.rate, got, c.want)
		}
	}
}
