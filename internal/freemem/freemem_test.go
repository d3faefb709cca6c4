package freemem

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

func TestFreesAfterABurstOnly(t *testing.T) {
	var f freer
	now, frees := uint64(0), 0
	for i, e := range []struct {
		mib   uint64 // allocated since the last step
		frees bool
	}{{20, true}, {10, false}, {5, false}, {1, true}, {1000, true}, {15, false}, {300, true}, {0, false}} {
		before := frees
		now += e.mib << 20
		f.step(func() uint64 { return now }, func() { frees++ })
		if (frees > before) != e.frees {
			t.Errorf("step %d, %d MiB: frees is %t", i, e.mib, !e.frees)
		}
	}
}

// What was live when memory was freed last is given back, too.
func TestGivesBack(t *testing.T) {
	held := func() uint64 {
		list := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
		metrics.Read(list)
		return list[0].Value.Uint64() - list[1].Value.Uint64()
	}
	const burst = 64 << 20
	var f freer
	f.step(allocated, debug.FreeOSMemory)
	before := held()
	all := make([]byte, burst)
	for i := range all {
		all[i] = 1
	}
	f.step(allocated, debug.FreeOSMemory)
	if has := held(); has < before+burst/2 {
		t.Fatalf("%d bytes are held after %d, and %d more", has, before, burst)
	}
	runtime.KeepAlive(all)
	all = make([]byte, least)
	runtime.KeepAlive(all)
	f.step(allocated, debug.FreeOSMemory)
	if has := held(); has > before+burst/2 {
		t.Errorf("%d bytes are held, before it was %d", has, before)
	}
}
