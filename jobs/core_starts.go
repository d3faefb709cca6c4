package jobs

import "time"

// unable tells why workers cannot be started now, or "".
func (c *Core) unable() string {
	if c.cfg.Unable == nil {
		return ""
	}
	return c.cfg.Unable()
}

// decline mirrors work.decline, and the end of such a worker.
func (c *Core) decline(now time.Time, w *coreWork, k *coreWorker, why string) {
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

// unheard mirrors work.unheard.
func (c *Core) unheard(now time.Time, w *coreWork) {
	var drop []RankAttempt
	silent := now.Sub(w.heard)
	for _, k := range w.workers {
		switch {
		case silent > orphanLimit:
			drop = append(drop, k.RankAttempt)
		case silent > partLease && !k.started && k.state != WorkerLost:
			c.decline(now, w, k, reasonSilent)
		}
	}
	if len(drop) > 0 {
		c.dropRanks(now, w, drop)
	}
}
