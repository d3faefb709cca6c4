package sandbox

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// Root is the root directory that a process makes for itself in a mount namespace of
// its own, in which it may mount: the system directories and what is exposed, read-only
// but for Writable, /proc, a minimal /dev, and /tmp and /dev/shm of its own. Nothing else is there.
type Root struct {
	Base    string   // a directory that it makes: what Bring attaches lies below it
	Expose  []string // paths to read and execute, as the system directories are
	Devices []string // device files, besides the null devices
	Hide    []string // empty, also where they lie below a path of Expose or Writable
	// Writable are paths to read, execute and write, but for what Expose or the system
	// directories have below them.
	Writable []string
	UID      int // whose name is UserName, if it has none; and its group's
	GID      int
}

// skeleton is how much memory the directories may need that hold all others.
const skeleton = "size=4m,mode=755"

// tree is a piece of the machine's files, not attached to anything.
type tree struct {
	path  string
	fd    int
	dir   bool
	write bool
}

// openDirect copies the mounts at a path and below it, if there is no link in the path.
func openDirect(path string) (tree, error) {
	at, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if err != nil {
		return tree{}, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(at)
	return openTree(at, "", path)
}

// openTree copies the mounts at a path and below it, which may be "": that of at. It is
// to be attached at path.
func openTree(at int, source, path string) (tree, error) {
	var st unix.Stat_t
	flags := uint(unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC | unix.AT_RECURSIVE)
	if source == "" {
		flags |= unix.AT_EMPTY_PATH
	}
	fd, err := unix.OpenTree(at, source, flags)
	if err != nil {
		return tree{}, &os.PathError{Op: "open tree", Path: path, Err: err}
	}
	if err := unix.Fstat(fd, &st); err != nil {
		_ = unix.Close(fd)
		return tree{}, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	return tree{path: path, fd: fd, dir: st.Mode&unix.S_IFMT == unix.S_IFDIR}, nil
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
	return t.move(at)
}

// cover puts a tree over what is at a path, and lets go of it.
func (t *tree) cover(at string) error {
	if t.path == "" {
		return nil // it could not be opened
	}
	defer unix.Close(t.fd)
	return t.move(at)
}

func (t *tree) move(at string) error {
	if err := unix.MoveMount(t.fd, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return &os.PathError{Op: "move mount", Path: at, Err: err}
	}
	return nil
}

func (t *tree) place(at string) error {
	if _, err := os.Lstat(at); err == nil { // in another tree, which may be read-only
		return nil
	}
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
func (r *Root) Enter() (*Inside, error) {
	in := &Inside{base: r.base()}
	if err := r.enter(in); err != nil {
		return nil, err
	}
	return in, nil
}

func (r *Root) enter(in *Inside) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	own := openProgram()
	defer own.close()
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
	if err := errors.Join(special(at), in.count(at)); err != nil {
		return err
	}
	for _, t := range trees {
		if err := t.attach(at + t.path); err != nil {
			return err
		}
	}
	in.share(trees)
	// What an owner shows there is the machine's: nothing is made in it.
	if nearest(trees, ProgramDir) == nil {
		own.bring(at + ProgramDir)
	}
	if err := errors.Join(r.cover(at), r.machine(at), r.names(at), in.open(at)); err != nil {
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

// share notes what lies in /tmp and /dev/shm, the base or what an owner shows: nothing is removed
// there then.
func (in *Inside) share(trees []tree) {
	for p := range in.files {
		if within(in.base, p) || slices.ContainsFunc(trees, func(t tree) bool { return within(t.path, p) }) {
			delete(in.files, p)
		}
	}
}

// collect opens what the root is to show. A path that is a link stays one.
func (r *Root) collect() (links map[string]string, trees []tree, err error) {
	links, modes := r.plan()
	for _, p := range slices.Sorted(maps.Keys(modes)) { // those above come first
		if above := nearest(trees, p); above != nil && above.write == modes[p] {
			continue
		}
		t, err := openDirect(p)
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.ELOOP) {
			continue // nothing there to be shown
		}
		if err != nil {
			return nil, trees, err
		}
		t.write = modes[p]
		trees = append(trees, t)
		if t.write {
			continue
		}
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
		t, err := openTree(unix.AT_FDCWD, p, p)
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

// plan lists what is to be shown, by paths without links, and whether it is writable.
// A path that is a link is shown as one, too.
func (r *Root) plan() (links map[string]string, modes map[string]bool) {
	hide := resolveAll(r.Hide)
	links, modes = map[string]string{}, map[string]bool{}
	show := func(p string) {
		p = filepath.Clean(p)
		if target, err := os.Readlink(p); err == nil { // where it really lies
			links[filepath.Join(resolve(filepath.Dir(p)), filepath.Base(p))] = target
		}
		p = resolve(p)
		hidden := slices.ContainsFunc(hide, func(h string) bool { return within(p, h) })
		if !hidden && p != "/proc" {
			modes[p] = false
		}
	}
	for _, p := range slices.Concat(SystemDirs(), topmost(r.Expose), topmost(r.Writable)) {
		show(p)
	}
	var write []string
	for _, p := range r.Writable {
		if filepath.Clean(p) == "/" { // the system directories stay as they are
			p = "/"
			for _, w := range topmost([]string{p}) {
				if !slices.Contains(SystemDirs(), w) {
					write = append(write, w)
				}
			}
			continue
		}
		write = append(write, p)
	}
	for _, p := range writable(write, r.Expose, hide) {
		modes[p] = true
	}
	return links, modes
}

// nearest returns the tree that holds a path most closely, or nil.
func nearest(trees []tree, path string) *tree {
	for i := range slices.Backward(trees) { // those above come first
		if within(path, trees[i].path) {
			return &trees[i]
		}
	}
	return nil
}

// topmost puts what is in the root directory, and in /dev, in its place: those are other
// ones here, with a /proc, a /dev, a /tmp and a /dev/shm of their own.
func topmost(paths []string) []string {
	var all []string
	for _, p := range paths {
		p = filepath.Clean(p)
		if p != "/" && p != "/dev" {
			all = append(all, p)
			continue
		}
		entries, _ := os.ReadDir(p)
		for _, e := range entries {
			if e.Type()&os.ModeSymlink != 0 && p == "/dev" {
				continue
			}
			if !slices.Contains([]string{"proc", "dev", "tmp", "shm", "pts", "ptmx"}, e.Name()) {
				all = append(all, filepath.Join(p, e.Name()))
			}
		}
	}
	return all
}

// cover hides what lies below a path that is shown, and makes the base, which is a file
// system of its own.
func (r *Root) cover(at string) error {
	for i, p := range append(resolveAll(r.Hide), r.base()) {
		p = at + p
		info, err := os.Lstat(p)
		if i < len(r.Hide) && err != nil {
			continue // nothing above it is shown
		}
		if i == len(r.Hide) {
			if err == nil && info.Mode()&os.ModeSymlink != 0 { // as the machine has at the short path
				_ = os.Remove(p)
			}
			if err := os.MkdirAll(p, 0o755); err != nil {
				return err
			}
		}
		if err := unix.Mount("tmpfs", p, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, skeleton); err != nil {
			return &os.PathError{Op: "cover", Path: p, Err: err}
		}
	}
	return nil
}

// base is the path of Base. What the machine has there does not matter if it is not a
// directory of the machine's.
func (r *Root) base() string {
	if info, err := os.Lstat(r.Base); err == nil && info.Mode()&os.ModeSymlink != 0 {
		return filepath.Clean(r.Base)
	}
	return resolve(r.Base)
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
