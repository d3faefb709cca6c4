package jobs

import "time"

// unable tells why workers cannot be started now, or "".
func (c *Core) unable() string {
	if c.cfg.Unable == nil {
		return ""
	}
	return c.cfg.Unable()
}

// decline mirrors work.notBegun at a node where a trial fails, too.
func (c *Core) decline(now time.Time, w *coreWork, k *coreWorker, why string) {
	c.claims.missed(now, why)
	k.state, k.reason, k.declined, k.due = WorkerLost, why, true, time.Time{}
	w.kick = true
	c.claims.freed(w.job, 1, w.spec.needs())
	c.offerQueued(now)
}

// recover mirrors Service.recover.
func (c *Core) recover(now time.Time) {
	if at := c.claims.starts.next; at.IsZero() || now.Before(at) {
		return
	}
	if why := c.unable(); why != "" {
		c.claims.missed(now, why)
		return
	}
	c.claims.worked()
	c.offerQueued(now)
}
