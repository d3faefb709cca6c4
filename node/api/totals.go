package api

// Totals are nodes together, as far as they have told how they are.
type Totals struct {
	Nodes int // all
	Known int // that have told
	Slots int // of these
	Busy  int // in use or held
	Shut  int // not busy, and not given to workers either: paused, outside hours, draining or broken

	// Of those that have told of their memory and load, too:
	Measured int
	Memory   int64 // bytes
	Free     int64 // at most Memory
	Load     float64
}

// Sum sums nodes up. What they tell may be wrong, so no node counts for more than its size.
func Sum(nodes []NodeInfo) Totals {
	t := Totals{Nodes: len(nodes)}
	for i := range nodes {
		n := &nodes[i]
		if !n.Loaded() || n.Slots <= 0 {
			continue
		}
		busy := min(max(0, n.Busy), n.Slots)
		t.Known++
		t.Slots += n.Slots
		t.Busy += busy
		if n.State != "" {
			t.Shut += n.Slots - busy
		}
		if l := n.Lately; l.Sound() && l.Free > 0 && n.Memory > 0 {
			t.Measured++
			t.Memory += n.Memory
			t.Free += min(l.Free, n.Memory)
			t.Load += l.Load
		}
	}
	return t
}
