package proc

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// lax is how late timers of Unhurried may be. Of Go's runtime one thread sleeps for 20
	// microseconds at a time to see what the others do, which takes more of a processor than
	// what a launcher has to do for a brief command.
	lax = time.Millisecond
	// usual is how late the kernel lets timers be unless it is asked for something else.
	usual = 50 * time.Microsecond
)

// Unhurried runs f on a thread whose children's timers may be late, so that they can be woken
// together. They and theirs inherit that.
func Unhurried(f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if was, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0); err == nil && was > 0 {
		defer slacken(time.Duration(was))
		slacken(lax)
	}
	f()
}

// Hurry has what the calling thread starts from now on sleep as exactly as is usual.
func Hurry() { slacken(usual) }

// slacken sets how late timers of the calling thread may be, and later of its children.
func slacken(by time.Duration) {
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(by.Nanoseconds()), 0, 0, 0) // it knows no failure
}
