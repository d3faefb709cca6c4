package claims

// Cores are the processors of a node of which workers are given some of their own.
type Cores struct {
	All   []int       // by their numbers; nil = workers share all
	bound map[int]int // workers that have it
}

// Take gives n of them to a worker, or none at all if fewer are left.
func (c *Cores) Take(n int) []int {
	var taken []int
	for _, i := range c.All {
		if c.bound[i] == 0 && len(taken) < n {
			taken = append(taken, i)
		}
	}
	if len(taken) < n {
		return nil
	}
	c.Keep(taken)
	return taken
}

// Keep counts those of a worker of an earlier life of this node.
func (c *Cores) Keep(taken []int) {
	if c.bound == nil {
		c.bound = map[int]int{}
	}
	for _, i := range taken {
		c.bound[i]++
	}
}

// Give takes the processors of a worker that has ended back.
func (c *Cores) Give(taken []int) {
	for _, i := range taken {
		c.bound[i]--
	}
}

// TakeGPUs gives n GPUs of the node to a worker, by number.
func (c *claimed) TakeGPUs(n int) []int {
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
func (c *claimed) GiveGPUs(taken []int) {
	for _, i := range taken {
		c.gpus[i]--
	}
}
