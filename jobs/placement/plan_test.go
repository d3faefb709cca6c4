package placement

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"zorilla/internal/seeds"
)

// brute tries all numbers of workers for each offer.
type brute struct {
	left   []int // of each offer
	offers []Offer
}

// worth is what a choice of a number from each offer is worth: smaller is better.
func (b *brute) worth(used []int) (sum time.Duration) {
	for i, n := range used {
		sum += time.Duration(n) * b.offers[i].RTT
	}
	return sum
}

// each calls f with all ways to take so many workers of the offers, at most some of each.
func (b *brute) each(workers, most int, f func(used []int)) {
	used := make([]int, len(b.left))
	var from func(i, left int)
	from = func(i, left int) {
		if i == len(used) {
			if left == 0 {
				f(used)
			}
			return
		}
		for n := 0; n <= min(b.left[i], most, left); n++ {
			used[i] = n
			from(i+1, left-n)
		}
		used[i] = 0
	}
	from(0, workers)
}

// near reports whether used nodes are near enough to each other.
func near(used []int, within time.Duration, between func(a, b int) time.Duration) bool {
	for a := range used {
		for b := range a {
			if used[a] > 0 && used[b] > 0 && between(a, b) > within {
				return false
			}
		}
	}
	return true
}

// allocate is Allocate by trying everything: as many workers as there can be, the nearest of them.
func (b *brute) allocate(d Demand) (workers int, worth time.Duration) {
	replicas := max(1, d.Replicas)
	for workers = d.Most; workers >= max(1, d.Least); workers-- {
		if workers%replicas != 0 {
			continue
		}
		found := false
		b.each(workers, workers/replicas, func(used []int) {
			if d.MaxRTT > 0 && !near(used, d.MaxRTT, d.Between) {
				return
			}
			if w := b.worth(used); !found || w < worth {
				found, worth = true, w
			}
		})
		if found {
			return workers, worth
		}
	}
	return 0, 0
}

// Jobs get what a search among all choices finds, one after the other: as many workers as there are for
// them, or none; and the nearest, which leaves what the twin leaves to those after them, or as much.
func TestPlanAgainstBruteForce(t *testing.T) {
	seeds.Random(t, func(t *testing.T, seed uint64) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		some, none, later := 0, 0, 0
		for range 300 {
			p := newPlane(rnd, 1+rnd.IntN(6), rnd.IntN(4), 3)
			twin := &brute{offers: p.offers}
			for _, o := range p.offers {
				twin.left = append(twin.left, o.Workers)
			}
			before := slices.Clone(p.offers)
			plan := NewPlan(p.offers)
			for i := range 1 + rnd.IntN(4) {
				d := Demand{Most: 1 + rnd.IntN(5), Wish: Wish{Replicas: rnd.IntN(3), Between: p.between}}
				if rnd.IntN(3) == 0 {
					d.MaxRTT = time.Duration(1 + rnd.IntN(60*int(ms)))
				}
				d.Most *= max(1, d.Replicas)
				if d.Least = 1 + rnd.IntN(d.Most); d.MaxRTT > 0 || d.Replicas > 1 {
					d.Least = d.Most // the most of a group is looked for by halves, which finds the most only where more is harder
				}
				workers, worth := twin.allocate(d)
				got := plan.Allocate(d)
				if len(got.Offers) != workers || (got.Err == nil) != (workers > 0) {
					t.Fatalf("demand %d, %+v, of %+v left %v: got %v (%v), want %d workers", i, d, p.offers, twin.left, got.Offers, got.Err, workers)
				}
				if workers == 0 {
					if none++; !errors.Is(got.Err, ErrInfeasible) && !errors.Is(got.Err, ErrApart) {
						t.Fatalf("%v wraps neither ErrInfeasible nor ErrApart", got.Err)
					}
					continue
				}
				used := make([]int, len(p.offers))
				for _, k := range got.Offers {
					used[k]++
				}
				if w := twin.worth(used); w != worth {
					t.Fatalf("demand %d, %+v, of %+v left %v: got %v, %v from the origin, want %v", i, d, p.offers, twin.left, got.Offers, w, worth)
				}
				for k, n := range used {
					if twin.left[k] -= n; twin.left[k] < 0 {
						t.Fatalf("offer %d is given away twice", k)
					}
				}
				if some++; i > 0 {
					later++
				}
			}
			if !slices.Equal(before, p.offers) {
				t.Fatal("the plan changed the offers")
			}
		}
		if some < 100 || none < 20 || later < 50 {
			t.Errorf("%d demands were met, %d of them after others, %d were not: too few", some, later, none)
		}
	})
}

// A job that may do with fewer gets as many as are near enough to each other.
func TestPlanTakesFewerWhereMoreAreApart(t *testing.T) {
	offers := []Offer{{"a", 1 * ms, 2}, {"b", 2 * ms, 2}, {"c", 30 * ms, 9}}
	between := func(a, b int) time.Duration {
		if a == b {
			return 0
		}
		if a == 2 || b == 2 {
			return 40 * ms
		}
		return ms
	}
	d := Demand{Least: 1, Most: 13, Wish: Wish{MaxRTT: 5 * ms, Between: between}}
	plan := NewPlan(offers)
	if got := plan.Allocate(d); len(got.Offers) != 9 || got.Err != nil {
		t.Errorf("got %v (%v), want the nine of the largest node", got.Offers, got.Err)
	}
	if got := plan.Allocate(d); len(got.Offers) != 4 || got.Err != nil {
		t.Errorf("the next one got %v (%v), want what is left", got.Offers, got.Err)
	}
	if got := plan.Allocate(d); len(got.Offers) != 0 || !errors.Is(got.Err, ErrInfeasible) {
		t.Errorf("the last one got %v (%v), want nothing", got.Offers, got.Err)
	}
}
