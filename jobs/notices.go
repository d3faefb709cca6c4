package jobs

import (
	"fmt"
	"strings"
	"syscall"
	"time"
)

// Notices says who is told of what happens to the job.
type Notices struct {
	// SignalOnChange is sent to each process of the job that handles it when the
	// host file has changed: HUP, INT, USR1, USR2, URG or WINCH; "" = none.
	SignalOnChange string `json:"signal_on_change,omitempty"`

	// OnEnd is a command for a shell that the origin runs when the job has ended, outside of
	// any sandbox, as the user of the node; "" = none. So it is the business of the origin
	// and its owner alone: it is told to no other node, and believed of none.
	OnEnd string `json:"on_end,omitempty"`
}

// MaxOnEnd bounds OnEnd.
const MaxOnEnd = 4096

// AtOrigin is what the origin of a job does for it beside looking after its workers.
type AtOrigin struct {
	// StdinBytes is how much standard input has come for rank 0 so far.
	StdinBytes int64 `json:"stdin_bytes,omitempty"`
	// OnEnd is what became of the command of that name, once it has ended; nil = it has not,
	// or there is none.
	OnEnd *OnEnd `json:"on_end,omitempty"`
	// Earlier are the attempts of ranks, before the one that counts, of which output is kept.
	Earlier []int `json:"earlier,omitempty"`
}

// OnEnd is how a command ended that was run since a job had.
type OnEnd struct {
	At   time.Time `json:"at"`
	Code int       `json:"code"`           // its exit code; 0 = it did what it was to do
	Text string    `json:"text,omitempty"` // of one that failed: why, or the last that it printed
}

// CommandAtEnd says what has become of the command of OnEnd, for people to read.
func (s *Status) CommandAtEnd() string {
	switch e := s.OnEnd; {
	case e == nil && s.Broken != "":
		return "not run: how the job ended is not known"
	case e == nil && s.State.Final():
		return "runs, or waits to be run"
	case e == nil:
		return "to be run"
	case e.Code == 0:
		return "done"
	case e.Text == "":
		return fmt.Sprintf("ended with %d", e.Code)
	default:
		return fmt.Sprintf("ended with %d: %s", e.Code, e.Text)
	}
}

// Discreet returns the status without what is only for the job's own node.
func (s Status) Discreet() Status {
	s.Spec.OnEnd, s.OnEnd = "", nil
	return s
}

// checkNotices returns what is wrong, as a user sees it.
func (s *Spec) checkNotices() string {
	switch {
	case len(s.OnEnd) > MaxOnEnd:
		return fmt.Sprintf("--on-end: %d bytes, at most %d: put it into a script", len(s.OnEnd), MaxOnEnd)
	case strings.ContainsRune(s.OnEnd, 0):
		return "--on-end: it holds a zero byte"
	case s.SignalOnChange == "":
	case SignalNumber(s.SignalOnChange) == 0:
		return fmt.Sprintf("--signal-on-change %.20q: want HUP, INT, USR1, USR2, URG or WINCH", s.SignalOnChange)
	case s.Array != nil:
		return "--signal-on-change: tasks of an array do not know of each other"
	case s.Replicas > 1:
		return "--signal-on-change: nothing changes for the copies of a job with --replicas"
	}
	return ""
}

// SignalNumber returns the signal of --signal-on-change, or 0.
func SignalNumber(name string) int {
	switch name {
	case "HUP":
		return int(syscall.SIGHUP)
	case "INT":
		return int(syscall.SIGINT)
	case "USR1":
		return int(syscall.SIGUSR1)
	case "USR2":
		return int(syscall.SIGUSR2)
	case "URG":
		return int(syscall.SIGURG)
	case "WINCH":
		return int(syscall.SIGWINCH)
	}
	return 0
}
