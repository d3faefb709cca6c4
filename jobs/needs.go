package jobs

import "time"

// needs is what one worker takes of its node while it lives.
type needs struct {
	slots  int
	memory int64 // bytes; 0 = not said
	disk   int64 // bytes, as memory
	gpus   int
}

func (s *Spec) needs() needs {
	return needs{slots: s.Slots, memory: s.Memory, disk: s.Disk, gpus: s.GPUs}
}

func (ad *Advertisement) needs() needs {
	return needs{slots: ad.Slots, memory: ad.Memory, disk: ad.Disk, gpus: ad.GPUs}
}

// supply is what a node has, or has left.
type supply struct {
	slots  int
	memory int64 // bytes
	disk   int64 // bytes
	gpus   int
}

// minus returns what is left beside n workers.
func (s supply) minus(w needs, n int) supply {
	s.slots -= n * w.slots
	s.memory -= int64(n) * w.memory
	s.disk -= int64(n) * w.disk
	s.gpus -= n * w.gpus
	return s
}

// beside returns what is left beside what is used.
func (s supply) beside(used supply) supply {
	return supply{s.slots - used.slots, s.memory - used.memory, s.disk - used.disk, s.gpus - used.gpus}
}

// lacks reports whether more than there is was taken of something that such a
// worker needs.
func (s supply) lacks(w needs) bool {
	return s.slots < 0 || s.memory < 0 && w.memory > 0 || s.disk < 0 && w.disk > 0 || s.gpus < 0 && w.gpus > 0
}

// fits returns how many such workers it is enough for.
func (s supply) fits(w needs) int {
	n := max(s.slots, 0) / w.slots
	if w.memory > 0 {
		n = int(min(int64(n), max(s.memory, 0)/w.memory))
	}
	if w.disk > 0 {
		n = int(min(int64(n), max(s.disk, 0)/w.disk))
	}
	if w.gpus > 0 {
		n = min(n, max(s.gpus, 0)/w.gpus)
	}
	return n
}

// takeGPUs gives n GPUs of the node to a worker, by number.
func (c *claims) takeGPUs(n int) []int {
	var taken []int
	for i := 0; i < c.has.gpus && len(taken) < n; i++ {
		if c.gpus[i] == 0 {
			c.gpus[i]++
			taken = append(taken, i)
		}
	}
	return taken
}

// giveGPUs takes the GPUs of a worker that has ended back.
func (c *claims) giveGPUs(taken []int) {
	for _, i := range taken {
		c.gpus[i]--
	}
}

// adopted counts a worker of an earlier life of this node, which began then.
func (c *claims) adopted(job ID, spec *Spec, gpus []int, at time.Time) {
	c.claim(at, job, 1, spec)
	for _, i := range gpus {
		c.gpus[i]++
	}
}
