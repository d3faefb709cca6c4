package api

import (
	"math"
	"testing"
	"time"

	"zorilla/node/usage"
	"zorilla/vicinity"
)

// Only what a node has told counts, and only as much of it as can be.
func TestSum(t *testing.T) {
	node := func(slots, busy int, state string, told bool, l *usage.Lately) NodeInfo {
		n := NodeInfo{Member: vicinity.Member{Slots: slots, Memory: 8 << 30}, Busy: busy, State: state, Lately: l}
		if told {
			n.Told = time.Unix(1, 0)
		}
		return n
	}
	self := node(4, 2, "", false, nil)
	self.Self = true
	for about, e := range map[string]struct {
		nodes []NodeInfo
		want  Totals
	}{
		"none":                     {nil, Totals{}},
		"the node itself":          {[]NodeInfo{self}, Totals{Nodes: 1, Known: 1, Slots: 4, Busy: 2}},
		"one has not told":         {[]NodeInfo{self, node(16, 0, "", false, nil)}, Totals{Nodes: 2, Known: 1, Slots: 4, Busy: 2}},
		"one takes none":           {[]NodeInfo{node(4, 1, "draining", true, nil)}, Totals{Nodes: 1, Known: 1, Slots: 4, Busy: 1, Shut: 3}},
		"busier than it has slots": {[]NodeInfo{node(2, 99, "paused", true, nil), node(2, -9, "", true, nil)}, Totals{Nodes: 2, Known: 2, Slots: 4, Busy: 2}},
		"no slots":                 {[]NodeInfo{node(-5, -5, "", true, nil)}, Totals{Nodes: 1}},
		"memory and load": {[]NodeInfo{node(1, 0, "", true, &usage.Lately{Load: 1.25, Free: 2 << 30}), node(1, 0, "", true, &usage.Lately{Load: 2, Free: 1 << 30}), self},
			Totals{Nodes: 3, Known: 3, Slots: 6, Busy: 2, Measured: 2, Memory: 16 << 30, Free: 3 << 30, Load: 3.25}},
		"more is free than there is": {[]NodeInfo{node(1, 0, "", true, &usage.Lately{Free: math.MaxInt64})}, Totals{Nodes: 1, Known: 1, Slots: 1, Measured: 1, Memory: 8 << 30, Free: 8 << 30}},
		"a load that cannot be":      {[]NodeInfo{node(1, 0, "", true, &usage.Lately{Load: math.Inf(1), Free: 1})}, Totals{Nodes: 1, Known: 1, Slots: 1}},
	} {
		if got := Sum(e.nodes); got != e.want {
			t.Errorf("%s: got %+v, want %+v", about, got, e.want)
		}
	}
}
