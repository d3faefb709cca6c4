package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// UserName is what a user and a group without a name are called in a Root.
const UserName = "zorilla"

// maskedParts of /proc show what others do.
var maskedParts = []string{"/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/sched_debug"}

// lockedParts are those of /proc that are the machine's and can be written by somebody: a
// user that is root could change more than the kernel asks capabilities for.
func (r *Root) lockedParts() (parts []string, err error) {
	if r.UID != 0 {
		return []string{"/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs"}, nil
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	parts = append(parts, "/proc/1") // this process, which is root, too
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err == nil || e.Type()&os.ModeSymlink != 0 {
			continue // a process; "self" and the like lead to one
		}
		info, err := e.Info()
		if err == nil && (e.IsDir() || info.Mode()&0o222 != 0) {
			parts = append(parts, "/proc/"+e.Name())
		}
	}
	return parts, nil
}

// machine covers what of /proc is the machine's.
func (r *Root) machine(at string) error {
	locked, err := r.lockedParts()
	if err != nil {
		return err
	}
	for _, p := range locked {
		t, err := openTree(unix.AT_FDCWD, at+p, p)
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err == nil {
			err = t.lock()
		}
		if err = errors.Join(err, t.cover(at+p)); err != nil {
			return err
		}
	}
	for _, p := range maskedParts {
		var st unix.Stat_t
		if unix.Stat(at+p, &st) != nil || r.UID != 0 && st.Mode&0o004 == 0 {
			continue // nobody can read it
		}
		t, err := openTree(unix.AT_FDCWD, os.DevNull, p)
		if err = errors.Join(err, t.cover(at+p)); err != nil {
			return err
		}
	}
	return nil
}

// mostNames is how many bytes of names of users are shown.
const mostNames = 1 << 20

// names gives user and group a line in /etc/passwd and /etc/group where they have none:
// many programs do nothing for a user without a name.
func (r *Root) names(at string) error {
	for _, f := range []struct {
		path   string
		number int
		rest   string // of the line, behind the number
	}{
		{"/etc/passwd", r.UID, fmt.Sprintf(":%d::/tmp:/bin/sh\n", r.GID)},
		{"/etc/group", r.GID, ":\n"},
	} {
		path := resolve(f.path)
		text, err := os.ReadFile(path)
		if _, serr := os.Stat(at + path); err != nil || serr != nil || named(text, f.number) {
			continue // there is no place for a line, or no need
		}
		text = append([]byte(UserName+":x:"+strconv.Itoa(f.number)+f.rest), text...)
		if len(text) > mostNames {
			text = text[:bytes.LastIndexByte(text[:mostNames], '\n')+1]
		}
		if err := replace(at, at+path, text); err != nil {
			return err
		}
	}
	return nil
}

// named reports whether a number has a line among users, or groups.
func named(text []byte, number int) bool {
	want := strconv.AppendInt(nil, int64(number), 10)
	for line := range bytes.Lines(text) {
		f := bytes.SplitN(bytes.TrimRight(line, "\n"), []byte(":"), 4)
		if len(f) > 2 && bytes.Equal(f[2], want) {
			return true
		}
	}
	return false
}

// replace shows a text in place of a file that is read-only; it is kept in dir.
func replace(dir, path string, text []byte) error {
	file := dir + "/.names"
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return err
	}
	t, err := openTree(unix.AT_FDCWD, file, path)
	if err == nil {
		err = t.lock()
	}
	return errors.Join(err, t.cover(path), os.Remove(file)) // it stays where it is shown
}
