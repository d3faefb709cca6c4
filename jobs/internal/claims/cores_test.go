package claims

import (
	"slices"
	"testing"
)

// Nobody has a processor of another worker, also of one of an earlier life.
func TestCores(t *testing.T) {
	var c Cores
	if got := c.Take(1); got != nil {
		t.Fatalf("a node that gives none gives %v", got)
	}
	c.All = []int{2, 3, 5, 7}
	c.Keep([]int{3})
	if got := c.Take(2); !slices.Equal(got, []int{2, 5}) {
		t.Fatalf("got %v", got)
	}
	if got := c.Take(2); got != nil {
		t.Errorf("one is left, and two are given: %v", got)
	}
	c.Give([]int{3})
	if got := c.Take(2); !slices.Equal(got, []int{3, 7}) {
		t.Errorf("got %v", got)
	}
}
