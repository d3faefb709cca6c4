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

// lookup finds the file of a command that begins in dir.
func lookup(command, dir string, env []string) (string, error) {
	if strings.Contains(command, "/") {
		_, err := os.Stat(inDir(dir, command))
		switch {
		case errors.Is(err, fs.ErrNotExist) && filepath.IsAbs(command):
			return "", &Error{NotFound, command + ": no such file on this node"}
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR):
			return "", &Error{NotFound, command + ": no such file in the work directory (-i stages it)"}
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
	return "", &Error{NotFound, fmt.Sprintf("%s: command not found on this node (PATH=%s)", command, path)}
}

func inDir(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// explainExec says for people why the kernel refused to run a file.
func (w *World) explainExec(c *Command, file string, err error) error {
	command := c.Args[0]
	info, serr := os.Stat(file)
	switch {
	case serr == nil && info.IsDir():
		return notRun("%s: is a directory", command)
	case errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ELIBBAD):
		name, words := interpreter(file)
		if filepath.IsAbs(name) && !w.Shows(c, name) {
			return notRun("%s: its interpreter %s %s", command, words, unseen)
		}
		return notRun("%s: its interpreter %s does not exist on this node", command, words)
	case errors.Is(err, unix.EACCES) && serr == nil && info.Mode()&0o111 == 0:
		return notRun("%s: is not executable (chmod +x)", command)
	case errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM):
		if name, words := interpreter(file); filepath.IsAbs(name) && !w.Shows(c, name) {
			return notRun("%s: its interpreter %s %s", command, words, unseen)
		}
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

// interpreter names what a file asks to be run by, if that can be told, and says it in
// words.
func interpreter(file string) (name, words string) {
	if f, err := elf.Open(file); err == nil {
		defer f.Close()
		for _, p := range f.Progs {
			if p.Type == elf.PT_INTERP && p.Filesz < 4096 {
				b, _ := io.ReadAll(p.Open())
				name = string(bytes.TrimRight(b, "\x00"))
				return name, name
			}
		}
		return "", "(none named)"
	}
	f, err := os.Open(file)
	if err != nil {
		return "", "(unknown)"
	}
	defer f.Close()
	head := make([]byte, 256)
	n, _ := io.ReadFull(f, head)
	line, _, _ := bytes.Cut(head[:n], []byte("\n"))
	if bytes.HasSuffix(line, []byte("\r")) {
		return "", fmt.Sprintf("%q (its lines end as those of Windows do: try dos2unix)", bytes.TrimPrefix(line, []byte("#!")))
	}
	if parts := strings.Fields(strings.TrimPrefix(string(line), "#!")); len(parts) > 0 {
		return parts[0], fmt.Sprintf("%q", parts[0])
	}
	return "", "(unknown)"
}
