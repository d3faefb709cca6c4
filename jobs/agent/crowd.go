package agent

import (
	"sync"

	"zorilla/jobs"
)

// How many commands there are beside workers at a time.
const (
	maxBeside  = 256  // beside those of one job at this node
	maxRelayed = 1024 // that other nodes have begun here, or are passed on for them
)

// crowd counts who is there, by job and together. Its zero value is empty.
type crowd struct {
	mu  sync.Mutex
	of  map[jobs.ID]int
	all int
}

// enter lets one more of a job in, if there are fewer than most, and fewer than all of all
// jobs. It must leave then.
func (c *crowd) enter(id jobs.ID, most, all int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of[id] >= most || c.all >= all {
		return false
	}
	if c.of == nil {
		c.of = map[jobs.ID]int{}
	}
	c.of[id]++
	c.all++
	return true
}

func (c *crowd) leave(id jobs.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all--
	if c.of[id]--; c.of[id] == 0 {
		delete(c.of, id)
	}
}
