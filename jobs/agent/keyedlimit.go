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

// keyedLimit is a semaphore for each job, and one for all. Its zero value is free.
type keyedLimit struct {
	mu  sync.Mutex
	of  map[jobs.ID]int
	all int
}

// acquire takes a place for a job, if it has fewer than most, and all jobs have fewer than all. The
// caller must release it then.
func (c *keyedLimit) acquire(id jobs.ID, most, all int) bool {
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

func (c *keyedLimit) release(id jobs.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all--
	if c.of[id]--; c.of[id] == 0 {
		delete(c.of, id)
	}
}
