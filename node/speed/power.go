package speed

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// The kernel goes over 128 KiB, which fit into the second cache of any server: for each
// number a product of integers, one of floating point, and a read at a place that the
// former names. Whoever changes it changes what every power means.
const (
	numbers = 16 << 10
	// sweeps over all numbers are a part: some 17 ms of a core whose power is 1000.
	sweeps = 500
	parts  = 3
	// unit is how many numbers a second such a core does.
	unit = 500e6
)

// Power measures a core: the best of three parts, some 50 ms in all, in units of which a
// core of a server with 2.4 GHz has 1000. It is 0 if the clock stands still.
func Power(now func() time.Time) int64 {
	list := make([]float64, numbers)
	run(list, 1)
	best := 0.0
	for range parts {
		begun := now()
		run(list, sweeps)
		if took := now().Sub(begun).Seconds(); took > 0 {
			best = max(best, numbers*sweeps/took)
		}
	}
	return int64(best/unit*1000 + 0.5)
}

// Measure is Power by the processor time of this thread, so that waiting for a processor, as
// where several nodes of one machine measure at the same time, does not count.
func Measure() int64 {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return Power(func() time.Time {
		var at unix.Timespec
		if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &at) != nil {
			return time.Now()
		}
		return time.Unix(at.Unix())
	})
}

// run returns a sum, so that no compiler leaves the work out.
func run(list []float64, sweeps int) (sum float64) {
	x := uint64(88172645463325252)
	for range sweeps {
		for i := range list {
			x = x*6364136223846793005 + 1442695040888963407
			list[i] = list[i]*0.75 + float64(x>>40)*0x1p-24
			sum += list[x>>50%numbers]
		}
	}
	return sum
}
