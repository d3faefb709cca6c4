// Package ebb gives memory back to the system that a process needed for a while. Go does so by
// itself, but keeps much of what a burst took, and for many minutes.
package ebb

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	pause = time.Minute // between two looks
	least = 8 << 20     // bytes that are worth it
)

// Run looks at the memory of this process once a minute, until ctx ends.
func Run(ctx context.Context) {
	var t tide
	look := time.NewTicker(pause)
	defer look.Stop()
	for {
		select {
		case <-look.C:
			t.step(held, debug.FreeOSMemory)
		case <-ctx.Done():
			return
		}
	}
}

// tide is what the process had when it had given back all that it could.
type tide struct{ low uint64 }

// step frees memory if the process has taken much more since it did so last.
func (t *tide) step(held func() uint64, free func()) {
	if now := held(); now < t.low+max(least, t.low/4) {
		t.low = min(t.low, now)
		return
	}
	free()
	t.low = held()
}

// held is how many bytes Go has of the system.
func held() uint64 {
	list := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(list)
	return list[0].Value.Uint64() - list[1].Value.Uint64()
}
