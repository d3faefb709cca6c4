package selector

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"zorilla/jobs"
)

var now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// listing is a long job that has just ended, submitted before all others, and 12
// short ones; two more are active.
func listing() (list []jobs.Summary) {
	add := func(name string, state jobs.State, submitted, ended time.Duration) {
		st := jobs.Summary{ID: jobs.ID(name), Name: name, State: state, Submitted: now.Add(-submitted)}
		if ended > 0 {
			st.Ended = now.Add(-ended)
		}
		list = append(list, st)
	}
	add("wait", jobs.Pending, time.Minute, 0)
	add("train", jobs.Running, 3*time.Hour, 0)
	for i := range 12 {
		at := time.Duration(i+1) * time.Hour
		add(fmt.Sprintf("short%d", i), jobs.Completed, at, at-time.Second)
	}
	add("lost", jobs.Failed, 19*time.Hour, 0) // its journal does not tell the end
	add("long", jobs.Failed, 20*time.Hour, time.Second)
	return list
}

func TestSelection(t *testing.T) {
	list := listing()
	for name, c := range map[string]struct {
		s    Selection
		want string
	}{
		"active":           {Selection{}, "wait train"},
		"the last three":   {Selection{Ended: 3}, "wait train short0 short1 long"},
		"all":              {Selection{Ended: -1, Limit: 4}, "wait train short0 short1"},
		"states":           {Selection{Ended: -1, States: []jobs.State{jobs.Failed, jobs.Running}}, "train lost long"},
		"a name":           {Selection{Ended: -1, Name: "long"}, "long"},
		"a pattern":        {Selection{Ended: -1, Name: "*rt1?"}, "short10 short11"},
		"no pattern":       {Selection{Ended: -1, Name: "["}, ""},
		"since":            {Selection{Ended: -1, Since: now.Add(-2 * time.Hour)}, "wait short0 short1"},
		"more than enough": {Selection{Ended: 100, Limit: 100, Name: "l*"}, "lost long"},
	} {
		var got []string
		for _, i := range c.s.Of(list) {
			got = append(got, list[i].Name)
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s: got %s, want %s", name, text, c.want)
		}
	}
}

func TestParseStates(t *testing.T) {
	for text, want := range map[string][]jobs.State{
		"running,FAILED": {jobs.Running, jobs.Failed},
		"active":         {jobs.Pending, jobs.Staging, jobs.Running, jobs.Collecting},
		"Node_Fail":      {jobs.NodeFail},
		"ended,pending":  {jobs.Completed, jobs.Failed, jobs.Cancelled, jobs.Timeout, jobs.NodeFail, jobs.Pending},
	} {
		if got, err := ParseStates(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "running,", "run", "/var/lib/zorilla"} {
		if got, err := ParseStates(text); err == nil {
			t.Errorf("%q: got %v", text, got)
		}
	}
}

func TestWords(t *testing.T) {
	known := []string{"id", "name"}
	if got, err := Words("NAME, id", known); err != nil || !slices.Equal(got, []string{"name", "id"}) {
		t.Errorf("got %v, %v", got, err)
	}
	for _, text := range []string{"", "id,", "ids"} {
		if got, err := Words(text, known); err == nil || !strings.Contains(err.Error(), "id,name") {
			t.Errorf("%q: got %v, %v", text, got, err)
		}
	}
}
