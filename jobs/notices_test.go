package jobs_test

import (
	"errors"
	"testing"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/work"
)

// What became of the command of --on-end is told, also if it will never be run.
func TestCommandAtEnd(t *testing.T) {
	for want, st := range map[string]jobs.Status{
		"to be run":                {State: jobs.Running},
		"runs, or waits to be run": {State: jobs.Failed},
		"done":                     {State: jobs.Failed, AtOrigin: jobs.AtOrigin{OnEnd: &jobs.OnEnd{}}},
		"ended with 3: no mail":    {State: jobs.Failed, AtOrigin: jobs.AtOrigin{OnEnd: &jobs.OnEnd{Code: 3, Text: "no mail"}}},
		"ended with 3":             {State: jobs.Failed, AtOrigin: jobs.AtOrigin{OnEnd: &jobs.OnEnd{Code: 3}}},
		"not run: how the job ended is not known": {State: jobs.Failed, Broken: "an entry is missing"},
	} {
		if got := st.CommandAtEnd(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestParseSignal(t *testing.T) {
	for text, want := range map[string]struct {
		number int
		notice time.Duration
	}{
		"USR1": {10, time.Minute}, "sigusr2@90": {12, 90 * time.Second}, "15@1s": {15, time.Second}, "WINCH@24h": {28, 24 * time.Hour}, "36@10m": {36, 10 * time.Minute},
	} {
		number, notice, err := jobs.ParseSignal(text)
		if err != nil || number != want.number || notice != want.notice {
			t.Errorf("%s: %d, %v, %v", text, number, notice, err)
		}
	}
	for _, text := range []string{"", "@60s", "USR1@", "USR1@0s", "USR1@999ms", "USR1@25h", "USR1@x", "KILL", "9@5s", "SIGSTOP@5s", "0@5s", "-1", "65", "32", "USR1@60s@60s", "SIGSIGUSR1", "NONE", "USR1 @60s"} {
		if number, notice, err := jobs.ParseSignal(text); err == nil {
			t.Errorf("%q: %d, %v", text, number, notice)
		}
	}
	for number, want := range map[int]string{10: "USR1", 36: "36"} {
		if got := jobs.SignalName(number); got != want {
			t.Errorf("%d is %s, want %s", number, got, want)
		}
	}
}

func TestSignalIsChecked(t *testing.T) {
	spec := func(change func(s *jobs.Spec)) error {
		s := jobs.Spec{Args: []string{"a"}, Min: 1, Max: 1, Slots: 1, Walltime: codec.Duration(time.Hour), Notices: jobs.Notices{Signal: "USR1@59m"}}
		change(&s)
		return s.Validate()
	}
	array := &jobs.Array{Tasks: []work.TaskIDs{{First: 1, Last: 3, Step: 1}}}
	for name, change := range map[string]func(s *jobs.Spec){
		"before the walltime": func(*jobs.Spec) {},
		"no walltime":         func(s *jobs.Spec) { s.Walltime, s.Signal = 0, "USR1@24h" },
		"of tasks":            func(s *jobs.Spec) { s.Array = array },
	} {
		if err := spec(change); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, change := range map[string]func(s *jobs.Spec){
		"at the start":         func(s *jobs.Spec) { s.Signal = "USR1@1h" },
		"none that is handled": func(s *jobs.Spec) { s.Signal = "KILL" },
		"of tasks, no end":     func(s *jobs.Spec) { s.Array, s.Walltime = array, 0 },
	} {
		if err := spec(change); !errors.Is(err, jobs.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
