package columns

import (
	"strings"
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/node/api"
	"zorilla/vicinity"
)

func TestClean(t *testing.T) {
	if got := Clean("a\x1b]0;x\a\tü\n\u202e"); got != "a?]0;x? ü??" {
		t.Errorf("got %q", got)
	}
}

// What is cut takes no more columns than there are, and what fits is left alone.
func TestCut(t *testing.T) {
	for text, want := range map[string]string{"abcdefgh": "abcdefgh", "abcdefghi": "abcdefg…", "日本語の": "日本語の", "日本語の名前": "日本語…", "e\u0301te\u0301": "e\u0301te\u0301", "a\x1b]0;hidden title\a": "a?]0;hi…"} {
		got := Cut(text, 8)
		if got != want || Width(got) > 8 {
			t.Errorf("%s: got %s, %d wide, want %s", text, got, Width(got), want)
		}
	}
	for text, want := range map[string]int{"": 0, "abc~ ": 5, "日本": 4, "🙂": 2, "e\u0301": 1, "ü": 1} {
		if got := Width(text); got != want {
			t.Errorf("%q is %d wide, want %d", text, got, want)
		}
	}
}

func TestPaint(t *testing.T) {
	for cell, want := range map[string]string{"FAILED": "\x1b[31mFAILED\x1b[m", "running": "\x1b[36mrunning\x1b[m", "draining": "\x1b[33mdraining\x1b[m", "alpha": "alpha"} {
		if got := Paint(cell); got != want {
			t.Errorf("%s: %q, want %q", cell, got, want)
		}
	}
}

func TestRTT(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "-", 42 * time.Microsecond: "0.04ms", 1500 * time.Microsecond: "1.5ms", 240 * time.Millisecond: "240ms"} {
		if got := RTT(d); got != want {
			t.Errorf("%v is %s, want %s", d, got, want)
		}
	}
}

func TestTitle(t *testing.T) {
	for want, args := range map[string][]string{"": nil, "prog -x": {"/opt/bin/prog", "-x"}} {
		if got := Title("", args); got != want {
			t.Errorf("%q: got %q", args, got)
		}
	}
	if got := Title("train", []string{"./prog"}); got != "train" {
		t.Errorf("got %q", got)
	}
}

func TestWorkersOfAJob(t *testing.T) {
	workers := func(n int) (list []jobs.WorkerStatus) {
		for i := range n {
			list = append(list, jobs.WorkerStatus{Rank: i, State: jobs.WorkerRunning})
		}
		return list
	}
	for want, st := range map[string]jobs.Status{
		"6":              {State: jobs.Running, Spec: jobs.Spec{Min: 6, Max: 6}, Workers: workers(6)},
		"3 of 6":         {State: jobs.Pending, Spec: jobs.Spec{Min: 6, Max: 6}, Workers: workers(3)},
		"4 of 2-4":       {State: jobs.Running, Spec: jobs.Spec{Min: 2, Max: 4}, Workers: workers(4)},
		"980/1000 tasks": {State: jobs.Running, Array: &jobs.ArrayStatus{Tasks: 1000, Done: 980}},
	} {
		if got := Workers(st.Summary()); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// What is not known of a job is not told.
func TestJobCells(t *testing.T) {
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for want, st := range map[string]jobs.Summary{
		"- - 0 B":                    {State: jobs.Running},
		"3 5m00s 2 KiB rank 1":       {State: jobs.Failed, ExitCode: 3, Submitted: noon.Add(-5 * time.Minute), Size: 2048, Reason: "rank 1"},
		"0 1m00s forgotten":          {State: jobs.Completed, Submitted: noon.Add(-time.Minute), Forgotten: noon},
		"- - - last known: it waits": {State: jobs.Pending, LastKnown: true, Reason: "it waits"},
		"- - - last known":           {State: jobs.Pending, LastKnown: true},
		"- - 0 B damaged: gone":      {State: jobs.Pending, Damage: "gone"},
	} {
		if got := strings.TrimSpace(strings.Join([]string{Exit(st), Age(st, noon), Kept(st), Why(st)}, " ")); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestBusy(t *testing.T) {
	n := api.NodeInfo{Member: vicinity.Member{Slots: 4}, Busy: 2}
	if got := Busy(&n); got != "?/4" {
		t.Errorf("not told: %s", got)
	}
	n.Told = time.Unix(1, 0)
	if got := Busy(&n); got != "2/4" {
		t.Errorf("told: %s", got)
	}
}

func TestStateOfANode(t *testing.T) {
	told := time.Unix(1, 0)
	for want, n := range map[string]api.NodeInfo{
		"unknown unknown": {},
		"ready ready":     {Told: told},
		"paused paused":   {Told: told, State: "paused"},
		"outside hours outside hours until Mon 19:00 CET": {Told: told, State: api.StateHours, Why: "until Mon 19:00 CET"},
		"broken broken: disk full":                        {Told: told, State: "broken", Why: "disk full"},
	} {
		if got := State(&n) + " " + StateAndCause(&n); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
