package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"zorilla/internal/atomicfile"
	"zorilla/jobs"
	"zorilla/jobs/agent"
	"zorilla/jobs/disk"
	"zorilla/jobs/process"
	"zorilla/vicinity"
)

// workAt, in the state directory, names the directory of the workers if that is
// not in the state directory: a node must not lose sight of those that it has.
const workAt = "work-at"

// workDir is the directory below which workers have theirs.
type workDir string

// openWork finds and checks the directory for the workers of node id, below the
// one that its owner names, if any, and reserves it for this process. The passers, if
// any, are users who have to pass through.
func openWork(d stateDir, named string, id vicinity.ID, passers *jobs.User) (w workDir, unlock func(), err error) {
	state, err := filepath.EvalSymlinks(string(d))
	if err != nil {
		return "", nil, fmt.Errorf("state directory: %w", err)
	}
	usual := workDir(filepath.Join(state, "work"))
	w = usual
	if named != "" {
		if w, err = ownWork(named, id); err != nil {
			return "", nil, err
		}
	}
	if err := w.check(d, usual, id); err != nil {
		return w, nil, err
	}
	if err := os.MkdirAll(string(w), shut); err != nil {
		return w, nil, fmt.Errorf("work directory: %w", err)
	}
	if err := letPass(passers != nil, agent.HasWork(string(w), id), string(d), string(w)); err != nil {
		return w, nil, fmt.Errorf("work directory: %w", err)
	}
	if passers != nil {
		if err := process.CheckReach(string(w), passers.UID, passers.GID); err != nil {
			return w, nil, err
		}
	}
	lock, err := os.Open(string(w))
	if err != nil {
		return w, nil, fmt.Errorf("work directory: %w", err)
	}
	if !locked(lock) {
		lock.Close()
		return w, nil, fmt.Errorf("work directory %s: a node is using it already: choose another with --work", w)
	}
	if err := w.remember(d, usual); err != nil {
		lock.Close()
		return w, nil, err
	}
	process.RemoveOldSockets()
	return w, func() { lock.Close() }, nil
}

// ownWork returns this node's own directory below one that its owner names, in
// which there may be anything, also of other nodes.
func ownWork(dir string, id vicinity.ID) (workDir, error) {
	if !filepath.IsAbs(dir) {
		return "", fmt.Errorf("--work %q: want an absolute path", dir)
	}
	if err := os.MkdirAll(dir, passable); err != nil {
		return "", fmt.Errorf("--work: %w", err)
	}
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", fmt.Errorf("--work: %w", err)
	}
	own := filepath.Join(dir, "zorilla-"+string(id))
	if err := os.Mkdir(own, shut); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("--work: %w", err)
	}
	info, err := os.Lstat(own)
	if err != nil {
		return "", fmt.Errorf("--work: %w", err)
	}
	// Where everybody can write somebody may have been quicker.
	if st, ok := info.Sys().(*syscall.Stat_t); info.IsDir() && (!ok || int(st.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0) {
		return "", fmt.Errorf("--work: %s can be changed by others than user %d: remove it, or choose another place", own, os.Geteuid())
	}
	return workDir(own), nil
}

// check refuses a directory that holds what is not this node's, or beside which
// workers of an earlier life are elsewhere.
func (w workDir) check(d stateDir, usual workDir, id vicinity.ID) error {
	before, named := usual, false
	if b, err := os.ReadFile(d.file(workAt)); err == nil {
		before, named = workDir(strings.TrimSpace(string(b))), true
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("work directory: %w", err)
	}
	if before == w || !agent.HasWork(string(before), id) {
		return agent.CheckWork(string(w), id)
	}
	how := "without --work"
	if named {
		how = "with --work " + filepath.Dir(string(before))
	}
	return fmt.Errorf("work directory: workers of this node are still in %s: start it once more %s until they have ended (zorilla drain --exit)", before, how)
}

// remember keeps where the workers are for the next start.
func (w workDir) remember(d stateDir, usual workDir) error {
	path := d.file(workAt)
	err := error(nil)
	if w != usual {
		err = atomicfile.Write(path, []byte(w+"\n"))
	} else if err = os.Remove(path); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return fmt.Errorf("keep where the work directory is: %w", err)
	}
	return nil
}

// free returns how many bytes users may still write there.
func (w workDir) free() (int64, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(string(w), &st); err != nil {
		return 0, err
	}
	return int64(st.Bavail) * int64(st.Bsize), nil
}

// touch writes a little to the disks of workers and state, and returns when they have it.
func (w workDir) touch(d stateDir) error { return disk.Touch(string(w), string(d)) }

// noexec reports whether no program is executed from there.
func (w workDir) noexec() bool {
	var st unix.Statfs_t
	return unix.Statfs(string(w), &st) == nil && st.Flags&unix.ST_NOEXEC != 0
}

// keepFree returns how many bytes are left free there: as many as the owner says.
func (w workDir) keepFree(owner int64) int64 {
	var st syscall.Statfs_t
	if owner != 0 || syscall.Statfs(string(w), &st) != nil {
		return max(owner, 0)
	}
	return min(int64(st.Blocks)*int64(st.Bsize)/50, 1<<30)
}

// The modes of directories that no other user looks into, or passes through.
const (
	shut     = 0o700
	passable = 0o711
)

// letPass gives directories that have one of these modes the other one, if need be. They
// are not shut as long as there are workers, which may be of a time when they had to pass.
func letPass(needed, workers bool, dirs ...string) error {
	from, to := fs.FileMode(passable), fs.FileMode(shut)
	if needed {
		from, to = to, from
	} else if workers {
		return nil
	}
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		if err == nil && info.Mode().Perm() == from {
			err = os.Chmod(dir, to)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// passers returns the user of workers who has to pass through the node's directories,
// nil if none has: with namespaces theirs are brought to them, and otherwise who is the
// node's user owns them.
func passers(o *Owner, enforced []string) *jobs.User {
	if slices.Contains(enforced, process.Namespaces) {
		return nil
	}
	if r := o.Users; r != nil {
		return &jobs.User{UID: r.First, GID: r.First}
	}
	if u := o.RunAs; u != nil && u.UID != os.Geteuid() {
		return u
	}
	return nil
}
