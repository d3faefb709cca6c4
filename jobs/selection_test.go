package jobs_test

import (
	"fmt"
	"testing"
	"time"

	"zorilla/jobs"
)

func TestSelection(t *testing.T) {
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	var list []jobs.Summary
	for i, s := range []jobs.State{jobs.Pending, jobs.Completed, jobs.Running, jobs.Failed, jobs.Staging, jobs.Pending} {
		list = append(list, jobs.Summary{ID: jobs.ID(fmt.Sprintf("k%d@zeb2a", i)), Name: "Weather", Args: []string{"./prog", "data"}, State: s,
			Submitted: at.Add(time.Duration(i)), Ended: at.Add(time.Duration(10 - i))})
	}
	for _, c := range []struct {
		q             jobs.Selection
		active, ended string
	}{
		{jobs.Selection{}, "k4 k2 k5 k0 ", "k1 k3 "},
		{jobs.Selection{Text: "wEATH"}, "k4 k2 k5 k0 ", "k1 k3 "},
		{jobs.Selection{Text: "prog data"}, "k4 k2 k5 k0 ", "k1 k3 "},
		{jobs.Selection{Text: "K5"}, "k5 ", ""},
		{jobs.Selection{Text: "5@z"}, "", ""},
		{jobs.Selection{States: []jobs.State{jobs.Failed, jobs.Staging}}, "k4 ", "k3 "},
	} {
		var d jobs.Selected
		for _, s := range list {
			d.Add(&c.q, s)
		}
		d.Sort()
		names := func(list []jobs.Summary) (text string) {
			for _, s := range list {
				text += string(s.ID[:2]) + " "
			}
			return text
		}
		if a, e := names(d.Active), names(d.Ended); a != c.active || e != c.ended || d.Found != len(d.Ended) || d.Running != 2 || d.Waiting != 2 || d.Over != 2 {
			t.Errorf("%+v: active %q, ended %q; %d found, %d running, %d waiting, %d over", c.q, a, e, d.Found, d.Running, d.Waiting, d.Over)
		}
	}
}
