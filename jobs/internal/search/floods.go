package search

import (
	"time"

	"zorilla/flood"
	"zorilla/jobs/internal/timers"
	"zorilla/vicinity"
)

// floods is how far the latest flood has come, and when the next one is due.
type floods struct {
	around   *Surroundings
	adaptive bool                // floods are extended
	schedule flood.Search        // of floods
	frontier flood.Frontier      // of the latest flood, which is current
	others   []vicinity.Measured // all, if it asks them directly
	byLinks  bool                // some did not answer who were asked directly: others may reach them
	Current  flood.Flood
	sent     int                  // the number of its round
	reached  map[vicinity.ID]bool // in the last round

	horizon   time.Duration // more workers are welcome if they are nearer; 0 = no more
	fruitless int           // nodes below the horizon that were reached since one of them offered
	overdue   bool          // the flood is extended even if busy nodes will have room soon

	FloodedAt time.Time // of the latest flood
	extendAt  time.Time // the flood can be carried on; zero = it cannot
}

const (
	// MaxExtend bounds how long a job that has enough offers looks for nearer
	// ones; it is well below their lease.
	MaxExtend = time.Second
	// MaxFruitless bounds how many nodes that are near enough such a job
	// reaches without an offer: near nodes that are all busy must not cost a
	// flood of them all.
	MaxFruitless = 1024
	// maxMeet bounds the near members to which a flood is carried that did not
	// reach them, at a time.
	maxMeet = 64
)

// Again looks for workers in the place of lost ones.
func (f *floods) Again(now time.Time) { f.schedule.Reset(now) }

// open reports whether the flood can be extended to nodes that have not been
// reached, beyond nodes nearer than a horizon.
func (f *floods) open(now time.Time, horizon time.Duration) bool {
	return f.adaptive && f.frontier.Open(now, horizon) && !f.everybodyAnswered()
}

// everybodyAnswered reports whether all members have answered the latest flood.
func (f *floods) everybodyAnswered() bool { return f.frontier.Cost().Reached+1 >= f.around.Members() }

// mayExtend reports whether somebody below the horizon may still be found. A
// search that has enough offers does not go on for ever.
func (f *floods) mayExtend(now time.Time) bool {
	return f.open(now, f.horizon) && f.fruitless < MaxFruitless && now.Before(f.FloodedAt.Add(MaxExtend))
}

// extended returns when a flood that may be extended has brought more: not at
// once, since it may have to wait for nodes that are free soon.
func (f *floods) extended(now time.Time) time.Time {
	return timers.Later(now.Add(time.Millisecond), f.frontier.Due(now, f.horizon))
}

// meet has the flood carried to members that are known to be nearer than the
// horizon, though it found no way to them: all links of a small site may lead to
// nodes farther away than that.
func (f *floods) meet() {
	if !f.adaptive || f.horizon <= 0 {
		return
	}
	for _, m := range f.around.Near(f.horizon, maxMeet) {
		f.frontier.Meet(m.ID, m.RTT)
	}
}

// Paused reports whether the next flood was put off, since nobody else is here.
func (f *floods) Paused() bool { return f.schedule.IsOff() }

// ResumeAt has a paused search flood at a time, since somebody has come, or sooner if that would
// have been due.
func (f *floods) ResumeAt(at time.Time) { f.schedule.PutOff(at) }

// lastAsked is when nodes were asked last of whom it is not known that they have answered;
// zero if there are none.
func (f *floods) lastAsked() time.Time {
	switch {
	case f.frontier.IsDirect():
		return time.Time{}
	case f.adaptive:
		return timers.Later(f.FloodedAt, f.frontier.Sent())
	}
	return f.FloodedAt
}
