package keep

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

// One of the keepers is in another cluster, if a node there keeps it; the next checkpoint has the same two.
func TestOneKeeperIsFarAway(t *testing.T) {
	const alone = "all its keepers are in one cluster: "
	for about, c := range map[string]struct {
		near, apart, refuse []int
		want                []string
		short               string
	}{
		"near ones first":        {near: []int{10, 11, 12, 20, 21}, apart: []int{20, 21}, want: []string{"node-10", "node-20"}},
		"one of them is full":    {near: []int{10, 11, 12, 20, 21}, apart: []int{20, 21}, refuse: []int{20}, want: []string{"node-10", "node-21"}},
		"the near ones are full": {near: []int{10, 11, 20, 21}, apart: []int{20, 21}, refuse: []int{10, 11}, want: []string{"node-20", "node-21"}},
		"none is near":           {near: []int{20, 21}, apart: []int{20, 21}, want: []string{"node-20", "node-21"}},
		"all that are far are full": {near: []int{10, 11, 20}, apart: []int{20}, refuse: []int{20}, want: []string{"node-10", "node-11"},
			short: alone + "node node-20 does not keep it: refused: it is full"},
		"many are full": {near: []int{10, 11, 20, 21, 22, 23, 24, 25, 26, 27}, apart: []int{20, 21, 22, 23, 24, 25, 26, 27},
			refuse: []int{20, 21, 22, 23, 24, 25, 26, 27}, want: []string{"node-10", "node-11"}, short: alone + "node node-2"},
		"there is one cluster": {near: []int{10, 11, 12}, want: []string{"node-10", "node-11"}, short: alone + "there is no other"},
		"there is one node":    {near: []int{10}, want: []string{"node-10"}, short: "only 1 of 2"},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWard(t, c.near...)
			w.far, w.apart = true, c.apart
			w.refuses(c.refuse...)
			for range 2 {
				w.asked = nil
				a := w.checkpoint()
				slices.Sort(a.Keepers)
				if !a.Safe || !slices.Equal(a.Keepers, c.want) || !strings.HasPrefix(a.Short, c.short) || (c.short == "") != (a.Short == "") || len(w.asked) > maxTries {
					t.Errorf("%s: it says %+v", about, a)
				}
				slices.Reverse(w.near) // who kept the one before comes first all the same
			}
			if len(c.refuse) == 0 && len(w.asked) != len(c.want) {
				t.Errorf("%s: %v were asked for the second", about, w.asked)
			}
		})
	}
}
