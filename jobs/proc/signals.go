package proc

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Heeds reports whether a process handles a signal: another one would be ended by
// it. That it blocks one says nothing: shells do for a moment whenever they fork.
func Heeds(pid int, sig unix.Signal) bool {
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
