package process

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"
)

// procID names a process for good: numbers of processes come again, and the
// clock ticks of Start begin anew with each boot.
type procID struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // clock ticks after boot
	Boot  string `json:"boot"`
}

// identify returns the identity of a living process.
func identify(pid int) (procID, error) {
	st, err := readStat(pid)
	if err != nil {
		return procID{}, err
	}
	boot, err := bootID()
	return procID{PID: pid, Start: st.start, Boot: boot}, err
}

// bootID names the time since the machine was started.
func bootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b)), err
}

// alive reports whether the very process still exists and is not a zombie.
func (p procID) alive() bool {
	if p.PID <= 0 {
		return false
	}
	if now, err := identify(p.PID); err != nil || now != p {
		return false
	}
	st, err := readStat(p.PID)
	return err == nil && st.state != 'Z' && st.state != 'X'
}

// stat is the part of /proc/PID/stat that is needed here.
type stat struct {
	state   byte
	parent  int
	session int
	start   uint64
}

func readStat(pid int) (stat, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return stat{}, err
	}
	return parseStat(b)
}

// parseStat reads the fields after the command's name, which may itself hold
// spaces and parentheses.
func parseStat(b []byte) (stat, error) {
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(f) < 20 || len(f[0]) != 1 {
		return stat{}, errors.New("process status is not as expected")
	}
	parent, err1 := strconv.Atoi(string(f[1]))
	session, err2 := strconv.Atoi(string(f[3]))
	start, err3 := strconv.ParseUint(string(f[19]), 10, 64)
	return stat{state: f[0][0], parent: parent, session: session, start: start}, errors.Join(err1, err2, err3)
}

// isClosed reports whether a channel was closed that nothing is sent on.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
