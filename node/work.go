package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"zorilla/internal/atomicfile"
	"zorilla/jobs"
	"zorilla/jobs/process"
	"zorilla/vicinity"
)

// workAt, in the state directory, names the directory of the workers if that is
// not in the state directory: a node must not lose sight of those that it has.
const workAt = "work-at"

// openWork finds and checks the directory for workers, and reserves it for this
// process. It needs to know who this node is.
func (n *Node) openWork() (unlock func(), err error) {
	state, err := filepath.EvalSymlinks(n.cfg.State)
	if err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	id := n.creds.ID()
	usual := filepath.Join(state, "work")
	n.work = usual
	if n.cfg.Work != "" {
		if n.work, err = ownWork(n.cfg.Work, id); err != nil {
			return nil, err
		}
	}
	if err := n.leftBehind(usual, id); err != nil {
		return nil, err
	}
	if err := jobs.CheckWork(n.work, id); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(n.work, 0o711); err != nil { // workers of another user pass through
		return nil, fmt.Errorf("work directory: %w", err)
	}
	if err := n.checkRunAs(); err != nil {
		return nil, err
	}
	lock, err := os.Open(n.work)
	if err != nil {
		return nil, fmt.Errorf("work directory: %w", err)
	}
	if !locked(lock) {
		lock.Close()
		return nil, fmt.Errorf("work directory %s: a node is using it already: choose another with --work", n.work)
	}
	if err := n.rememberWork(usual); err != nil {
		lock.Close()
		return nil, err
	}
	process.RemoveOldSockets()
	return func() { lock.Close() }, nil
}

// ownWork returns this node's own directory below one that its owner names, in
// which there may be anything, also of other nodes.
func ownWork(dir string, id vicinity.ID) (string, error) {
	if !filepath.IsAbs(dir) {
		return "", fmt.Errorf("--work %q: want an absolute path", dir)
	}
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return "", fmt.Errorf("--work: %w", err)
	}
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", fmt.Errorf("--work: %w", err)
	}
	own := filepath.Join(dir, "zorilla-"+string(id))
	if err := os.Mkdir(own, 0o711); err != nil && !errors.Is(err, fs.ErrExist) {
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
	return own, nil
}

// leftBehind refuses to start while workers of an earlier life are elsewhere.
func (n *Node) leftBehind(usual string, id vicinity.ID) error {
	before, named := usual, false
	if b, err := os.ReadFile(filepath.Join(n.cfg.State, workAt)); err == nil {
		before, named = strings.TrimSpace(string(b)), true
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("work directory: %w", err)
	}
	if before == n.work || !jobs.HasWork(before, id) {
		return nil
	}
	how := "without --work"
	if named {
		how = "with --work " + filepath.Dir(before)
	}
	return fmt.Errorf("work directory: workers of this node are still in %s: start it once more %s until they have ended (zorilla drain --exit)", before, how)
}

// rememberWork keeps where the workers are for the next start.
func (n *Node) rememberWork(usual string) error {
	path := filepath.Join(n.cfg.State, workAt)
	err := error(nil)
	if n.work != usual {
		err = atomicfile.Write(path, []byte(n.work+"\n"))
	} else if err = os.Remove(path); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return fmt.Errorf("keep where the work directory is: %w", err)
	}
	return nil
}

// checkRunAs makes sure that the user of the workers can reach their
// directories.
func (n *Node) checkRunAs() error {
	u := n.cfg.Owner.RunAs
	if u == nil || u.UID == os.Geteuid() {
		return nil
	}
	return process.CheckReach(n.work, u.UID, u.GID)
}
