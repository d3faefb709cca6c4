package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"zorilla/internal/codec"
	"zorilla/jobs/proc"
)

// Errors of RootOwner.
var (
	// ErrNotMade: the directory is nobody's root, as far as can be seen.
	ErrNotMade = errors.New("no node made it")
	// ErrCopied: it is a copy of a root, whose processes are not its own.
	ErrCopied = errors.New("it is a copy of a worker's directory")
)

// mark says who made Root. It is the first thing that is there and
// the last that goes, so that a directory without it is not ours to remove.
type mark struct {
	Version int    `json:"version"`
	Owner   string `json:"owner"`
	Root    string `json:"root"`
	Device  uint64 `json:"device"`
	Inode   uint64 `json:"inode"`
	Boot    string `json:"boot"`
}

// copied reports whether the mark came to a directory with a copy of another
// one. As long as processes may live, what counts is which directory it is, also
// if that was moved; its numbers may be others after the machine was started
// anew.
func (m *mark) copied(root string, st *unix.Stat_t) bool {
	same := m.Device == st.Dev && m.Inode == st.Ino
	if boot, err := proc.BootID(); err == nil && boot == m.Boot {
		return !same
	}
	return !same && m.Root != root
}

// MakeRoot makes a root with Root/work for the owner, the node's name for itself.
// The directory around it must be there.
func MakeRoot(root, owner string) error {
	if err := os.Mkdir(root, 0o700); err != nil {
		return err
	}
	if err := MarkRoot(root, owner); err != nil {
		_ = os.Remove(root) // nothing else is in it
		return err
	}
	return os.Mkdir(filepath.Join(root, workDir), 0o700)
}

// MarkRoot makes a directory a root of the owner.
func MarkRoot(root, owner string) error {
	var st unix.Stat_t
	if err := unix.Lstat(root, &st); err != nil {
		return fmt.Errorf("mark %s: %w", root, err)
	}
	boot, err := proc.BootID()
	if err != nil {
		return err
	}
	// Who dies meanwhile leaves nothing, or a file without a mark, which counts as one.
	return save(root, markEntry, mark{Version: 1, Owner: owner, Root: root, Device: st.Dev, Inode: st.Ino, Boot: boot})
}

// RootOwner returns for whom MakeRoot made a directory; "" if that cannot be
// read any more, or of a version before there were marks. The error is that
// there is no directory, or wraps ErrNotMade, or ErrCopied, with the owner.
func RootOwner(root string) (owner string, err error) { return notesOf(root).owner() }

// owner is RootOwner.
func (n *notes) owner() (string, error) {
	root := n.root
	var st unix.Stat_t
	switch err := unix.Lstat(root, &st); {
	case err != nil:
		return "", &fs.PathError{Op: "lstat", Path: root, Err: err}
	case st.Mode&unix.S_IFMT != unix.S_IFDIR:
		return "", fmt.Errorf("%s: %w: it is no directory", root, ErrNotMade)
	}
	var m mark
	switch err := n.load(markEntry, &m); {
	case err == nil && !m.copied(root, &st):
		return m.Owner, nil
	case err == nil:
		return m.Owner, fmt.Errorf("%s: %w, %s", root, ErrCopied, m.Root)
	case errors.Is(err, codec.ErrMalformed): // the machine failed before it was on the disk: no process of then is left
		return "", nil
	}
	if _, err := os.Lstat(filepath.Join(root, entriesFile)); err == nil {
		return "", nil
	}
	var spec Spec
	if n.loadSpec(&spec) != nil {
		return "", fmt.Errorf("%s: %w", root, ErrNotMade)
	}
	if spec.Root != root {
		return "", fmt.Errorf("%s: %w, %s", root, ErrCopied, spec.Root)
	}
	return "", nil
}

// insideDir holds the directories of workers as they see them. It is short: a unix socket has
// 107 bytes for its path, of which Python's multiprocessing adds 32 to TMPDIR.
const insideDir = "/zorilla"

// Inside returns what a worker with namespaces calls its root (Spec.At).
func Inside(root string) string { return filepath.Join(insideDir, shortName(root)) }

// shortJob is how much of a job's ID people use.
const shortJob = 5

// shortName is the name of a root, of a job's ID, its origin, a rank and an attempt, without
// the origin: roots of two jobs that look the same then are not in one place.
func shortName(root string) string {
	name := filepath.Base(root)
	job, rest, ok := strings.Cut(name, "@")
	_, rest, ok2 := strings.Cut(rest, "-")
	if !ok || !ok2 {
		return name
	}
	return job[:min(len(job), shortJob)] + "-" + rest
}

// Seen returns what the worker calls its root.
func (s *Spec) Seen() string {
	if s.At != "" {
		return s.At
	}
	return s.Root
}
