package process

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"zorilla/jobs/sandbox"
)

// defaultPath is used when the worker's environment has no PATH.
const defaultPath = "/usr/local/bin:/usr/bin:/bin"

// busyFor is how long to wait for a program whose file is still open for
// writing: a process that the node forked meanwhile holds it for a moment.
const busyFor = 2 * time.Second

// runError is why a command could not be run.
type runError struct {
	cause Cause
	text  string
}

func (e *runError) Error() string { return e.text }

func notRun(format string, args ...any) error {
	return &runError{NotRun, fmt.Sprintf(format, args...)}
}

// verdict turns the error of a launch into an exit.
func verdict(err error) Exit {
	if r, ok := errors.AsType[*runError](err); ok {
		return Refused(r.cause, r.text)
	}
	return Refused(Failed, err.Error())
}

// unstarted turns the error of a worker that did not begin to run into an exit.
func unstarted(err error) Exit {
	e := verdict(err)
	if e.Cause == Failed {
		e.Cause = Unstarted
	}
	return e
}

// lookup finds the file of a command. The process is in Root/work.
func lookup(command string, env []string) (string, error) {
	if strings.Contains(command, "/") {
		_, err := os.Stat(command)
		switch {
		case errors.Is(err, fs.ErrNotExist) && filepath.IsAbs(command):
			return "", &runError{NotFound, command + ": no such file on this node"}
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR):
			return "", &runError{NotFound, command + ": no such file in the work directory (-i stages it)"}
		}
		return command, nil
	}
	path := defaultPath
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = v
		}
	}
	found := ""
	for dir := range strings.SplitSeq(path, ":") {
		if !filepath.IsAbs(dir) {
			continue
		}
		file := filepath.Join(dir, command)
		info, err := os.Stat(file)
		if err != nil || info.IsDir() {
			continue
		}
		if info.Mode()&0o111 != 0 {
			return file, nil
		}
		found = file
	}
	if found != "" {
		return found, nil
	}
	return "", &runError{NotFound, fmt.Sprintf("%s: command not found on this node (PATH=%s)", command, path)}
}

// explainExec says for people why the kernel refused to run a file.
func explainExec(command, file string, err error) error {
	info, serr := os.Stat(file)
	switch {
	case serr == nil && info.IsDir():
		return notRun("%s: is a directory", command)
	case errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ELIBBAD):
		return notRun("%s: its interpreter %s does not exist on this node", command, interpreter(file))
	case errors.Is(err, unix.EACCES) && serr == nil && info.Mode()&0o111 == 0:
		return notRun("%s: is not executable (chmod +x)", command)
	case errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM):
		return notRun("%s: permission denied: workers run programs from their work directory, the system directories and what the node exposes (--expose)", command)
	case errors.Is(err, unix.ENOEXEC):
		return notRun("%s: %s", command, explainFormat(file))
	case errors.Is(err, unix.ETXTBSY), errors.Is(err, unix.E2BIG), errors.Is(err, unix.ELOOP):
		return notRun("%s: %v", command, err)
	}
	return fmt.Errorf("%s: cannot be started: %w", command, err)
}

func explainFormat(file string) string {
	f, err := elf.Open(file)
	if err != nil {
		return "not an executable file (a script begins with a line such as #!/bin/sh)"
	}
	defer f.Close()
	machine := strings.ToLower(strings.TrimPrefix(f.Machine.String(), "EM_"))
	return fmt.Sprintf("built for another architecture or not an executable file (%s; this node is %s)", machine, runtime.GOARCH)
}

// interpreter names what a file asks to be run by.
func interpreter(file string) string {
	if f, err := elf.Open(file); err == nil {
		defer f.Close()
		for _, p := range f.Progs {
			if p.Type == elf.PT_INTERP && p.Filesz < 4096 {
				b, _ := io.ReadAll(p.Open())
				return string(bytes.TrimRight(b, "\x00"))
			}
		}
		return "(none named)"
	}
	f, err := os.Open(file)
	if err != nil {
		return "(unknown)"
	}
	defer f.Close()
	head := make([]byte, 256)
	n, _ := io.ReadFull(f, head)
	line, _, _ := bytes.Cut(head[:n], []byte("\n"))
	if bytes.HasSuffix(line, []byte("\r")) {
		return fmt.Sprintf("%q (its lines end as those of Windows do: try dos2unix)", bytes.TrimPrefix(line, []byte("#!")))
	}
	if words := strings.Fields(strings.TrimPrefix(string(line), "#!")); len(words) > 0 {
		return fmt.Sprintf("%q", words[0])
	}
	return "(unknown)"
}

// launch starts the worker with the given descriptors as 0, 1 and 2, and
// returns its process number, which is also that of its session.
func launch(s *Spec, files [3]*os.File) (int, error) {
	path, err := lookup(s.Args[0], s.Env)
	if err != nil {
		return 0, err
	}
	attr := &syscall.ProcAttr{Env: s.Env, Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}}
	for _, f := range files {
		attr.Files = append(attr.Files, f.Fd())
	}
	if runsAs(s) {
		attr.Sys.Credential = &syscall.Credential{Uid: uint32(s.UID), Gid: uint32(s.GID)}
	}
	defer volunteer()()
	// What the node's own parent left open must not reach the worker.
	if err := closeOnExec(); err != nil {
		return 0, err
	}
	type result struct {
		pid int
		err error
	}
	done := make(chan result, 1)
	sandbox.OnOwnThread(func() {
		if err := confine(s, access(s, filepath.Join(s.Root, workDir))); err != nil {
			done <- result{0, err}
			return
		}
		pid, err := syscall.ForkExec(path, s.Args, attr)
		for end := time.Now().Add(busyFor); err == unix.ETXTBSY && time.Now().Before(end); {
			time.Sleep(5 * time.Millisecond)
			pid, err = syscall.ForkExec(path, s.Args, attr)
		}
		done <- result{pid, err}
	})
	r := <-done
	if r.err == nil {
		return r.pid, nil
	}
	if errno, ok := errors.AsType[syscall.Errno](r.err); ok {
		return 0, explainExec(s.Args[0], path, errno)
	}
	return 0, r.err
}

// volunteer makes what is started now the first choice of a machine that runs
// out of memory, and returns how to take that back: workers go before their
// supervisors and the node.
func volunteer() (restore func()) {
	const file = "/proc/self/oom_score_adj"
	before, err := os.ReadFile(file)
	if err != nil || os.WriteFile(file, []byte("500"), 0) != nil {
		return func() {}
	}
	return func() { _ = os.WriteFile(file, before, 0) }
}

// access says what the worker may do with files, with directories of its own
// besides Root/tmp.
func access(s *Spec, own ...string) sandbox.Access {
	return sandbox.Access{
		Write:  append(own, filepath.Join(s.Root, tmpDir)),
		Expose: s.Expose, Devices: s.Devices,
		Hide: append([]string{s.Root}, s.Hide...),
	}
}

// confine restricts the calling thread for what it will start. An error is not
// wrapped: its number says nothing about the command.
func confine(s *Spec, a sandbox.Access) error {
	err := sandbox.Confine(a)
	if err == nil && os.Geteuid() == 0 && !runsAs(s) {
		err = sandbox.DropCapabilities()
	}
	if err != nil {
		return fmt.Errorf("sandbox: %v", err)
	}
	return nil
}

// runsAs reports whether the worker gets a user of its own.
func runsAs(s *Spec) bool { return s.UID > 0 && os.Geteuid() == 0 }

// closeOnExec marks all descriptors but the first three.
func closeOnExec() error {
	err := unix.CloseRange(3, 1<<31-1, unix.CLOSE_RANGE_CLOEXEC)
	if err == nil {
		return nil
	}
	entries, err := os.ReadDir("/proc/self/fd") // before Linux 5.11
	if err != nil {
		return err
	}
	for _, e := range entries {
		var fd int
		if _, err := fmt.Sscan(e.Name(), &fd); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}

// giveFiles hands Root/work and Root/tmp to the worker's user. The rest of
// Root stays closed to it, but must be passable.
func giveFiles(s *Spec) error {
	if !runsAs(s) {
		return nil
	}
	if err := os.Chmod(s.Root, 0o711); err != nil {
		return err
	}
	dirs := []string{workDir, tmpDir}
	if s.Tasks != nil { // which do not write to their inputs
		dirs = []string{TaskDir, tmpDir}
	}
	for _, dir := range dirs {
		err := filepath.WalkDir(filepath.Join(s.Root, dir), func(path string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Lchown(path, s.UID, s.GID)
		})
		if err != nil {
			return fmt.Errorf("give files to user %d: %w", s.UID, err)
		}
	}
	return nil
}
