package claims

import (
	"time"

	"zorilla/jobs"
)

// Supply is what a node has, or has left.
type Supply struct {
	Slots  int
	memory int64 // bytes
	disk   int64 // bytes
	GPUs   int
}

// minus returns what is left beside n workers.
func (s Supply) minus(w jobs.Needs, n int) Supply {
	s.Slots -= n * w.Slots
	s.memory -= int64(n) * w.Memory
	s.disk -= int64(n) * w.Disk
	s.GPUs -= n * w.GPUs
	return s
}

// limited returns no more of each than another supply has.
func (s Supply) limited(most Supply) Supply {
	return Supply{min(s.Slots, most.Slots), min(s.memory, most.memory), min(s.disk, most.disk), min(s.GPUs, most.GPUs)}
}

// holds reports whether it is enough for another one.
func (s Supply) holds(o Supply) bool {
	return s.Slots >= o.Slots && (s.memory >= o.memory || o.memory == 0) && (s.disk >= o.disk || o.disk == 0) && (s.GPUs >= o.GPUs || o.GPUs == 0)
}

// beside returns what is left beside what is used.
func (s Supply) beside(used Supply) Supply {
	return Supply{s.Slots - used.Slots, s.memory - used.memory, s.disk - used.disk, s.GPUs - used.GPUs}
}

// lacks reports whether more than there is was taken of something that such a
// worker needs.
func (s Supply) lacks(w jobs.Needs) bool {
	return s.Slots < 0 || s.memory < 0 && w.Memory > 0 || s.disk < 0 && w.Disk > 0 || s.GPUs < 0 && w.GPUs > 0
}

// fits returns how many such workers it is enough for.
func (s Supply) fits(w jobs.Needs) int {
	n := max(s.Slots, 0) / w.Slots
	if w.Memory > 0 {
		n = int(min(int64(n), max(s.memory, 0)/w.Memory))
	}
	if w.Disk > 0 {
		n = int(min(int64(n), max(s.disk, 0)/w.Disk))
	}
	if w.GPUs > 0 {
		n = min(n, max(s.GPUs, 0)/w.GPUs)
	}
	return n
}

// TakeGPUs gives n GPUs of the node to a worker, by number.
func (c *Claims) TakeGPUs(n int) []int {
	var taken []int
	for i := 0; i < c.Has.GPUs && len(taken) < n; i++ {
		if c.gpus[i] == 0 {
			c.gpus[i]++
			taken = append(taken, i)
		}
	}
	return taken
}

// GiveGPUs takes the GPUs of a worker that has ended back.
func (c *Claims) GiveGPUs(taken []int) {
	for _, i := range taken {
		c.gpus[i]--
	}
}

// Adopted counts a worker of an earlier life of this node, which began then.
func (c *Claims) Adopted(job jobs.ID, spec *jobs.Spec, rank int, gpus []int, at time.Time) {
	c.claim(at, job, spec, rank)
	for _, i := range gpus {
		c.gpus[i]++
	}
}
