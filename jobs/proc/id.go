// Package proc reads what the kernel tells of processes in /proc.
package proc

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// ID names a process for good: numbers of processes come again, and the
// clock ticks of Start begin anew with each boot.
type ID struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // clock ticks after boot
	Boot  string `json:"boot"`
}

// Identify returns the identity of a living process.
func Identify(pid int) (ID, error) {
	st, err := ReadStat(pid)
	if err != nil {
		return ID{}, err
	}
	boot, err := BootID()
	return ID{PID: pid, Start: st.Start, Boot: boot}, err
}

// BootID names the time since the machine was started.
func BootID() (string, error) { return bootID() }

var bootID = sync.OnceValues(func() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b)), err
})

// Alive reports whether the very process still exists and is not a zombie.
func (p ID) Alive() bool {
	if p.PID <= 0 {
		return false
	}
	if now, err := Identify(p.PID); err != nil || now != p {
		return false
	}
	st, err := ReadStat(p.PID)
	return err == nil && st.State != 'Z' && st.State != 'X'
}

// Stat is the part of /proc/PID/stat that is of use here.
type Stat struct {
	State   byte
	Parent  int
	Session int
	Start   uint64 // clock ticks after boot
	CPU     time.Duration
}

// tick is the unit of time in /proc, the same on all systems that Go runs on.
const tick = 10 * time.Millisecond

// ReadStat reads the status of a process. CPU is the processor time that all its threads have used.
func ReadStat(pid int) (Stat, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return Stat{}, err
	}
	return parseStat(b)
}

// parseStat reads the fields after the command's name, which may itself hold
// spaces and parentheses.
func parseStat(b []byte) (Stat, error) {
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(f) < 20 || len(f[0]) != 1 {
		return Stat{}, errors.New("process status is not as expected")
	}
	parent, err1 := strconv.Atoi(string(f[1]))
	session, err2 := strconv.Atoi(string(f[3]))
	start, err3 := strconv.ParseUint(string(f[19]), 10, 64)
	user, err4 := strconv.ParseInt(string(f[11]), 10, 64)
	system, err5 := strconv.ParseInt(string(f[12]), 10, 64)
	cpu := time.Duration(user+system) * tick
	return Stat{State: f[0][0], Parent: parent, Session: session, Start: start, CPU: cpu}, errors.Join(err1, err2, err3, err4, err5)
}

// User returns the number of the user that a process is, -1 if that cannot be seen.
func User(pid int) int {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return -1
	}
	return statusNumber(b, "Uid")
}
