package process

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// heardEvery bounds how often the supervisor is told that the origin is there.
const heardEvery = 30 * time.Second

// Heard tells the supervisor only often enough for its limit.
func (w *worker) Heard() {
	limit := w.order.Spec.OrphanLimit
	if limit <= 0 {
		return
	}
	w.mu.Lock()
	now := time.Now()
	due := w.hearing.IsZero() || now.Sub(w.hearing) >= min(limit/20, heardEvery)
	if due {
		w.heard, w.hearing = true, now
	}
	w.mu.Unlock()
	if due {
		w.poke()
	}
}

// Signal implements Worker.
func (w *worker) Signal(number int) {
	m := message{Kind: kindSignal, Signal: number}
	if m.check() != nil {
		return
	}
	w.mu.Lock()
	w.signal = m
	w.mu.Unlock()
	w.poke()
}

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
