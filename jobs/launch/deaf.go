package launch

import (
	"fmt"
	"os/signal"
	"unsafe"

	"golang.org/x/sys/unix"
)

// deafen keeps the signals of workers from this process, the first of its PID namespace,
// which gets none that it does not handle. The runtime handles all, and most of them end
// it: a worker of the same user may send them to the thread that is confined as it is.
// Those stay by which the runtime speaks to its own threads; they end nothing. What is
// forked finds all signals as they are by default. That the runtime itself is to ignore
// them first saves each fork a call for each: it resets what it handles.
func deafen() error {
	var byDefault [32]byte // the kernel's struct sigaction
	for sig := unix.Signal(1); sig <= lastSignal; sig++ {
		switch sig {
		case unix.SIGKILL, unix.SIGSTOP, unix.SIGURG, firstRealTime, firstRealTime + 1:
			continue
		}
		signal.Ignore(sig)
		const size = 8 // of a set of signals
		if _, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&byDefault)), 0, size, 0, 0); errno != 0 {
			return fmt.Errorf("ignore signal %d: %w", sig, errno)
		}
	}
	return nil
}

const (
	firstRealTime unix.Signal = 32
	lastSignal    unix.Signal = 64
)
