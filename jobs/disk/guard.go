package disk

import (
	"math"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// The pace of a guard: once a second, the sooner the less is missing to the limit, as
// if it were filled at fillRate, and never more than a twentieth of a processor, or a
// third of the time that a slow disk takes.
const (
	fillRate  = 1 << 30 // bytes per second
	lookLeast = 100 * time.Millisecond
	lookMost  = time.Second
	cpuShare  = 20
	timeShare = 3
)

// Guard watches that directories take no more than a limit.
type Guard struct {
	// All, unless it is nil, reports what is used, to the last byte; false = it cannot. Then
	// the directories are looked at.
	All func() (used int64, ok bool)
	// Held, unless it is nil, reports what else counts: files without a name, as they were at
	// a time that is told, too. With now it looks at once, as far as it can.
	Held func(now bool) (used int64, at time.Time)

	// Shared, unless it is "", is one more directory, which so many have together, each with a
	// guard: what it takes counts for each of them in equal parts.
	Shared  string
	Sharers int

	limit int64
	dirs  []string
	doubt doubt
}

// doubt is that too much was seen together in the directories and without a name. What
// loses its name, or gets one, between two looks counts in both: only what had none
// before and after the look at the directories is sure.
type doubt struct {
	used, held int64
	of         int
	since      time.Time // zero = there is none
}

// NewGuard returns a guard that lets directories take so many bytes together. They
// need not exist yet.
func NewGuard(limit int64, dirs ...string) *Guard { return &Guard{limit: limit, dirs: dirs} }

// Watch calls over, each time that it has seen too much, until done is closed. What the
// directories are used for may change: over gets what of said before the look.
func (g *Guard) Watch(done <-chan struct{}, of func() int, over func(of int)) {
	// The thread's own time is what reports what a look costs.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	timer := time.NewTimer(lookLeast)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-done:
			return
		}
		now, begin, cpu := of(), time.Now(), threadTime()
		used, yes := g.look(now)
		if yes {
			over(now)
		}
		timer.Reset(pace(g.limit-used, threadTime()-cpu, time.Since(begin)))
	}
}

// look returns what is used, and whether that is surely too much.
func (g *Guard) look(of int) (used int64, over bool) {
	if g.All != nil {
		if used, ok := g.All(); ok {
			return used, used > g.limit
		}
	}
	if g.Held == nil {
		used = g.used()
		return used, used > g.limit
	}
	held, at := g.Held(false)
	if d := g.doubt; !d.since.IsZero() && (d.of != of || at.After(d.since)) {
		if g.doubt = (doubt{}); d.of == of && d.used+min(d.held, held) > g.limit {
			return g.limit + 1, true
		}
	}
	used = g.used()
	if used > g.limit {
		return used, true
	}
	if used += held; used <= g.limit {
		return used, false
	}
	if g.doubt.since.IsZero() {
		g.doubt = doubt{used - held, held, of, time.Now()}
	}
	if again, at := g.Held(true); at.After(g.doubt.since) {
		d := g.doubt
		g.doubt = doubt{}
		return used, d.used+min(d.held, again) > g.limit
	}
	return used, false
}

// used is what the directories take, or what is more than the limit.
func (g *Guard) used() int64 {
	used := Used(g.limit, g.dirs...)
	if n := int64(g.Sharers); g.Shared != "" && n > 0 && used <= g.limit {
		used += Used(min(g.limit, (math.MaxInt64-n)/n)*n+n, g.Shared) / n
	}
	return used
}

// pace is how long to wait after a look that has cost so much.
func pace(room int64, cpu, took time.Duration) time.Duration {
	return max(Soon(room), lookLeast, (cpuShare-1)*cpu, (timeShare-1)*took)
}

// glanceLeast is how often who is told what is free, and has nothing to count, looks at most.
const glanceLeast = 20 * time.Millisecond

// Soon is when to look again whether so much room is still there, a second at most.
func Soon(room int64) time.Duration {
	soon := time.Duration(float64(max(room, 0)) / fillRate * float64(time.Second))
	return max(min(soon, lookMost), glanceLeast)
}

// threadTime is how much time of a processor this thread has needed.
func threadTime() time.Duration {
	var used unix.Rusage
	if unix.Getrusage(unix.RUSAGE_THREAD, &used) != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
