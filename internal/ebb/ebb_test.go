package ebb

import (
	"runtime"
	"runtime/debug"
	"testing"
)

func TestFreesAfterABurstOnly(t *testing.T) {
	const mib = 1 << 20
	var tide tide
	now, frees := uint64(0), 0
	for i, e := range []struct {
		has, left uint64 // in MiB; left once it was freed
		frees     bool
	}{
		{30, 20, true}, // the start
		{24, 20, false},
		{27, 20, false},
		{29, 20, true},
		{200, 100, true}, // all of the rest is in use
		{120, 100, false},
		{40, 40, false}, // Go has given it back
		{49, 40, false},
		{51, 40, true},
	} {
		before := frees
		now = e.has * mib
		tide.step(func() uint64 { return now }, func() { frees++; now = e.left * mib })
		if (frees > before) != e.frees {
			t.Errorf("step %d, %d MiB: frees is %t", i, e.has, !e.frees)
		}
	}
}

func TestGivesBack(t *testing.T) {
	const burst = 64 << 20
	debug.FreeOSMemory()
	before := held()
	all := make([]byte, burst)
	for i := range all {
		all[i] = 1
	}
	runtime.KeepAlive(all)
	if has := held(); has < before+burst/2 {
		t.Fatalf("%d bytes are held after %d, and %d more", has, before, burst)
	}
	tide := tide{low: before}
	tide.step(held, debug.FreeOSMemory)
	if has := held(); has > before+burst/2 || tide.low != has {
		t.Errorf("%d bytes are held, before it was %d", has, before)
	}
}
