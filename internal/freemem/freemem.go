// Package freemem gives memory back to the system that a process needed for a while. Go does so by
// itself, but keeps much of what a burst took, and for many minutes.
package freemem

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
	var f freer
	look := time.NewTicker(pause)
	defer look.Stop()
	for {
		select {
		case <-look.C:
			f.step(allocated, debug.FreeOSMemory)
		case <-ctx.Done():
			return
		}
	}
}

// freer frees memory. What it goes by is how much was allocated, since the memory that a process
// has is as much after a burst as during it.
type freer struct {
	at uint64 // bytes allocated since the start of the process, when memory was freed last
}

// step frees memory if the process has done something since it did so last. A process that goes
// on doing so collects its garbage much more often than that.
func (f *freer) step(allocated func() uint64, free func()) {
	if allocated()-f.at < least {
		return
	}
	free()
	f.at = allocated()
}

// allocated is how many bytes were since the process was started.
func allocated() uint64 {
	list := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(list)
	return list[0].Value.Uint64()
}
