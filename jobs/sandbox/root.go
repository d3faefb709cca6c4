package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// Root is the root directory that a process makes for itself in a mount namespace of
// its own, in which it may mount: the system directories and what is exposed, read-only,
// /proc, a minimal /dev, and /tmp and /dev/shm of its own. Nothing else is there.
type Root struct {
	Base    string   // an empty directory: what Bring attaches lies below it
	Expose  []string // paths to read and execute, as the system directories are
	Devices []string // device files, besides the null devices
	Hide    []string // empty, also where they lie below a path of Expose
}

// skeleton is how much memory the directories may need that hold all others.
const skeleton = "size=4m,mode=755"

// tree is a piece of the machine's files, not attached to anything.
type tree struct {
	path string
	fd   int
	dir  bool
}

// openTree copies the mounts at a path and below it.
func openTree(path string) (tree, error) {
	var st unix.Stat_t
	fd, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return tree{}, &os.PathError{Op: "open tree", Path: path, Err: err}
	}
	if err := unix.Fstat(fd, &st); err != nil {
		_ = unix.Close(fd)
		return tree{}, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	return tree{path, fd, st.Mode&unix.S_IFMT == unix.S_IFDIR}, nil
}

// lock makes all of a tree read-only.
func (t *tree) lock() error {
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(t.fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr); err != nil {
		return &os.PathError{Op: "make read-only", Path: t.path, Err: err}
	}
	return nil
}

// attach puts a tree at a path, and makes that.
func (t *tree) attach(at string) error {
	if err := t.place(at); err != nil {
		return err
	}
	if err := unix.MoveMount(t.fd, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return &os.PathError{Op: "move mount", Path: at, Err: err}
	}
	return nil
}

func (t *tree) place(at string) error {
	if t.dir {
		return os.MkdirAll(at, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(at, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}

// Enter makes the root that of all threads of the process, which has not begun to
// use its mount namespace. What it opened before stays open.
func (r *Root) Enter() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	links, trees, err := r.collect()
	defer func() {
		for _, t := range trees {
			_ = unix.Close(t.fd)
		}
	}()
	if err != nil {
		return err
	}
	const at = "/tmp" // any directory that is there: it is covered
	if err := unix.Mount("tmpfs", at, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, skeleton); err != nil {
		return fmt.Errorf("mount the new root: %w", err)
	}
	for link, target := range links {
		if err := errors.Join(os.MkdirAll(filepath.Dir(at+link), 0o755), os.Symlink(target, at+link)); err != nil {
			return err
		}
	}
	if err := special(at); err != nil {
		return err
	}
	for _, t := range trees {
		if err := t.attach(at + t.path); err != nil {
			return err
		}
	}
	if err := r.cover(at); err != nil {
		return err
	}
	if err := os.Chdir(at); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("change the root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leave the old root: %w", err)
	}
	return os.Chdir("/")
}

// collect opens what the root is to show. A path that is a link stays one.
func (r *Root) collect() (links map[string]string, trees []tree, err error) {
	var hide []string
	for _, h := range r.Hide {
		hide = append(hide, resolve(h))
	}
	links = map[string]string{}
	var paths []string
	for _, p := range append(systemDirs(), topmost(r.Expose)...) {
		p = filepath.Clean(p)
		if target, err := os.Readlink(p); err == nil {
			links[p] = target
			p = resolve(p)
		}
		hidden := slices.ContainsFunc(hide, func(h string) bool { return within(p, h) })
		if !hidden && p != "/proc" {
			paths = append(paths, p)
		}
	}
	slices.Sort(paths) // those above come first
	for _, p := range paths {
		if slices.ContainsFunc(trees, func(t tree) bool { return within(p, t.path) }) {
			continue
		}
		t, err := openTree(p)
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES) {
			continue // nothing there to be shown
		}
		if err != nil {
			return nil, trees, err
		}
		trees = append(trees, t)
		if err := t.lock(); err != nil {
			return nil, trees, err
		}
	}
	for p := range links { // in a directory that is shown, it is there
		if slices.ContainsFunc(trees, func(t tree) bool { return within(p, t.path) }) {
			delete(links, p)
		}
	}
	for _, p := range append(deviceFiles(), r.Devices...) {
		t, err := openTree(p)
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES) {
			continue
		}
		if err != nil {
			return nil, trees, err
		}
		trees = append(trees, t)
	}
	return links, trees, nil
}

// topmost puts what is in the root directory in its place: that is another one here,
// with a /proc, a /dev and a /tmp of its own.
func topmost(paths []string) []string {
	var all []string
	for _, p := range paths {
		if filepath.Clean(p) != "/" {
			all = append(all, p)
			continue
		}
		entries, _ := os.ReadDir("/")
		for _, e := range entries {
			if !slices.Contains([]string{"proc", "dev", "tmp"}, e.Name()) {
				all = append(all, "/"+e.Name())
			}
		}
	}
	return all
}

// cover hides what lies below a path that is shown, and makes the base.
func (r *Root) cover(at string) error {
	for _, p := range append(slices.Clone(r.Hide), r.Base) {
		p = at + resolve(p)
		if _, err := os.Lstat(p); err == nil {
			if err := unix.Mount("tmpfs", p, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, skeleton); err != nil {
				return &os.PathError{Op: "cover", Path: p, Err: err}
			}
			continue
		}
		if err := os.MkdirAll(p, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// special mounts what the kernel has for each process, and what is new.
func special(at string) error {
	for _, m := range []struct{ path, kind, options string }{
		{"/proc", "proc", ""},
		{"/tmp", "tmpfs", "mode=1777"},
		{"/dev/shm", "tmpfs", "mode=1777"},
		{"/dev/pts", "devpts", "newinstance,ptmxmode=0666,mode=0620"},
	} {
		if err := os.MkdirAll(at+m.path, 0o755); err != nil {
			return err
		}
		flags := uintptr(unix.MS_NOSUID | unix.MS_NODEV)
		if m.kind == "devpts" {
			flags = unix.MS_NOSUID | unix.MS_NOEXEC
		}
		if err := unix.Mount(m.kind, at+m.path, m.kind, flags, m.options); err != nil {
			return fmt.Errorf("mount %s: %w", m.path, err)
		}
	}
	for _, l := range [][2]string{{"/proc/self/fd", "fd"}, {"fd/0", "stdin"}, {"fd/1", "stdout"}, {"fd/2", "stderr"}, {"pts/ptmx", "ptmx"}} {
		if err := os.Symlink(l[0], at+"/dev/"+l[1]); err != nil {
			return err
		}
	}
	return nil
}

// Outside is a thread of this process that sees the files of the machine as they were
// before Enter.
type Outside struct{ do chan func() }

// NewOutside must be called before Enter.
func NewOutside() (*Outside, error) {
	o := &Outside{make(chan func())}
	made := make(chan error, 1)
	OnOwnThread(func() {
		err := unix.Unshare(unix.CLONE_NEWNS)
		if err == nil {
			err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
		}
		made <- err
		for f := range o.do {
			f()
		}
	})
	return o, <-made
}

// call runs f on the thread.
func (o *Outside) call(f func() error) error {
	done := make(chan error, 1)
	o.do <- func() { done <- f() }
	return <-done
}

// Exists reports whether there is something at a path of the machine.
func (o *Outside) Exists(path string) bool {
	return o.call(func() error {
		_, err := os.Stat(path)
		return err
	}) == nil
}

// Bring attaches directories of the machine to the root of this process, where they
// are there, too: below Base.
func (o *Outside) Bring(paths []string, readOnly bool) error {
	for _, p := range paths {
		var t tree
		err := o.call(func() (err error) {
			t, err = openTree(p)
			return err
		})
		if err != nil {
			return err
		}
		if readOnly {
			err = t.lock()
		}
		if err == nil {
			err = t.attach(p)
		}
		_ = unix.Close(t.fd)
		if err != nil {
			return err
		}
	}
	return nil
}

// Drop takes away what Bring has brought.
func Drop(paths []string) {
	for _, p := range paths {
		if unix.Unmount(p, unix.MNT_DETACH) == nil {
			_ = os.Remove(p)
		}
	}
}

// Used returns how much memory the files of /tmp and /dev/shm need.
func Used() int64 {
	var sum int64
	for _, p := range []string{"/tmp", "/dev/shm"} {
		var st unix.Statfs_t
		if unix.Statfs(p, &st) == nil {
			sum += int64(st.Blocks-st.Bfree) * st.Bsize
		}
	}
	return sum
}
