package jobs

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"zorilla/internal/units"
)

// Notices says who is told of what happens to the job.
type Notices struct {
	// Signal says what the program hears before it is ended: SIG or SIG@TIME, see ParseSignal; "" = nothing.
	Signal string `json:"signal,omitempty"`

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
	number, notice, err := ParseSignal(s.Signal)
	switch {
	case s.Signal == "":
	case err != nil:
		return fmt.Sprintf("--signal %.40q: %v", s.Signal, err)
	case s.Walltime > 0 && notice >= time.Duration(s.Walltime):
		return fmt.Sprintf("--signal %s: %v before its time is over the program has not begun (-t %v): want less than that",
			SignalName(number), notice, s.Walltime)
	case s.Array != nil && s.Walltime == 0:
		return "--signal: a task that is interrupted begins anew elsewhere, and only its time can be told to be nearly over: want -t"
	}
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

// How long before its end a program may hear of it.
const (
	LeastNotice   = time.Second
	MostNotice    = 24 * time.Hour
	DefaultNotice = time.Minute
)

// ParseSignal reads SIG or SIG@TIME: the number of a signal that programs can handle, and how long before its end the
// program gets it, LeastNotice to MostNotice, DefaultNotice if that is not named. SIG is a name, with or without "SIG", or a
// number.
func ParseSignal(text string) (number int, notice time.Duration, err error) {
	sig, span, timed := strings.Cut(text, "@")
	if number, err = strconv.Atoi(sig); err != nil {
		number = int(unix.SignalNum("SIG" + strings.TrimPrefix(strings.ToUpper(sig), "SIG")))
	}
	switch syscall.Signal(number) {
	case syscall.SIGKILL, syscall.SIGSTOP:
		return 0, 0, fmt.Errorf("no program can handle %s; want another, such as USR1", SignalName(number))
	case 32, 33: // of the C library
		number = 0
	}
	if number < 1 || number > maxSignal {
		return 0, 0, errors.New("want a signal such as USR1, and how long before the end, as in USR1@60s")
	}
	if notice = DefaultNotice; timed {
		if notice, err = units.ParseSpan(span); err != nil {
			return 0, 0, err
		}
	}
	if notice < LeastNotice || notice > MostNotice {
		return 0, 0, fmt.Errorf("%v before the end, want %v to %v", notice, LeastNotice, MostNotice)
	}
	return number, notice, nil
}

const maxSignal = 64

// SignalName is what a signal is called, without "SIG"; its number if it has no name.
func SignalName(number int) string {
	if name := unix.SignalName(syscall.Signal(number)); name != "" {
		return strings.TrimPrefix(name, "SIG")
	}
	return strconv.Itoa(number)
}

// Notice is the signal that the program gets before it is ended, and how long before; 0 = none.
func (n *Notices) Notice() (signal int, before time.Duration) {
	if n.Signal == "" {
		return 0, 0
	}
	signal, before, _ = ParseSignal(n.Signal) // Validate has done so before
	return signal, before
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
