package launch

import (
	"path/filepath"
	"strings"

	"zorilla/jobs/mounts"
	"zorilla/jobs/sandbox"
)

// unseen ends what is said of a path that workers are not shown. It is said whether there
// is something at the path or not: that is nothing that a job is to learn.
const unseen = "is not shown to workers on this node: its owner can expose it, or the job can ask for it (--mount)"

// Shows reports whether a path of the machine, absolute, is among those that a command
// of the world may see. It looks at names only.
func (w *World) Shows(c *Command, path string) bool {
	path = filepath.Clean(path)
	below := func(dirs ...string) bool {
		for _, d := range dirs {
			if d = filepath.Clean(d); mounts.Within(path, d) {
				return true
			}
			if real, err := filepath.EvalSymlinks(d); err == nil && mounts.Within(path, real) {
				return true
			}
		}
		return false
	}
	if below(c.Write...) || below(c.Read...) || below("/dev", "/proc", sandbox.ProgramDir) {
		return true
	}
	if below(w.Base, w.at()) || below(w.Hide...) {
		return false
	}
	return below(sandbox.SystemDirs()...) || below(w.Expose...) || below(w.Writable...)
}

// Unseen returns what there is to say of a command that has failed: which of its words
// is a path that it cannot have found, or "". The first may be such a path, too: without
// namespaces a link leads from there to what is shown.
func (w *World) Unseen(c *Command) string {
	for _, a := range c.Args {
		if name, value, found := strings.Cut(a, "="); found && strings.HasPrefix(name, "-") {
			a = value
		}
		switch {
		case !filepath.IsAbs(a), filepath.Clean(a) == "/", len(a) > mounts.MaxPath, w.Shows(c, a):
		case w.Namespaces && mounts.Within(filepath.Clean(a), "/tmp"):
			return a + ", which it was given, is a path in a /tmp of the job's own"
		default:
			return a + ", which it was given, " + unseen
		}
	}
	return ""
}

// blind tells an error about a command as far as the job may know it: what is not shown
// is not told from what is not there.
func (w *World) blind(c *Command, err error) error {
	if len(c.Args) > 0 && filepath.IsAbs(c.Args[0]) && !w.Shows(c, c.Args[0]) {
		return &Error{NotFound, c.Args[0] + ": " + unseen}
	}
	return err
}

// leadsOut returns the first of some paths that is not shown, or "".
func (w *World) leadsOut(c *Command, paths []string) string {
	for _, p := range paths {
		if filepath.IsAbs(p) && !w.Shows(c, p) {
			return p
		}
	}
	return ""
}
