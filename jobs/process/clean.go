package process

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"zorilla/internal/entries"
	"zorilla/jobs/quota"
	"zorilla/jobs/remover"
)

// stopWithin bounds how long a supervisor may take to end its worker.
const stopWithin = 5 * time.Second

// CleanRoot removes root with all in it, after it has made sure that none of
// its processes lives: it asks a supervisor that is still there to end its
// worker, and kills what does not follow. It refuses a directory that MakeRoot
// did not make; of a copy it touches the files alone, since the processes are
// those of the original. A root that does not exist is fine. With names of
// notes (Note) to keep it removes all but these, and leaves what MakeRoot makes. The pace
// is that of the files; when it ends the removal no process is left, and the root is still
// one.
func CleanRoot(root string, pace remover.Pace, keep ...string) error {
	known := notesOf(root)
	switch _, err := known.owner(); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, ErrCopied):
		return CleanFiles(root, pace, keep...)
	case err != nil:
		return err
	}
	var spec Spec
	var ended exitRecord
	// What cannot be read tells of no process: then the record must do.
	err := known.loadSpec(&spec)
	if known.load(exitEntry, &ended) != nil { // it is written when no process is left
		if err == nil && spec.Root == root {
			askToEnd(spec.terms)
		}
		// Other workers may have the same supervisor, which is killed only if it did
		// not obey.
		if load(root, exitEntry, &ended) != nil {
			killLeftovers(root)
		}
	}
	if !spec.terms.Groups.IsZero() { // nothing is left of it but, perhaps, the group itself
		if !spec.terms.Groups.Kill(groupName(root)) {
			return fmt.Errorf("processes in the control group of %s cannot be ended", root)
		}
		spec.terms.Groups.Left()
	}
	if err == nil && !spec.terms.Quota {
		return cleanFiles(root, pace, keep)
	}
	return CleanFiles(root, pace, keep...)
}

// CleanFiles is CleanRoot for a root that has no processes, as that of an emulated
// worker.
func CleanFiles(root string, pace remover.Pace, keep ...string) error {
	for _, dir := range FileDirs(root) {
		if q := quota.Of(dir); q != nil { // it is known by its directories alone
			_ = q.Remove()
			break
		}
	}
	return cleanFiles(root, pace, keep)
}

// cleanFiles is CleanFiles where no quota bounds the files.
func cleanFiles(root string, pace remover.Pace, keep []string) error {
	if len(keep) == 0 {
		return remover.Remove(root, pace, entriesFile, markEntry)
	}
	keep = append([]string{markEntry}, keep...)
	if err := remover.Empty(root, pace, append([]string{entriesFile}, keep...)...); err != nil {
		return err
	}
	if err := entries.Keep(filepath.Join(root, entriesFile), maxFile, keep...); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Mkdir(filepath.Join(root, workDir), 0o700)
}

// askToEnd tells a living supervisor to end everything at once, and waits for
// it to go.
func askToEnd(t terms) {
	conn, err := dial(t, message{})
	if err != nil {
		return
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(stopWithin))
	if writeMessage(conn, message{Kind: kindStop}) == nil {
		_, _ = io.Copy(io.Discard, conn)
	}
}
