package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/work"
	"zorilla/testnet/chart"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// at is some milliseconds after noon.
func at(ms int) time.Time { return noon.Add(time.Duration(ms) * time.Millisecond) }

// aJob is a job of two that was submitted at oslo-1 after some milliseconds, and had
// workers at hosts for twenty.
func aJob(id string, submitted int, hosts ...string) job {
	j := job{Part: "towns", User: "oslo-1", ID: jobs.ID(id), Wanted: 2, Submitted: at(submitted), Started: at(submitted + 5), Attempts: 1}
	for _, h := range hosts {
		j.Workers = append(j.Workers, worker{h, at(submitted + 20)})
	}
	return j
}

func TestPassedOver(t *testing.T) {
	// from is the job of somebody else.
	from := func(user string, j job) job {
		j.User = user
		return j
	}
	alone := aJob("elsewhere", 100, "oslo-2", "riga-1")
	one := aJob("one", 100, "oslo-2")
	one.Wanted = 1
	remote := aJob("remote", 90, "oslo-1", "oslo-1")
	remote.Part = "remote"
	for name, c := range map[string]struct {
		j      job
		others []job
		want   int
	}{
		"both taken":                            {aJob("own", 100, "oslo-1", "oslo-1"), nil, 0},
		"one taken":                             {aJob("half", 100, "oslo-1", "oslo-2"), nil, 1},
		"none taken":                            {alone, nil, 2},
		"one wanted":                            {one, nil, 1},
		"an older one has both":                 {alone, []job{from("riga-3", aJob("a", 90, "oslo-1", "oslo-1"))}, 0},
		"an older one has one":                  {alone, []job{from("riga-3", aJob("a", 90, "oslo-1", "riga-3"))}, 1},
		"two older ones have one each":          {alone, []job{from("riga-3", aJob("a", 90, "oslo-1", "riga-3")), aJob("b", 95, "oslo-1")}, 0},
		"an older one had ended":                {alone, []job{from("riga-3", aJob("a", 79, "oslo-1", "oslo-1"))}, 2},
		"an older one ended at that moment":     {alone, []job{from("riga-3", aJob("a", 80, "oslo-1", "oslo-1"))}, 2},
		"a younger one has both":                {alone, []job{from("riga-3", aJob("a", 101, "oslo-1", "oslo-1"))}, 2},
		"an older one is at the site's others":  {alone, []job{from("riga-3", aJob("a", 90, "oslo-2", "oslo-3"))}, 2},
		"an older one of another network":       {alone, []job{remote}, 2},
		"one taken, the other has an older one": {aJob("half", 100, "oslo-1", "riga-1"), []job{from("riga-3", aJob("a", 90, "oslo-1"))}, 0},
	} {
		if got := passedOver(&c.j, append(c.others, c.j)); got != c.want {
			t.Errorf("%s: %d passed over, want %d", name, got, c.want)
		}
	}
}

// roomFor returns jobs of oslo-1 that could not have its own slots, so many of which had a
// worker at another site.
func roomFor(count, strangers int) []job {
	old := aJob("old", 0, "oslo-1", "oslo-1")
	old.Workers[0].Ended, old.Workers[1].Ended = at(1e6), at(1e6)
	all := []job{old}
	for i := range count - 1 {
		second := "oslo-3"
		if i < strangers {
			second = "riga-1"
		}
		all = append(all, aJob(fmt.Sprint(i), 100, "oslo-2", second))
	}
	return all
}

func TestCheck(t *testing.T) {
	parts := (&options{workers: 2}).parts()
	far := aJob("far", 0, "far-1", "metro-1", "metro-2")
	far.Part, far.User = "remote", "far-1"
	far.Wanted = 3
	whole := far
	whole.Workers = append(whole.Workers, worker{"far-1", at(20)})
	failed := whole
	failed.Failed = "NODE_FAIL"
	for name, c := range map[string]struct {
		all  []job
		want string // "" = all is well
	}{
		"99 % at the own site":    {append(roomFor(100, 2), whole), ""},
		"less":                    {append(roomFor(100, 3), whole), "towns: 98.5 % of the workers at the own site, want 99"},
		"an own slot passed over": {append(roomFor(100, 0), far), "remote: 1 of 1 jobs passed over idle slots of their own nodes"},
		"a job failed":            {append(roomFor(100, 0), failed), "remote: 1 of 1 jobs failed"},
		"a part without jobs":     {roomFor(100, 0), "remote: no job was run"},
		"a job that had no workers": {append(roomFor(100, 2), whole, aJob("none", 2e6)),
			"towns: 1 of 101 jobs passed over idle slots of their own nodes\ntowns: 98.0 % of the workers at the own site, want 99"},
	} {
		got := ""
		if err := check(parts, c.all); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestWhatIsJudged(t *testing.T) {
	st := jobs.Status{ID: "abc", Spec: jobs.Spec{Min: 2, Max: 2}, State: jobs.Completed, Submitted: at(0), Started: at(7), Ended: at(30), Workers: []jobs.WorkerStatus{
		{Name: "riga-1", Attempt: 2, Exit: &work.Exit{Ended: at(20)}}, {Name: "oslo-1", Attempt: 1},
	}}
	right := said{hosts: []string{"oslo-1", "riga-1"}}
	j := newJob("towns", "oslo-1", &st, right)
	if j.Failed != "" || j.hosts() != "oslo-1 riga-1" || j.Attempts != 2 || !j.Workers[0].Ended.Equal(at(20)) || !j.Workers[1].Ended.Equal(at(30)) {
		t.Errorf("got %+v", j)
	}
	if j := newJob("towns", "oslo-1", &st, said{hosts: []string{"oslo-1", "oslo-1"}}); !strings.Contains(j.Failed, "it ran at [oslo-1 oslo-1], its node says [oslo-1 riga-1]") {
		t.Errorf("a node that says something else: %q", j.Failed)
	}
	if j := newJob("towns", "oslo-1", &st, said{hosts: right.hosts, err: errors.New("exit status 125")}); j.Failed != "exit status 125" {
		t.Errorf("a run that failed: %q", j.Failed)
	}
	st.Workers = st.Workers[:1]
	if j := newJob("towns", "oslo-1", &st, said{hosts: []string{"riga-1"}}); !strings.Contains(j.Failed, "COMPLETED with 1 workers") {
		t.Errorf("a worker that is missing: %q", j.Failed)
	}
	st.State, st.Reason = jobs.Cancelled, "by its user"
	if j := newJob("towns", "oslo-1", &st, right); !strings.Contains(j.Failed, "CANCELLED with 1 workers: by its user") {
		t.Errorf("a job that was cancelled: %q", j.Failed)
	}
}

func TestReport(t *testing.T) {
	parts := (&options{workers: 2}).parts()
	bad := aJob("bad", 30, "riga-1", "riga-2")
	bad.Started, bad.Attempts, bad.Told = at(330), 2, "riga-1 offered"
	far := aJob("far", 0, "far-1", "far-1", "metro-1")
	far.Part, far.User, far.Wanted = "remote", "far-1", 3
	all := []job{aJob("good", 0, "oslo-1", "oslo-1"), bad, far}
	dir := t.TempDir()
	var wrong error
	if err := chart.Keep(dir, func(r *chart.Results) error { wrong = report(r, parts, all); return nil }); err != nil {
		t.Fatal(err)
	}
	if wrong == nil {
		t.Error("a job passed over its own slots, and all is well")
	}
	for file, wants := range map[string][]string{
		"results.txt": {
			"| oslo-1 | 2 | 50.0 % | 50.0 % | 1 | 1 | 152.5 | 300 |\n",
			"| riga-3 | 0 | - | - | 0 | 0 |  |  |\n",
			"| all | 1 | 66.7 % | 66.7 % | 0 | 0 | 5 | 5 |\n",
			"Passed over 2 slots of oslo-1: bad ran at riga-1 riga-2: riga-1 offered\n",
		},
		"loops.csv": {"towns,oslo-1,12:00:00.030,300,riga-1 riga-2,2,2,\n"},
	} {
		b, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range wants {
			if !strings.Contains(string(b), want) {
				t.Errorf("%s lacks %q:\n%s", file, want, b)
			}
		}
	}
}
