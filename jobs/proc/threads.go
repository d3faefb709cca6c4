package proc

import (
	"bytes"
	"os"
	"strconv"
)

// Threads returns how many threads all processes of a user have, as far as that can be seen:
// the kernel counts these against RLIMIT_NPROC.
func Threads(uid int) (n int) {
	for _, pid := range All() {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
		if err == nil && statusNumber(b, "Uid") == uid {
			n += max(1, statusNumber(b, "Threads"))
		}
	}
	return n
}

// statusNumber returns the first number of a line of /proc/PID/status, -1 if there is none.
func statusNumber(status []byte, name string) int {
	_, rest, _ := bytes.Cut(status, []byte("\n"+name+":"))
	f := bytes.Fields(rest[:min(len(rest), 100)])
	if len(f) == 0 {
		return -1
	}
	n, err := strconv.Atoi(string(f[0]))
	if err != nil {
		return -1
	}
	return n
}
