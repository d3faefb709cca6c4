package process

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"zorilla/internal/codec"
	"zorilla/jobs/proc"
)

const (
	// lookEvery is how often awaitSupervisor looks for an exit record, and at stop.
	lookEvery = 20 * time.Millisecond
	// launcherWithin is how long a launcher may take to end everything.
	launcherWithin = 2 * time.Second
	// maxRounds bounds how often killLeftovers looks for more.
	maxRounds = 200
)

// awaitSupervisor returns true when the worker of root has an exit record, or its
// supervisor has ended, or root was removed, or false when stop says so before.
func awaitSupervisor(root string, stop func() bool) bool {
	ended := func() bool { return isNoted(root, exitEntry) || isGone(root) }
	if ended() {
		return true
	}
	var rec record
	for {
		err := load(root, recordEntry, &rec)
		if err == nil {
			break
		}
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, codec.ErrMalformed) { // there was none yet, or never
			return true
		}
		if stop() {
			return false
		}
		time.Sleep(lookEvery) // out of descriptors: that may pass
	}
	id := rec.Supervisor
	fd, err := unix.PidfdOpen(id.PID, 0)
	if err == nil {
		defer unix.Close(fd)
	}
	for id.Alive() {
		if err != nil { // before Linux 5.3
			time.Sleep(lookEvery)
		} else {
			_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(lookEvery.Milliseconds()))
		}
		if ended() {
			return true
		}
		if stop() {
			return !id.Alive()
		}
	}
	return true
}

// SupervisorOf returns the process that looks after the worker of root, 0 if none does
// any more.
func SupervisorOf(root string) int {
	var rec record
	if load(root, recordEntry, &rec) != nil || !rec.Supervisor.Alive() {
		return 0
	}
	return rec.Supervisor.PID
}

// UserOf returns the user that the worker of root was given, -1 if it was given none, or
// has not been started.
func UserOf(root string) int {
	spec := Spec{UID: -1}
	if loadSpec(root, &spec) != nil {
		return -1
	}
	return spec.UID
}

// isGone reports whether somebody has removed the root of a worker.
func isGone(root string) bool { return isMissing(root, specEntry) }

// killLeftovers kills, for a root whose supervisor is dead or does not obey,
// the supervisor and what is recognisable as its worker's: the recorded
// process and its session, and processes with an environment that names root.
// It returns when none is left.
func killLeftovers(root string) {
	if _, err := RootOwner(root); err != nil { // a copy: they are the original's
		return
	}
	var rec record
	var spec Spec
	_ = load(root, recordEntry, &rec)
	_ = loadSpec(root, &spec)
	// A launcher that is left alone finds more than can be recognised from here.
	if id := rec.Supervisor; rec.Launcher.Alive() && id.Alive() {
		kill(id.PID, id.Alive)
	}
	if !awaitEnd(rec.Launcher, launcherWithin) && rec.Launcher.Alive() {
		kill(rec.Launcher.PID, rec.Launcher.Alive)
	}
	if !spec.terms.Groups.IsZero() {
		spec.terms.Groups.Kill(groupName(root))
	}
	marks := envMarks(root, spec.Env)
	for range maxRounds {
		found := false
		for _, pid := range proc.All() {
			if pid != os.Getpid() && belongs(pid, rec, marks) {
				found = kill(pid, func() bool { return belongs(pid, rec, marks) }) || found
			}
		}
		if !found {
			return
		}
	}
}

// awaitEnd waits for the end of a process, and reports whether it has ended.
func awaitEnd(id proc.ID, limit time.Duration) bool {
	fd, err := unix.PidfdOpen(id.PID, 0)
	if err != nil { // gone, or before Linux 5.3
		return !id.Alive()
	}
	defer unix.Close(fd)
	if id.Alive() {
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(limit.Milliseconds()))
	}
	return !id.Alive()
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
	id, err := proc.Identify(pid)
	if err != nil {
		return false
	}
	st, err := proc.ReadStat(pid)
	if err != nil || st.State == 'Z' || st.State == 'X' {
		return false
	}
	switch {
	case id == rec.Supervisor || id == rec.Launcher || id == rec.Worker:
		return true
	case rec.Worker.PID > 0 && rec.Worker.Boot == id.Boot && st.Session == rec.Worker.PID && id.Start >= rec.Worker.Start:
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

// isClosed reports whether a channel was closed that nothing is sent on.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
