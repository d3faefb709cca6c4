// Package owned checks whether a file can be trusted: that nobody but the user of this
// process, and root, can have written it or put it there.
package owned

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

// byOthers are the bits of a mode that let others write.
const byOthers = 0o022

// File refuses a file or directory that somebody else owns, or may write.
func File(path string, info fs.FileInfo) error {
	if uid, ok := stranger(info); ok {
		return fmt.Errorf("%s belongs to user %d, and you are %d", path, uid, os.Geteuid())
	}
	if info.Mode().Type() != fs.ModeSymlink && info.Mode()&byOthers != 0 {
		return fmt.Errorf("%s can be changed by others than user %d: chmod go-w %s", path, os.Geteuid(), path)
	}
	return nil
}

// Way refuses a directory in whose place somebody else could put another one: by a link, or by
// a directory above. Groups may write to those above, as in the directories of a project.
func Way(dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	for _, path := range []string{dir, real} {
		for at := path; ; at = filepath.Dir(at) {
			info, err := os.Lstat(at)
			if err != nil {
				return err
			}
			if uid, ok := stranger(info); ok && !unmapped(uid) {
				return fmt.Errorf("%s belongs to user %d, who may put another directory in the place of %s", at, uid, dir)
			}
			if info.IsDir() && info.Mode()&0o002 != 0 && info.Mode()&fs.ModeSticky == 0 && at != real {
				return fmt.Errorf("%s can be changed by everybody, who may put another directory in the place of %s: chmod o-w %s", at, dir, at)
			}
			if at == filepath.Dir(at) {
				break
			}
		}
	}
	return nil
}

// stranger returns the owner of a file if that is neither this user nor root.
func stranger(info fs.FileInfo) (uid int, ok bool) {
	st, known := info.Sys().(*syscall.Stat_t)
	if !known {
		return -1, true
	}
	uid = int(st.Uid)
	return uid, uid != 0 && uid != os.Geteuid()
}

// unmapped reports whether an owner is one of a user namespace around this process, as root is.
func unmapped(uid int) bool { return uid == overflow && inside() }

// overflow stands for users whom a user namespace does not have.
const overflow = 65534

var inside = sync.OnceValue(func() bool {
	b, err := os.ReadFile("/proc/self/uid_map")
	fields := strings.Fields(string(b))
	return err == nil && (len(fields) < 3 || fields[0] != "0" || fields[1] != "0")
})
