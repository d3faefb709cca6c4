package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"zorilla/internal/atomicfile"
	"zorilla/internal/codec"
	"zorilla/jobs/cgroup"
	"zorilla/jobs/proc"
)

// The files in Root.
const (
	markFile   = "mark"
	orderFile  = "spec"
	recordFile = "record"
	exitFile   = "exit"
	tasksFile  = "tasks"
	linesFile  = "lines"
	controlDir = "control"
	workDir    = "work"
	tmpDir     = "tmp"
)

// maxFile bounds what is read back from Root: arguments and environment of
// the longest job fit in easily.
const maxFile = 8 << 20

// order is what the node asks of the supervisor, in Root/spec.
type order struct {
	Version int           `json:"version"`
	Spec    Spec          `json:"spec"`
	Socket  string        `json:"socket"` // path of the control socket, which the supervisor inherits
	Key     string        `json:"key"`    // what a node must know to be heard
	Grace   time.Duration `json:"grace"`
	Spool   int64         `json:"spool"`
	Counts  bool          `json:"counts"` // the supervisor, of the same version, tells how much input it passed on
	// Namespaces: whether the worker gets namespaces of its own.
	Namespaces bool `json:"namespaces,omitempty"`
	// Groups is where the worker's control group is to be.
	Groups cgroup.Place `json:"groups,omitzero"`
}

// groupName names the control group of the worker of a root.
func groupName(root string) string { return filepath.Base(root) }

// record says which processes belong to Root, in Root/record. A node that
// finds it can connect to Socket with the Key of Root/spec.
type record struct {
	Version    int     `json:"version"`
	Socket     string  `json:"socket"`
	Supervisor proc.ID `json:"supervisor"`
	Launcher   proc.ID `json:"launcher,omitzero"` // not of earlier versions
	Worker     proc.ID `json:"worker,omitzero"`   // leader of the worker's session; not with namespaces
}

// exitRecord is how it ended, in Root/exit.
type exitRecord struct {
	Version  int   `json:"version"`
	Exit     Exit  `json:"exit"`
	Stdout   int64 `json:"stdout"` // bytes written in all
	Stderr   int64 `json:"stderr"`
	AckedOut int64 `json:"acked_stdout,omitempty"` // delivered, as far as the node has said
	AckedErr int64 `json:"acked_stderr,omitempty"`
	Tasks    int   `json:"tasks,omitempty"` // that have ended
}

func (r *exitRecord) counts() (written, acked [2]int64) {
	return [2]int64{r.Stdout, r.Stderr}, [2]int64{r.AckedOut, r.AckedErr}
}

// save writes v to Root/name so that a reader sees all of it or nothing, and after
// a failure of the machine at least whether it is all of it.
func save(root, name string, v any) error {
	b, err := codec.Marshal(v)
	if err != nil {
		return err
	}
	return atomicfile.How{Loose: true}.Write(filepath.Join(root, name), codec.Seal(b))
}

// keepExit makes the exit record durable, if it is there.
func keepExit(root string) error {
	switch err := atomicfile.Sync(filepath.Join(root, exitFile)); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	if err := atomicfile.Sync(root); !errors.Is(err, fs.ErrNotExist) { // removed meanwhile
		return err
	}
	return nil
}

// load reads what save wrote.
func load(root, name string, v any) error {
	path := filepath.Join(root, name)
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return fmt.Errorf("%s: %w: want a file of at most %d bytes", path, fs.ErrInvalid, maxFile)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !codec.Unsealed(b) { // else a supervisor of an earlier version wrote it
		b, err = codec.Unseal(b)
	}
	if err == nil {
		err = codec.Unmarshal(b, v)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
