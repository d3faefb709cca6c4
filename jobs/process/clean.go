package process

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	stopWithin = 5 * time.Second
	maxRounds  = 200
)

// CleanRoot removes root with all in it, after it has made sure that none of
// its processes lives: it asks a supervisor that is still there to end its
// worker, and kills what does not follow. It refuses a directory that MakeRoot
// did not make; of a copy it touches the files alone, since the processes are
// those of the original. A root that does not exist is fine. With names of files
// to keep it removes all but these, and leaves what MakeRoot makes.
func CleanRoot(root string, keep ...string) error {
	switch _, err := RootOwner(root); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, ErrCopied):
		return CleanFiles(root, keep...)
	case err != nil:
		return err
	}
	var o order
	var ended exitRecord
	// What cannot be read tells of no process: then the record must do.
	err := load(root, orderFile, &o)
	if load(root, exitFile, &ended) != nil { // it is written when no process is left
		if err == nil && o.Spec.Root == root {
			askToEnd(o)
		}
		killLeftovers(root)
	}
	return CleanFiles(root, keep...)
}

// CleanFiles is CleanRoot for a root that has no processes, as that of an emulated
// worker.
func CleanFiles(root string, keep ...string) error {
	if len(keep) == 0 {
		return removeTree(root, markFile)
	}
	if err := emptyTree(root, append([]string{markFile}, keep...)); err != nil {
		return err
	}
	return os.Mkdir(filepath.Join(root, workDir), 0o755)
}

// askToEnd tells a living supervisor to end everything at once, and waits for
// it to go.
func askToEnd(o order) {
	conn, err := dial(o, false)
	if err != nil {
		return
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(stopWithin))
	if writeMessage(conn, message{Kind: kindStop}) == nil {
		_, _ = io.Copy(io.Discard, conn)
	}
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
