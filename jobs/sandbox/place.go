package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Inside is the root of a process after Root.Enter. Workers may be of the same user, and
// change whatever they can reach: what is done here goes by descriptors that were opened
// before there was a worker, and follows no links.
type Inside struct {
	base string
	// seen is the base as workers see it, where they can make nothing; made is the same
	// directory by a mount that nobody sees.
	seen, made int
	own        map[string]uint64 // devices of what is in memory and the workers' own, by path
	files      map[string]uint64 // how many files these had at first
}

// open takes hold of the base of a root at a path.
func (in *Inside) open(at string) error {
	base := at + in.base
	var err error
	if in.made, err = unix.OpenTree(unix.AT_FDCWD, base, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC); err == nil {
		err = unix.MountSetattr(unix.AT_FDCWD, base, 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
	}
	if err == nil {
		in.seen, err = unix.Open(base, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		return &os.PathError{Op: "open", Path: base, Err: err}
	}
	return nil
}

// count remembers what Used counts, of a root at a path.
func (in *Inside) count(at string) error {
	in.own, in.files = map[string]uint64{}, map[string]uint64{}
	for _, p := range []string{"/tmp", "/dev/shm"} {
		var st unix.Stat_t
		if err := unix.Stat(at+p, &st); err != nil {
			return &os.PathError{Op: "stat", Path: p, Err: err}
		}
		in.own[p] = st.Dev
		var fs unix.Statfs_t
		if err := unix.Statfs(at+p, &fs); err != nil {
			return &os.PathError{Op: "statfs", Path: p, Err: err}
		}
		in.files[p] = fs.Files - fs.Ffree
	}
	return nil
}

// Left returns which of /tmp and /dev/shm have files, as far as nothing is shown there from
// outside, and whether there are segments, semaphores or queues of System V.
func (in *Inside) Left() (dirs []string, ipc bool) {
	for p, first := range in.files {
		var fs unix.Statfs_t
		if unix.Statfs(p, &fs) == nil && fs.Files-fs.Ffree > first {
			dirs = append(dirs, p)
		}
	}
	return dirs, ipcInUse()
}

// Used returns how much memory the files of /tmp and /dev/shm need, as far as these are
// not shown from outside.
func (in *Inside) Used() int64 {
	var sum int64
	for p, dev := range in.own {
		var st unix.Stat_t
		var fs unix.Statfs_t
		if unix.Stat(p, &st) == nil && st.Dev == dev && unix.Statfs(p, &fs) == nil {
			sum += int64(fs.Blocks-fs.Bfree) * fs.Bsize
		}
	}
	return sum
}

// Open opens a directory below the base, which is attached there, for fchdir.
func (in *Inside) Open(path string) (fd int, err error) {
	name, err := in.name(path)
	if err != nil {
		return -1, err
	}
	fd, err = beneath(in.seen, name)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return fd, nil
}

// name is that of a path in the base.
func (in *Inside) name(path string) (string, error) {
	name, err := filepath.Rel(in.base, path)
	if err != nil || !filepath.IsLocal(name) || name == "." {
		return "", fmt.Errorf("%s: is not below %s", path, in.base)
	}
	return name, nil
}

func beneath(dir int, name string) (fd int, err error) {
	return unix.Openat2(dir, name, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
}

// Place is a directory of the machine, and where workers see it.
type Place struct{ From, At string }

// Bring attaches directories that o sees to the base: they are seen below Root.Base.
func (in *Inside) Bring(o *Outside, places []Place, readOnly bool) error {
	for _, p := range places {
		var t tree
		err := o.call(func() (err error) {
			t, err = openTree(unix.AT_FDCWD, p.From, p.At)
			return err
		})
		if err != nil {
			return err
		}
		if readOnly {
			err = t.lock()
		}
		if err == nil {
			err = in.attach(&t)
		}
		_ = unix.Close(t.fd)
		if err != nil {
			return err
		}
	}
	return nil
}

// attach puts a tree where it belongs.
func (in *Inside) attach(t *tree) error {
	name, err := in.name(t.path)
	if err != nil {
		return err
	}
	for i := range len(name) {
		if name[i] == '/' {
			_ = unix.Mkdirat(in.made, name[:i], 0o755) // else it is there, or what follows tells why not
		}
	}
	_ = unix.Mkdirat(in.made, name, 0o755)
	fd, err := in.Open(t.path)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.MoveMount(t.fd, "", fd, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH); err != nil {
		return &os.PathError{Op: "move mount", Path: t.path, Err: err}
	}
	return nil
}

// Drop takes away what Bring has brought.
func (in *Inside) Drop(paths []string) {
	for _, p := range paths {
		fd, err := in.Open(p)
		if err != nil {
			continue
		}
		err = unix.Unmount("/proc/self/fd/"+strconv.Itoa(fd), unix.MNT_DETACH) // nothing but a mount of ours is here
		_ = unix.Close(fd)
		for name, _ := in.name(p); err == nil && name != "."; name = filepath.Dir(name) { // what is still needed is not empty
			err = unix.Unlinkat(in.made, strings.TrimSuffix(name, "/"), unix.AT_REMOVEDIR)
		}
	}
}
