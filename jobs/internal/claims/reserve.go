package claims

import (
	"time"

	"zorilla/jobs/internal/wire"
)

// Reserve is what is kept free of the disk, and how the disk is.
type Reserve struct {
	Keep  int64 // bytes
	Full  bool  // less than that was free, and no tenth more since
	Hangs bool  // a small write waits for it, and has for too long
}

// Answers notes whether the disk answers. If it does not, what is offered is taken back.
func Answers(c *Claims, now time.Time, yes bool) {
	c.expire(now)
	if c.Disk.Hangs = !yes; yes {
		c.wakeQueue()
		return
	}
	c.voids.endAll(now, c.Holds, wire.ReasonHangs)
}

// look returns how much of what is free is for workers.
func (r *Reserve) look(free int64) (forWorkers int64) {
	forWorkers = max(free-r.Keep, 0)
	r.Full = free < r.Keep || r.Full && forWorkers < r.Keep/10
	return forWorkers
}
