package calendar

import "zorilla/jobs"

// Supply is what a node has, or has left.
type Supply struct {
	Slots  int   `json:"slots"`
	Memory int64 `json:"memory,omitempty"` // bytes
	Disk   int64 `json:"disk,omitempty"`   // bytes
	GPUs   int   `json:"gpus,omitempty"`
}

// Minus returns what is left beside n workers.
func (s Supply) Minus(w jobs.Needs, n int) Supply {
	s.Slots -= n * w.Slots
	s.Memory -= int64(n) * w.Memory
	s.Disk -= int64(n) * w.Disk
	s.GPUs -= n * w.GPUs
	return s
}

// Beside returns what is left beside what is used.
func (s Supply) Beside(used Supply) Supply {
	return Supply{s.Slots - used.Slots, s.Memory - used.Memory, s.Disk - used.Disk, s.GPUs - used.GPUs}
}

// plus returns both together.
func (s Supply) plus(o Supply) Supply {
	return Supply{s.Slots + o.Slots, s.Memory + o.Memory, s.Disk + o.Disk, s.GPUs + o.GPUs}
}

// Limited returns no more of each than another supply has.
func (s Supply) Limited(most Supply) Supply {
	return Supply{min(s.Slots, most.Slots), min(s.Memory, most.Memory), min(s.Disk, most.Disk), min(s.GPUs, most.GPUs)}
}

// atLeast returns no less of each than another supply has.
func (s Supply) atLeast(o Supply) Supply {
	return Supply{max(s.Slots, o.Slots), max(s.Memory, o.Memory), max(s.Disk, o.Disk), max(s.GPUs, o.GPUs)}
}

// Holds reports whether it is enough for another one.
func (s Supply) Holds(o Supply) bool {
	return s.Slots >= o.Slots && (s.Memory >= o.Memory || o.Memory == 0) && (s.Disk >= o.Disk || o.Disk == 0) && (s.GPUs >= o.GPUs || o.GPUs == 0)
}

// Lacks reports whether more than there is was taken of something that such a
// worker needs.
func (s Supply) Lacks(w jobs.Needs) bool {
	return s.Slots < 0 || s.Memory < 0 && w.Memory > 0 || s.Disk < 0 && w.Disk > 0 || s.GPUs < 0 && w.GPUs > 0
}

// Fits returns how many such workers it is enough for.
func (s Supply) Fits(w jobs.Needs) int {
	n := max(s.Slots, 0) / w.Slots
	if w.Memory > 0 {
		n = int(min(int64(n), max(s.Memory, 0)/w.Memory))
	}
	if w.Disk > 0 {
		n = int(min(int64(n), max(s.Disk, 0)/w.Disk))
	}
	if w.GPUs > 0 {
		n = min(n, max(s.GPUs, 0)/w.GPUs)
	}
	return n
}
