package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"zorilla/node/trust"
)

// maxFile bounds a file: a hundred options are a few kilobytes.
const maxFile = 64 << 10

// file is one that was read.
type file struct {
	path     string
	user     bool // the user's, not the system's
	private  bool // nobody else can read it
	text     []byte
	settings []setting
}

// open reads a file; nil is one that does not exist. Who can write it decides what commands
// do, so it is refused if this may be somebody else.
func open(path string, user bool) (*file, error) {
	switch _, err := os.Stat(path); {
	case missing(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	// What is no file must not make the command wait.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("%w: $%s=%s does without", err, Variable, None)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if err := trusted(path, user, info); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("%s: has more than %d KiB: a file of options is shorter", path, maxFile>>10)
	}
	return &file{path: path, user: user, private: info.Mode()&0o077 == 0, text: text}, nil
}

// missing reports whether an error of stat means that there is no file for us. Where the
// permission is missing the home is somebody else's, as with a HOME that setpriv kept.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, fs.ErrPermission)
}

// trusted checks that a file is one, and that only its user, or root, can have written it.
func trusted(path string, user bool, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s: is no regular file", path)
	}
	if info.Mode()&0o022 != 0 {
		return fmt.Errorf("%s: others can write it, and so decide what your commands do: chmod go-w %s", path, path)
	}
	// Only who may write in /etc can have put the system's there.
	if st, ok := info.Sys().(*syscall.Stat_t); ok && user && st.Uid != 0 && int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%s: belongs to user %d, and you are %d: $%s=%s does without", path, st.Uid, os.Geteuid(), Variable, None)
	}
	return nil
}

// secret refuses values that let others into a network, where others can read them.
func (f *file) secret(option string, values []string) error {
	if !slices.ContainsFunc(values, func(v string) bool { return Secret(option, v) }) {
		return nil
	}
	switch {
	case !f.user:
		return errors.New("this is a secret, and the system's file is for all users: put the network's secret into a file of its own, and secret-file here")
	case !f.private:
		return fmt.Errorf("this is a secret, which others can read here: chmod 600 %s", f.path)
	}
	return nil
}

// Secret reports whether the value of an option lets others into a network: its secret, a
// token to join it, the address of a page with its token.
func Secret(option, value string) bool {
	switch option {
	case "secret":
		return true
	case "join":
		return slices.ContainsFunc(strings.Split(value, ","), func(part string) bool { return trust.IsInvite(strings.TrimSpace(part)) })
	case NodeOption:
		return Token(value) >= 0
	}
	return false
}

// Token returns where the token in the address of a page begins, or -1.
func Token(address string) int {
	const before = "token="
	at := strings.Index(address, before)
	if at < 0 {
		return -1
	}
	return at + len(before)
}
