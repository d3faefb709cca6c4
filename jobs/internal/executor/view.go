package executor

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"zorilla/jobs/mounts"
	"zorilla/jobs/process"
	"zorilla/jobs/sandbox"
)

// view is the files of this machine that a worker which is about to begin will see, and can
// read: what the node finds out for it tells it nothing else. What is made for each job,
// such as its /tmp, is not among them.
type view struct {
	work       string   // its files are still the node's, and nobody else's
	at         string   // what the worker calls that
	show, hide []string // without links in them, and as they are named
	uid, gid   int
}

// viewOf returns what a worker will see.
func viewOf(p *process.Spec) *view {
	v := &view{work: p.Work(), at: p.SeenWork(), uid: p.UID, gid: p.GID}
	for _, d := range slices.Concat(sandbox.SystemDirs(), p.Expose, p.Writable) {
		v.show = append(v.show, named(d)...)
	}
	for _, d := range append(slices.Clone(p.Hide), p.Root) {
		v.hide = append(v.hide, named(d)...)
	}
	return v
}

// named are the names of a path: its own, and the one without links.
func named(path string) []string {
	path = filepath.Clean(path)
	if real, err := filepath.EvalSymlinks(path); err == nil && real != path {
		return []string{path, real}
	}
	return []string{path}
}

// shows looks at names alone.
func (v *view) shows(path string) bool {
	own := slices.ContainsFunc([]string{"/proc", "/dev"}, func(d string) bool { return mounts.Within(path, d) })
	if own || slices.ContainsFunc(v.hide, func(d string) bool { return mounts.Within(path, d) }) {
		return false
	}
	return slices.ContainsFunc(v.show, func(d string) bool {
		return mounts.Within(path, d) && (d != "/" || !mounts.Within(path, "/tmp"))
	})
}

// open opens an ordinary file to be read. What the worker does not see is not there.
func (v *view) open(path string) (*os.File, error) { return v.look(path, true) }

// runs reports whether there is a file that can be executed, if not by whom.
func (v *view) runs(path string) bool {
	f, err := v.look(path, false)
	if err != nil {
		return false
	}
	defer f.Close()
	info, err := f.Stat()
	return err == nil && info.Mode()&0o111 != 0
}

// look finds an ordinary file, to be read or only to be looked at.
func (v *view) look(path string, read bool) (f *os.File, err error) {
	path = filepath.Clean(path)
	if mounts.Within(path, v.at) {
		path = filepath.Join(v.work, path[len(v.at):])
	}
	if mounts.Within(path, v.work) {
		return v.input(path, read)
	}
	if !v.shows(path) {
		return nil, &os.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	denied := sandbox.AsUser(v.uid, v.gid, func() {
		f, err = v.find(unix.AT_FDCWD, path, path, unix.RESOLVE_NO_MAGICLINKS, read, v.shows)
	})
	if denied != nil {
		return nil, fmt.Errorf("%s: %w (%w)", path, fs.ErrPermission, denied)
	}
	return f, err
}

// input is look for the worker's own files, whose links lead nowhere else.
func (v *view) input(path string, read bool) (*os.File, error) {
	dir, err := os.Open(v.work)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	name := strings.TrimPrefix(path[len(v.work):], "/")
	return v.find(int(dir.Fd()), name, path, unix.RESOLVE_BENEATH|unix.RESOLVE_NO_MAGICLINKS, read, func(string) bool { return true })
}

// find opens what name leads to, if it may be told where that is.
func (v *view) find(dir int, name, path string, resolve uint64, read bool, may func(path string) bool) (*os.File, error) {
	fail := func(err error) (*os.File, error) { return nil, &os.PathError{Op: "open", Path: path, Err: err} }
	fd, err := unix.Openat2(dir, name, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: resolve})
	if err != nil {
		return fail(err)
	}
	found := os.NewFile(uintptr(fd), path)
	self := fmt.Sprintf("/proc/self/fd/%d", fd)
	real, err := os.Readlink(self)
	info, err2 := found.Stat()
	switch {
	case err != nil || err2 != nil || !may(real):
		err = fs.ErrNotExist
	case !info.Mode().IsRegular():
		err = unix.EACCES
	case !read:
		return found, nil
	}
	defer found.Close()
	if err != nil {
		return fail(err)
	}
	f, err := os.OpenFile(self, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return fail(fs.ErrPermission)
	}
	return f, nil
}

// locate returns where a command is, as the launcher looks for it.
func (v *view) locate(command, path string) string {
	switch {
	case filepath.IsAbs(command):
		return command
	case strings.Contains(command, "/"):
		return filepath.Join(v.work, command)
	}
	for _, dir := range filepath.SplitList(path) {
		if at := filepath.Join(dir, command); filepath.IsAbs(at) && v.runs(at) {
			return at
		}
	}
	return filepath.Join(v.work, command)
}
