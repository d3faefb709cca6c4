package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"zorilla/internal/atomicfile"
	"zorilla/internal/codec"
	"zorilla/internal/entries"
	"zorilla/internal/units"
	"zorilla/jobs/cgroup"
	"zorilla/jobs/proc"
	"zorilla/jobs/work"
)

// What is known of a worker: entries of one file, or files of earlier versions.
const (
	markEntry   = "mark"
	specEntry   = "spec"
	recordEntry = "record"
	exitEntry   = "exit"
)

// The files in Root.
const (
	entriesFile = "entries"
	tasksFile   = "tasks"
	linesFile   = "lines"
	workDir     = "work"
	tmpDir      = "tmp"
	// socketPrefix begins the name of the control socket.
	socketPrefix = "control-"
)

// maxFile bounds what is read back from Root: arguments and environment of
// the longest job fit in easily, some times.
const maxFile = 32 << 20

// terms are what the node adds to a Spec that it starts.
type terms struct {
	Version int           `json:"version"`
	Socket  string        `json:"socket"` // path of the control socket, which the supervisor inherits
	Key     string        `json:"key"`    // what a node must know to be heard
	Grace   time.Duration `json:"grace"`
	Spool   int64         `json:"spool"`
	Counts  bool          `json:"counts"` // the supervisor, of the same version, tells how much input it passed on
	// Namespaces: whether the worker gets namespaces of its own.
	Namespaces bool `json:"namespaces,omitempty"`
	// Groups is where the worker's control group is to be.
	Groups cgroup.Place `json:"groups,omitzero"`
	// Quota: whether the file system is to bound the worker's files.
	Quota bool `json:"quota,omitempty"`
}

// stored is how a Spec lies in Root, for its supervisor and for later nodes.
type stored struct {
	terms
	Spec Spec `json:"spec"`
}

// note notes what the supervisor is to do.
func (s *Spec) note() error { return save(s.Root, specEntry, stored{s.terms, *s}) }

// loadSpec reads what Spec.note noted.
func loadSpec(root string, s *Spec) error { return notesOf(root).loadSpec(s) }

func (n *notes) loadSpec(s *Spec) error {
	all := stored{s.terms, *s}
	err := n.load(specEntry, &all)
	*s, s.terms = all.Spec, all.terms
	return err
}

// groupName names the control group of the worker of a root.
func groupName(root string) string { return filepath.Base(root) }

// record says which processes belong to Root. A node that finds it can connect to
// Socket with the Key of its Spec.
type record struct {
	Version    int     `json:"version"`
	Socket     string  `json:"socket"`
	Supervisor proc.ID `json:"supervisor"`
	Launcher   proc.ID `json:"launcher,omitzero"` // not of earlier versions
	Worker     proc.ID `json:"worker,omitzero"`   // leader of the worker's session; not with namespaces
}

// exitRecord is how it ended.
type exitRecord struct {
	Version  int       `json:"version"`
	Exit     work.Exit `json:"exit"`
	Stdout   int64     `json:"stdout"` // bytes written in all
	Stderr   int64     `json:"stderr"`
	AckedOut int64     `json:"acked_stdout,omitempty"` // delivered, as far as the node has said
	AckedErr int64     `json:"acked_stderr,omitempty"`
	Tasks    int       `json:"tasks,omitempty"` // that have ended
}

func (r *exitRecord) counts() (written, acked [2]int64) {
	return [2]int64{r.Stdout, r.Stderr}, [2]int64{r.AckedOut, r.AckedErr}
}

// save notes v in Root.
func save(root, name string, v any) error {
	b, err := codec.Marshal(v)
	if err != nil {
		return err
	}
	return Note(root, name, b, false)
}

// Note notes a value of the caller's in Root, beside what is known of the worker; if it
// is to be durable it is on the disk when Note returns. It must not be called while the
// worker has a supervisor.
func Note(root, name string, value []byte, durable bool) error {
	how := entries.Append
	if durable {
		how = entries.Sync
	}
	return how(filepath.Join(root, entriesFile), name, value)
}

// Noted returns the latest value of a name. The error wraps fs.ErrNotExist if there is
// none, or codec.ErrMalformed if it, or what may be a later one, is damaged: then the value
// is the latest before that, or nil.
func Noted(root, name string) ([]byte, error) { return notesOf(root).noted(name) }

// notes is what is known of a worker at one moment.
type notes struct {
	root string
	all  *entries.File
	err  error
}

func notesOf(root string) *notes {
	all, err := entries.Read(filepath.Join(root, entriesFile), maxFile)
	return &notes{root, all, err}
}

// noted is as Noted.
func (n *notes) noted(name string) (b []byte, err error) {
	if err = n.err; err == nil {
		b, err = n.all.Get(name)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fromFile(n.root, name)
	}
	return b, err
}

// load reads what save noted.
func (n *notes) load(name string, v any) error {
	b, err := n.noted(name)
	if err == nil {
		err = codec.Unmarshal(b, v)
	}
	if err != nil {
		return fmt.Errorf("%s of %s: %w", name, n.root, err)
	}
	return nil
}

// fromFile returns what an earlier version noted in a file of its own.
func fromFile(root, name string) ([]byte, error) {
	path := filepath.Join(root, name)
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil, fmt.Errorf("%s: %w: want a file of at most %d bytes", path, fs.ErrInvalid, maxFile)
	}
	b, err := os.ReadFile(path)
	if err == nil && !codec.Unsealed(b) {
		b, err = codec.Unseal(b)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return b, nil
}

// Forget takes the notes of a name away. It needs no room on the disk.
func Forget(root, name string) error {
	all := []error{entries.Drop(filepath.Join(root, entriesFile), name), os.Remove(filepath.Join(root, name))} // the latter of an earlier version
	return errors.Join(slices.DeleteFunc(all, func(err error) bool { return errors.Is(err, fs.ErrNotExist) })...)
}

// isNoted reports whether there is a value of a name, be it damaged; isMissing whether there
// is none. Where nobody can tell both are false.
func isNoted(root, name string) bool {
	_, err := Noted(root, name)
	return err == nil || errors.Is(err, codec.ErrMalformed)
}

func isMissing(root, name string) bool {
	_, err := Noted(root, name)
	return errors.Is(err, fs.ErrNotExist)
}

// keepExit makes the exit record durable, if it is there.
func keepExit(root string) error {
	for _, name := range []string{entriesFile, exitEntry, "."} {
		if err := atomicfile.Sync(filepath.Join(root, name)); err != nil && !errors.Is(err, fs.ErrNotExist) { // removed meanwhile
			return err
		}
	}
	return nil
}

// load reads what save noted.
func load(root, name string, v any) error { return notesOf(root).load(name, v) }

// OverTime says of a worker that it needed more than its walltime.
func OverTime(limit time.Duration) string { return fmt.Sprintf("needed more than %v (-t)", limit) }

func overTime(limit time.Duration, lent bool) string {
	if lent {
		return fmt.Sprintf("needed more than %v, which is all that the owner of its node allows without -t", limit)
	}
	return OverTime(limit)
}

func overMemory(limit int64) string {
	return fmt.Sprintf("needed more than %s of memory (--mem)", units.Bytes(limit))
}

const noMemory = "was killed, since its node had no memory left for workers: ask for what it needs (--mem)"

func overDisk(limit int64) string {
	return fmt.Sprintf("needed more than %s of disk space (--disk)", units.Bytes(limit))
}

// OverOutput says why a worker was ended that wrote more than Spec.MaxOutput.
func OverOutput(limit int64) string {
	return fmt.Sprintf("wrote more than %s of output (--max-output)", units.Bytes(limit))
}

func signalName(s syscall.Signal) string {
	if name := unix.SignalName(s); name != "" {
		return fmt.Sprintf("%s (%v)", name, s)
	}
	return fmt.Sprintf("signal %d", int(s))
}
