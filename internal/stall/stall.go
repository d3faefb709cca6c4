// Package stall judges silence in a process that may itself have been starved of processor
// time. Such a process finds every deadline passed when it runs again, although what would have
// met them lies unread in its sockets.
package stall

import "time"

const (
	// Late is by how much a process looks too late if it was starved.
	Late = 200 * time.Millisecond
	// CatchUp is how long it then reads what has come meanwhile, before silence counts.
	CatchUp = 500 * time.Millisecond
)

// Guard looks at deadlines. The zero value is ready; it is not safe for use by several goroutines.
type Guard struct {
	now, before time.Time // the latest two times at which it looked
	until       time.Time // the end of catching up; in the past if it does not
}

// Passed reports whether silence has lasted until its deadline. If this is the first look after
// the deadline, and much too late, it reports false until CatchUp is over.
func (g *Guard) Passed(now, deadline time.Time) bool {
	if now.After(g.now) {
		g.before, g.now = g.now, now
	}
	if now.Before(deadline) {
		return false
	}
	if starved := now.Sub(deadline) > Late && !g.before.After(deadline); starved && now.After(g.until) {
		g.until = now.Add(CatchUp)
	}
	return !now.Before(g.until)
}

// Next returns when to look at a deadline: then, or when catching up is over.
func (g *Guard) Next(deadline time.Time) time.Time {
	if g.until.After(deadline) {
		return g.until
	}
	return deadline
}
