package process

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// hint sends a signal to the processes below this one that wait for it: a
// process that has not got so far would be ended by it.
func hint(sig unix.Signal) {
	for _, pid := range descendants(os.Getpid()) {
		if heeds(pid, sig) {
			_ = unix.Kill(pid, sig)
		}
	}
}

// heeds reports whether a process handles a signal. That it blocks one says
// nothing: shells do for a moment whenever they fork.
func heeds(pid int, sig unix.Signal) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return false
	}
	for line := range bytes.Lines(b) {
		name, set, _ := bytes.Cut(bytes.TrimSpace(line), []byte(":\t"))
		if string(name) != "SigCgt" {
			continue
		}
		mask, err := strconv.ParseUint(string(set), 16, 64)
		return err == nil && mask>>(sig-1)&1 == 1
	}
	return false
}
