package seeds

import (
	"testing"
	"time"
)

// Raced reports whether the race detector is on, which makes tests five to ten
// times slower. A test that does less because of it asks here, in its own
// function: .ci/run finds it by that, and runs it without the detector, too.
const Raced = raced

// Fewer returns most, or few under the race detector.
func Fewer(most, few int) int {
	if Raced {
		return few
	}
	return most
}

// Longer returns a limit of real time: twice as much under the race detector.
func Longer(limit time.Duration) time.Duration {
	if Raced {
		return 2 * limit
	}
	return limit
}

// OneGoroutine skips a simulation under the race detector, which finds nothing
// in a single goroutine.
func OneGoroutine(t *testing.T) {
	t.Helper()
	if Raced {
		t.Skip("one goroutine has nothing to race with; without the race detector this runs")
	}
}
