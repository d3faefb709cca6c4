package launch

import (
	"regexp"

	"golang.org/x/sys/unix"
)

// unexecuted ends what is said of a work directory that is mounted noexec.
const unexecuted = "is on a file system that is mounted noexec on this node: its owner can keep work directories elsewhere (zorilla node --work DIR)"

// noexec reports whether the kernel executes nothing at a path, as its mount wants it.
func noexec(path string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(path, &fs) == nil && fs.Flags&unix.ST_NOEXEC != 0
}

// refused are the words of shells, interpreters and the dynamic linker for a file that must not
// be executed.
var refused = regexp.MustCompile(`[Pp]ermission denied|failed to map segment from shared object`)

// Unexecuted returns what there is to say of a command that has failed, by the end of its
// standard error: that files in its work directory, at a path, cannot be executed; or "".
func Unexecuted(work string, stderr []byte) string {
	if !refused.Match(stderr) || !noexec(work) {
		return ""
	}
	return "its work directory " + unexecuted
}
