package launch

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
	"time"

	"golang.org/x/sys/unix"

	"zorilla/jobs/mounts"
	"zorilla/jobs/sandbox"
)

// defaultPath is used when the worker's environment has no PATH.
const defaultPath = "/usr/local/bin:/usr/bin:/bin"

// busyFor is how long to wait for a program whose file is still open for
// writing: a process that the node forked meanwhile holds it for a moment.
const busyFor = 2 * time.Second

// Cause is whose fault it is that a command could not be run.
type Cause string

// The causes.
const (
	NotFound Cause = "not found" // the command does not exist
	NotRun   Cause = "not run"   // the command exists but cannot be executed
	Failed   Cause = "failed"    // not the command's
)

// Error is why a command could not be run.
type Error struct {
	Cause Cause
	Text  string // one line for people
}

// Error returns Text.
func (e *Error) Error() string { return e.Text }

func notRun(format string, args ...any) error {
	return &Error{NotRun, fmt.Sprintf(format, args...)}
}

// searched returns the PATH of an environment.
func searched(env []string) string {
	path := defaultPath
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = v
		}
	}
	return path
}

// lookup finds the file of a command. One that is a path is left to the kernel.
func lookup(command string, env []string) (string, error) {
	if strings.Contains(command, "/") {
		return command, nil
	}
	path := searched(env)
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
	return "", &Error{NotFound, fmt.Sprintf("%s: command not found on this node (PATH=%s)", command, path)}
}

// asCommand calls f as the user of the world's commands, as far as files are concerned:
// nothing is to be told of what that user cannot look at. The calling thread is the one
// that is confined.
func (w *World) asCommand(f func()) error {
	if w.UID <= 0 || os.Geteuid() != 0 {
		f()
		return nil
	}
	defer func() {
		_ = unix.Setfsuid(os.Geteuid())
		_ = unix.Setfsgid(os.Getegid())
	}()
	_, _ = unix.SetfsgidRetGid(w.GID) // these return what was before, and no errors
	_, _ = unix.SetfsuidRetUid(w.UID)
	gid, _ := unix.SetfsgidRetGid(-1)
	uid, _ := unix.SetfsuidRetUid(-1)
	if uid != w.UID || gid != w.GID {
		return fmt.Errorf("look at files as user %d: not permitted", w.UID)
	}
	f()
	return nil
}

// file is what a command's user can tell of a file that the kernel refused to run.
type file struct {
	err     error // there is no such file
	noexec  bool  // its file system is mounted so
	mode    fs.FileMode
	machine string // of an ELF file
	interp  string // what it asks to be run by, "" if that cannot be told
	words   string // the same for people
	// Where links lead from there, one after the other: from the file, from its interpreter.
	links, interpLinks []string
}

// maxHead is how much of a file is read to explain why it cannot be run.
const maxHead = 1 << 20

// inspect looks at a file that a job has chosen: it may be anything, also what would
// keep its reader waiting.
func inspect(path string) file {
	f := file{words: "(unknown)", links: sandbox.Follow(path)}
	info, err := os.Stat(path)
	if err != nil {
		f.err = err
		return f
	}
	if f.mode = info.Mode(); !f.mode.IsRegular() {
		return f
	}
	f.noexec = noexec(path)
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return f
	}
	opened := os.NewFile(uintptr(fd), path)
	defer opened.Close()
	if info, err = opened.Stat(); err != nil || !info.Mode().IsRegular() { // another one by now
		return f
	}
	f.read(opened)
	f.interpLinks = sandbox.Follow(f.interp)
	return f
}

// read takes what the head of a file tells.
func (f *file) read(from io.ReaderAt) {
	head, _ := io.ReadAll(io.NewSectionReader(from, 0, maxHead))
	if e, err := elf.NewFile(bytes.NewReader(withoutSections(head))); err == nil {
		f.machine, f.words = strings.ToLower(strings.TrimPrefix(e.Machine.String(), "EM_")), "(none named)"
		for _, p := range e.Progs {
			if p.Type == elf.PT_INTERP && p.Filesz < 4096 {
				b := make([]byte, p.Filesz)
				n, _ := from.ReadAt(b, int64(p.Off))
				f.interp = string(bytes.TrimRight(b[:n], "\x00"))
				f.words = f.interp
				return
			}
		}
		return
	}
	line, _, _ := bytes.Cut(head[:min(len(head), 256)], []byte("\n"))
	if bytes.HasSuffix(line, []byte("\r")) {
		f.words = fmt.Sprintf("%q (its lines end as those of Windows do: try dos2unix)", bytes.TrimPrefix(line, []byte("#!")))
		return
	}
	if parts := strings.Fields(strings.TrimPrefix(string(line), "#!")); len(parts) > 0 {
		f.interp, f.words = parts[0], fmt.Sprintf("%q", parts[0])
	}
}

// withoutSections returns the head of an ELF file as if it had no sections, which lie
// anywhere in it and may claim any size.
func withoutSections(head []byte) []byte {
	if len(head) < 64 || string(head[:4]) != elf.ELFMAG {
		return head
	}
	head = bytes.Clone(head)
	switch elf.Class(head[elf.EI_CLASS]) {
	case elf.ELFCLASS32:
		clear(head[32:36])
		clear(head[48:52])
	case elf.ELFCLASS64:
		clear(head[40:48])
		clear(head[60:64])
	}
	return head
}

// refusesAccess reports whether an error may be about a path that is not shown.
func refusesAccess(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.ENOTDIR)
}

// noProgram ends what is said of a command of the node's own that is not there.
const noProgram = ": this node has no place for it, since its owner, or the job, shows workers a path that holds it: leave the node out (--where 'name != …')"

// explainExec says for people why the kernel refused to run a file.
func (w *World) explainExec(c *Command, f *file, err error) error {
	command := c.Args[0]
	hidden := filepath.IsAbs(f.interp) && !w.Shows(c, f.interp)
	if lost := w.leadsOut(c, f.links); lost != "" && refusesAccess(err) {
		return &Error{NotFound, fmt.Sprintf("%s: leads to %s, which %s", command, lost, unseen)}
	}
	if lost := w.leadsOut(c, f.interpLinks); lost != "" && !hidden && refusesAccess(err) {
		return notRun("%s: its interpreter %s leads to %s, which %s", command, f.words, lost, unseen)
	}
	switch {
	case f.err == nil && f.mode.IsDir():
		return notRun("%s: is a directory", command)
	case f.err != nil && (errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR)):
		if mounts.Within(filepath.Clean(command), sandbox.ProgramDir) {
			return &Error{NotFound, command + noProgram}
		}
		if filepath.IsAbs(command) {
			return &Error{NotFound, command + ": no such file on this node"}
		}
		return &Error{NotFound, command + ": no such file in the work directory (-i stages it)"}
	case errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ELIBBAD):
		if hidden {
			return notRun("%s: its interpreter %s %s", command, f.words, unseen)
		}
		return notRun("%s: its interpreter %s does not exist on this node", command, f.words)
	case errors.Is(err, unix.EACCES) && f.err == nil && f.mode&0o111 == 0:
		return notRun("%s: is not executable (chmod +x)", command)
	case errors.Is(err, unix.EACCES) && f.err == nil && !f.mode.IsRegular():
		return notRun("%s: is not a file that could be executed", command)
	case errors.Is(err, unix.EACCES) && f.noexec:
		if filepath.IsAbs(command) && !mounts.Within(filepath.Clean(command), w.at()) {
			return notRun("%s: is on a file system that is mounted noexec on this node: a copy that the job brings (-i) can be executed", command)
		}
		return notRun("%s: is in the work directory, which %s", command, unexecuted)
	case errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM):
		if hidden {
			return notRun("%s: its interpreter %s %s", command, f.words, unseen)
		}
		return notRun(
			"%s: permission denied: workers run programs from their work directory, the system directories and what the node exposes (--expose)",
			command)
	case errors.Is(err, unix.ENOEXEC):
		return notRun("%s: %s", command, f.format())
	case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ETXTBSY), errors.Is(err, unix.E2BIG), errors.Is(err, unix.ELOOP):
		return notRun("%s: %v", command, err)
	}
	return fmt.Errorf("%s: cannot be started: %w", command, err)
}

func (f *file) format() string {
	if f.machine == "" {
		return "not an executable file (a script begins with a line such as #!/bin/sh)"
	}
	return fmt.Sprintf("built for another architecture or not an executable file (%s; this node is %s)", f.machine, runtime.GOARCH)
}
