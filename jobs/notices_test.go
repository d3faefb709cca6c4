package jobs_test

import (
	"testing"

	"zorilla/jobs"
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
