package transfer

import (
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// The modes that most files have.
const (
	plainMode = 0o644
	execMode  = 0o755
)

// setMode takes a file's permissions over. Whoever could read it can do so when it has
// arrived, too, and who may run it is, among others, its owner.
func (e *Entry) setMode(mode fs.FileMode) {
	mode = mode.Perm() | 0o400
	usual := fs.FileMode(plainMode)
	if e.Exec = mode&0o111 != 0; e.Exec {
		mode, usual = mode|0o100, execMode
	}
	if e.Mode = uint32(mode); mode == usual {
		e.Mode = 0
	}
}

// mode returns a file's permissions.
func (e *Entry) mode() fs.FileMode {
	switch {
	case e.Mode != 0:
		return fs.FileMode(e.Mode)
	case e.Exec:
		return execMode
	}
	return plainMode
}

// Umask returns what this process does not allow others for files that it makes: of its
// umask that part.
func Umask() fs.FileMode {
	const usual, others = 0o022, 0o077
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return usual
	}
	for line := range strings.Lines(string(status)) {
		if text, ok := strings.CutPrefix(line, "Umask:"); ok {
			if mask, err := strconv.ParseUint(strings.TrimSpace(text), 8, 32); err == nil {
				return fs.FileMode(mask) & others
			}
		}
	}
	return usual
}
