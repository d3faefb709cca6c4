package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// lookEvery is how often awaitSupervisor looks at stop; a tenth of that where
	// the kernel cannot tell of the end.
	lookEvery = 100 * time.Millisecond
	// maxRounds bounds how often killLeftovers looks for more.
	maxRounds = 200
)

// awaitSupervisor returns true when the supervisor of root has ended, or false
// when stop is closed before.
func awaitSupervisor(root string, stop <-chan struct{}) bool {
	id, ok := supervisorOf(root)
	if !ok {
		return true
	}
	fd, err := unix.PidfdOpen(id.PID, 0)
	if err == nil {
		defer unix.Close(fd)
	}
	for id.alive() {
		if err != nil { // before Linux 5.3
			select {
			case <-time.After(lookEvery / 10):
			case <-stop:
				return false
			}
			continue
		}
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(lookEvery.Milliseconds()))
		if isClosed(stop) {
			return !id.alive()
		}
	}
	return true
}

// supervisorOf finds the living supervisor of root: by its record, or, before it
// has written one, by its arguments.
func supervisorOf(root string) (procID, bool) {
	var rec record
	if load(root, recordFile, &rec) == nil {
		return rec.Supervisor, rec.Supervisor.alive()
	}
	args := strings.Join([]string{supervisorName, "run", root, ""}, "\x00")
	for _, pid := range processes() {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil || string(b) != args {
			continue
		}
		if id, err := identify(pid); err == nil && id.alive() {
			return id, true
		}
	}
	return procID{}, false
}

// killLeftovers kills, for a root whose supervisor is dead or does not obey,
// the supervisor and what is recognisable as its worker's: the recorded
// process and its session, and processes with an environment that names root.
// It returns when none is left.
func killLeftovers(root string) {
	if _, err := RootOwner(root); err != nil { // a copy: they are the original's
		return
	}
	var rec record
	var o order
	_ = load(root, recordFile, &rec)
	_ = load(root, orderFile, &o)
	marks := envMarks(root, o.Spec.Env)
	for range maxRounds {
		found := false
		for _, pid := range processes() {
			if pid != os.Getpid() && belongs(pid, rec, marks) {
				found = kill(pid, func() bool { return belongs(pid, rec, marks) }) || found
			}
		}
		if !found {
			return
		}
	}
}

// envMarks returns the variables that give a worker's processes away. PWD is
// none: somebody who looks at the directory has it, too.
func envMarks(root string, env []string) [][]byte {
	var marks [][]byte
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		if name != "PWD" && name != "OLDPWD" && strings.Contains(value, root) {
			marks = append(marks, []byte(kv))
		}
	}
	return marks
}

func belongs(pid int, rec record, marks [][]byte) bool {
	id, err := identify(pid)
	if err != nil {
		return false
	}
	st, err := readStat(pid)
	if err != nil || st.state == 'Z' || st.state == 'X' {
		return false
	}
	switch {
	case id == rec.Supervisor || id == rec.Worker:
		return true
	case rec.Worker.PID > 0 && rec.Worker.Boot == id.Boot && st.session == rec.Worker.PID && id.Start >= rec.Worker.Start:
		return true
	case len(marks) == 0:
		return false
	}
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	for kv := range bytes.SplitSeq(env, []byte{0}) {
		for _, m := range marks {
			if bytes.Equal(kv, m) {
				return true
			}
		}
	}
	return false
}

// kill kills a process and waits a moment for its end. still is asked once
// the process can no longer be mistaken for another one.
func kill(pid int, still func() bool) bool {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		if !errors.Is(err, unix.ENOSYS) { // gone
			return false
		}
		_ = unix.Kill(pid, unix.SIGKILL) // before Linux 5.3
		time.Sleep(time.Millisecond)
		return true
	}
	defer unix.Close(fd)
	if !still() || unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) != nil {
		return false
	}
	_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 1000)
	return true
}
