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
	least = 16 << 20    // bytes that were allocated meanwhile, for it to be worth it
)

// Run looks at the memory of this process once a minute, until ctx ends.
func Run(ctx context.Context) {
	var t tide
	look := time.NewTicker(pause)
	defer look.Stop()
	for {
		select {
		case <-look.C:
			t.step(allocated, debug.FreeOSMemory)
		case <-ctx.Done():
			return
		}
	}
}

// tide is how much the process had allocated since its start when it gave back what it could.
// How much it has says less: after a burst that is as much as during it.
type tide struct{ at uint64 }

// step frees memory if the process has done something since it did so last. A process that goes
// on doing so collects its garbage much more often than that.
func (t *tide) step(allocated func() uint64, free func()) {
	if allocated()-t.at < least {
		return
	}
	free()
	t.at = allocated()
}

// allocated is how many bytes were since the process was started.
func allocated() uint64 {
	list := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(list)
	return list[0].Value.Uint64()
}
