package process

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"zorilla/internal/atomicfile"
	"zorilla/internal/codec"
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
}

// record says which processes belong to Root, in Root/record. A node that
// finds it can connect to Socket with the Key of Root/spec.
type record struct {
	Version    int    `json:"version"`
	Socket     string `json:"socket"`
	Supervisor procID `json:"supervisor"`
	Worker     procID `json:"worker,omitzero"` // leader of the worker's session
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

// procID names a process for good: numbers of processes come again, and the
// clock ticks of Start begin anew with each boot.
type procID struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // clock ticks after boot
	Boot  string `json:"boot"`
}

// identify returns the identity of a living process.
func identify(pid int) (procID, error) {
	st, err := readStat(pid)
	if err != nil {
		return procID{}, err
	}
	boot, err := bootID()
	return procID{PID: pid, Start: st.start, Boot: boot}, err
}

// bootID names the time since the machine was started.
func bootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b)), err
}

// alive reports whether the very process still exists and is not a zombie.
func (p procID) alive() bool {
	if p.PID <= 0 {
		return false
	}
	if now, err := identify(p.PID); err != nil || now != p {
		return false
	}
	st, err := readStat(p.PID)
	return err == nil && st.state != 'Z' && st.state != 'X'
}

// stat is the part of /proc/PID/stat that is needed here.
type stat struct {
	state   byte
	parent  int
	session int
	start   uint64
}

func readStat(pid int) (stat, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return stat{}, err
	}
	return parseStat(b)
}

// parseStat reads the fields after the command's name, which may itself hold
// spaces and parentheses.
func parseStat(b []byte) (stat, error) {
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(f) < 20 || len(f[0]) != 1 {
		return stat{}, errors.New("process status is not as expected")
	}
	parent, err1 := strconv.Atoi(string(f[1]))
	session, err2 := strconv.Atoi(string(f[3]))
	start, err3 := strconv.ParseUint(string(f[19]), 10, 64)
	return stat{state: f[0][0], parent: parent, session: session, start: start}, errors.Join(err1, err2, err3)
}

// save writes v to Root/name so that a reader sees all of it or nothing; with
// sync also after a crash of the machine.
func save(root, name string, v any, sync bool) error {
	b, err := codec.Marshal(v)
	if err != nil {
		return err
	}
	how := atomicfile.How{}
	if !sync {
		how.Sync = atomicfile.Loose
	}
	return how.Write(filepath.Join(root, name), codec.Seal(b))
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
