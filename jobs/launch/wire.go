package launch

import (
	"os"
	"path/filepath"
	"strings"

	"zorilla/jobs/sandbox"
	"zorilla/jobs/session"
)

// World is what a launcher builds for all its commands.
type World struct {
	// Namespaces: whether the commands are to have namespaces; else there is only
	// Landlock and seccomp, and one command at a time.
	Namespaces bool `json:"namespaces"`
	// Among: their group bounds whom they reach, which sockets of others would lead around.
	Among bool `json:"among,omitempty"`
	UID   int  `json:"uid"` // user and group of the commands; not positive = those of the launcher
	GID   int  `json:"gid"`
	// Base holds the directories of all commands. They see none but their own, and
	// with namespaces those of each other.
	Base string `json:"base"`
	// At is the directory that holds them there, with namespaces: a short path, since unix
	// sockets have 107 bytes for theirs. "" = Base.
	At        string `json:"at,omitempty"`
	Processes int    `json:"processes"`         // bound on processes and threads of the user; 0 = none
	Besides   bool   `json:"besides,omitempty"` // beside those that the user has when the world is built
	Sight
}

// Sight is what commands see of their machine. It is written into the directories of workers.
type Sight struct {
	// Alone: their only network, and that of all in their world, is a loopback interface of their
	// own. It needs namespaces.
	Alone    bool     `json:"alone,omitempty"`
	Expose   []string `json:"expose"`             // further paths that they may read
	Writable []string `json:"writable,omitempty"` // further paths that they may read and write, but for those of Expose below them
	Devices  []string `json:"devices,omitempty"`  // device files that they may use
	Hide     []string `json:"hide"`               // never open, even if exposed
}

// shared reports whether several commands may run in a world at once.
func (w *World) shared() bool { return Shared(w.Namespaces, w.UID) }

// at is where commands see their directories.
func (w *World) at() string {
	if w.At != "" && w.Namespaces {
		return w.At
	}
	return w.Base
}

// places are what a command calls some of its directories, and what the machine does.
func (c *Command) places(dirs []string) []sandbox.Place {
	var all []sandbox.Place
	for _, d := range dirs {
		p := sandbox.Place{At: d, From: d}
		for _, around := range [...]sandbox.Place{{From: c.Root, At: c.RootAt}, {From: c.Shared, At: c.SharedAt}} {
			if rest, below := strings.CutPrefix(d, around.At+"/"); below && around.At != "" {
				p.From = filepath.Join(around.From, rest)
			}
		}
		all = append(all, p)
	}
	return all
}

// rootless reports whether commands run as root without its powers: then the thread
// that forks them cannot make namespaces.
func (w *World) rootless() bool { return rootless(w.UID) }

func rootless(uid int) bool { return os.Geteuid() == 0 && uid <= 0 }

// Shared reports whether a launcher can tell the processes of several commands from
// each other, with or without namespaces and for a user as in World.
func Shared(namespaces bool, uid int) bool { return namespaces && !rootless(uid) }

// Command is what a launcher is to run. It is sent as it is, behind its head.
type Command struct {
	head
	Args  []string `json:"args"`
	Env   []string `json:"env"`
	Dir   string   `json:"dir"`   // absolute; where it begins, one of Write
	Write []string `json:"write"` // directories as it sees them, below World.At; also all that later commands of the same number need
	Read  []string `json:"read"`  // the same, to read and execute from
	// Root is the directory of the machine, below World.Base, that a command of a world with At
	// sees as RootAt, one below that.
	Root   string `json:"root,omitempty"`
	RootAt string `json:"root_at,omitempty"`
	// Shared and SharedAt are the same of the directory around Dir, where commands of several
	// numbers have that together.
	Shared   string `json:"shared,omitempty"`
	SharedAt string `json:"shared_at,omitempty"`
	Memory   int64  `json:"memory"`
	// Serial, if it is not 0, names this one of the commands of a number; nobody waits
	// for the answer that it has begun.
	Serial int `json:"serial,omitempty"`
	// Fresh: it is to find nothing in /tmp and /dev/shm, and no segments, that commands before
	// it have left.
	Fresh bool `json:"fresh,omitempty"`
	// Together: it has the session of the launcher, since the kernel may give each session
	// processors of its own (sched_autogroup).
	Together bool `json:"together,omitempty"`
	// Cores are the processors that it runs on, as far as it may; nil = any.
	Cores []int `json:"cores,omitempty"`
	// Terminal: a command of StartSidecar gets a terminal of its own of that size, whose other end is
	// sent over the first of its descriptors.
	Terminal *session.Size `json:"terminal,omitempty"`
}

// What a launcher is asked for, once it has its World.
const (
	opWay     = "way"  // descriptors that lead back from control groups come along: before those
	opJoin    = "join" // descriptors of the control group of a number's commands come along
	opRun     = "run"
	opSignal  = "signal"  // to all processes of a command
	opHint    = "hint"    // to those that handle it
	opKill    = "kill"    // all processes of a command, until none is left
	opRelease = "release" // the directories of a number: nothing of it runs any more
	opSidecar = "also"    // one more command beside that of a number
)

// maxExtra is how many descriptors a command may have beyond the first three.
const maxExtra = 1

// head says what is asked for, and of which command. Where that needs no more it is sent alone.
type head struct {
	Op      string `json:"op"`
	Number  int    `json:"number,omitempty"`
	Signal  int    `json:"signal,omitempty"`
	Sidecar int    `json:"extra,omitempty"` // also, signal, kill: which command of StartSidecar
}

// The kinds of reports.
const (
	opStarted  = "started"
	opRefused  = "refused"
	opExited   = "exited"   // the command's main process
	opGone     = "gone"     // nothing of the command is left
	opExceeded = "exceeded" // it needs more memory than it may
	opEnded    = "ended"    // a command of StartSidecar, of which nothing is left, or which was refused
)

type report struct {
	Op      string `json:"op"`
	Number  int    `json:"number,omitempty"`
	PID     int    `json:"pid,omitempty"`
	Serial  int    `json:"serial,omitempty"` // exceeded: of the command
	Sidecar int    `json:"extra,omitempty"`
	Cause   Cause  `json:"cause,omitempty"`
	Text    string `json:"text,omitempty"`
	Status  int    `json:"status,omitempty"`
	Alone   bool   `json:"alone,omitempty"` // exited: nothing is left; gone does not follow
	Use            // exited, gone; its fields are the report's
}
