package steps_test

import (
	"testing"

	"zorilla/internal/steps"
)

// judge is a test that only notes whether it failed.
type judge struct {
	testing.TB
	failed bool
}

func (j *judge) Helper()               {}
func (j *judge) Errorf(string, ...any) { j.failed = true }

func TestInOrder(t *testing.T) {
	var l steps.Log
	l.Did("write", "a")
	l.Did("sync", "a")
	l.Did("name", "a")
	l.Did("sync", "a")
	for _, c := range []struct {
		steps []string
		ok    bool
	}{
		{[]string{"write a", "sync a", "name a"}, true},
		{[]string{"write a", "name a"}, true},
		{[]string{"name a", "sync a"}, false}, // it was done too early, and once more
		{[]string{"name a", "write a"}, false},
		{[]string{"write a", "remove a"}, false},
		{[]string{"remove a"}, false},
	} {
		j := &judge{TB: t}
		if l.InOrder(j, c.steps...); j.failed == c.ok {
			t.Errorf("%q in order: failed is %v", c.steps, j.failed)
		}
	}
	if n := l.Times("sync a"); n != 2 || len(l.All()) != 4 {
		t.Errorf("%d syncs in %q", n, l.All())
	}
}
