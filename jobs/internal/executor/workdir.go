package executor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"zorilla/jobs"
	"zorilla/jobs/disk"
	"zorilla/jobs/internal/participant"
	"zorilla/jobs/process"
	"zorilla/jobs/remover"
	"zorilla/vicinity"
)

// The directory for workers (Config.Work) holds one root for each, named
// JOB-RANK-ATTEMPT, and one for each work directory that several have together, named
// JOB-shared-NUMBER, all of them marked by the node that made them. Nothing else in it is a
// node's to remove.

// rootKind is what an entry of the directory for workers is.
type rootKind int

const (
	strange rootKind = iota // somebody else's
	own                     // of a worker of this node
	copied                  // a copy of one: its processes are another's
	bare                    // of a worker, and nothing is in it yet, or any more
)

// kindOf reports what an entry of the directory for workers is.
func kindOf(root string, node vicinity.ID) rootKind {
	if name := filepath.Base(root); name != trialName && !isRootName(name) && !isSharedName(name) {
		return strange
	}
	owner, err := process.RootOwner(root)
	switch {
	case owner != "" && owner != string(node):
		return strange
	case err == nil:
		return own
	case errors.Is(err, process.ErrCopied):
		return copied
	}
	if entries, err := os.ReadDir(root); err == nil && len(entries) == 0 {
		return bare
	}
	return strange
}

// isRootName reports whether a name is what RootName makes, or made of an ID of
// protocol version 1.
func isRootName(name string) bool {
	f := strings.Split(name, "-")
	if len(f) != 3 {
		return false
	}
	rank, err1 := strconv.Atoi(f[1])
	attempt, err2 := strconv.Atoi(f[2])
	return err1 == nil && err2 == nil && (jobs.ID(f[0]).Valid() || jobs.EarlierForm(f[0])) &&
		participant.RootName(jobs.ID(f[0]), jobs.RankAttempt{Rank: rank, Attempt: attempt}) == name
}

// isSharedName reports whether a name is what participant.SharedName makes.
func isSharedName(name string) bool {
	f := strings.Split(name, "-")
	if len(f) != 3 {
		return false
	}
	number, err := strconv.Atoi(f[2])
	return err == nil && number > 0 && jobs.ID(f[0]).Valid() && participant.SharedName(jobs.ID(f[0]), number) == name
}

// CheckDir refuses a directory as one for the workers of a node, if it is there
// and not the node's alone.
func CheckDir(dir string, node vicinity.ID) error {
	_, err := rootsIn(dir, node)
	return err
}

// rootsIn lists what an earlier life of a node left in its directory for workers.
func rootsIn(dir string, node vicinity.ID) (roots map[string]rootKind, err error) {
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("work directory: %w", err)
	case info.Mode().Type() == fs.ModeSymlink:
		return nil, fmt.Errorf("work directory %s is a symbolic link: remove the link, and name the place that you want with --work", dir)
	case !info.IsDir():
		return nil, fmt.Errorf("work directory %s is not a directory: move it away, or choose another with --work", dir)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("work directory: %w", err)
	}
	roots = map[string]rootKind{}
	var strangers []string
	for _, e := range entries {
		root := filepath.Join(dir, e.Name())
		if roots[root] = kindOf(root, node); roots[root] == strange {
			strangers = append(strangers, fmt.Sprintf("%.60q", e.Name()))
		}
	}
	const named = 3
	if n := len(strangers) - named; n > 0 {
		strangers = append(strangers[:named], fmt.Sprintf("%d more", n))
	}
	if len(strangers) > 0 {
		return nil, fmt.Errorf(
			"work directory %s holds what no worker of this node left, which would be in danger there: %s: move that away, or choose another place with --work",
			dir, strings.Join(strangers, ", "))
	}
	return roots, nil
}

// makeRoot makes a worker's own directory; spread is done before the first one.
func makeRoot(cfg *Config, spread *sync.Once, root string) error {
	err := os.MkdirAll(cfg.Dir, 0o711) // it is there, unless somebody took it away
	if err == nil {
		spread.Do(func() { disk.Spread(cfg.Dir) })
		err = process.MakeRoot(root, string(cfg.Self.ID))
	}
	if err != nil {
		return fmt.Errorf("make work directory: %w", err)
	}
	return nil
}

// makeShared makes the root of a directory that workers share, or empties what an earlier try has
// left of it.
func makeShared(cfg *Config, spread *sync.Once, bin *remover.Background, root string) error {
	bin.Wait(root) // something of an earlier life
	if _, err := cfg.Users.Number(jobOf(root), root); err != nil {
		return err
	}
	err := makeRoot(cfg, spread, root)
	if errors.Is(err, fs.ErrExist) {
		takeBack(cfg.Store, root)
		err = cfg.CleanRoot(root, nil, participant.ClaimNote)
	}
	return err
}

// isMissing reports whether a root was removed. Who has it (remover.Background) may write into it, if
// it was not: nothing would remove that, and it would not look like a worker's.
func isMissing(root string) bool {
	_, err := os.Lstat(root)
	return errors.Is(err, fs.ErrNotExist)
}

// HasWork reports whether something of a node's workers is in a directory for
// them.
func HasWork(dir string, node vicinity.ID) bool {
	entries, _ := os.ReadDir(dir) // none if it cannot be read any more
	return slices.ContainsFunc(entries, func(e os.DirEntry) bool { return kindOf(filepath.Join(dir, e.Name()), node) == own })
}
