package main

import (
	"testing"
	"time"

	"zorilla/jobs"
)

func TestParse(t *testing.T) {
	o, err := parse([]string{"-quick", "-nodes", "50", "-search", "adaptive"})
	if err != nil || len(o.nodes) != 1 || o.nodes[0] != 50 || len(o.sites) != 1 || o.settled != 0 || o.out != "" || len(o.workers) != 4 {
		t.Errorf("got %+v, %v", o, err)
	}
	if _, err := parse([]string{"-workers", "8,x"}); err == nil {
		t.Error("a job of x workers")
	}
}

// The experiment itself, small: both searches find all workers, the adaptive one
// the nearest and without waiting for the schedule.
func TestSmallNetwork(t *testing.T) {
	nets := []*network{newNetwork(60, 6, 1, false)}
	for _, fill := range []string{"idle", "50", "near"} {
		for _, mode := range []string{jobs.SearchPaper, jobs.SearchAdaptive} {
			r, err := measure(nets, fill, 12, mode, 3)
			if err != nil {
				t.Fatal(err)
			}
			t.Log(r)
			if r.jobs != 3 || r.failed > 0 || r.messages < r.reached || r.ratio < 1 || r.repeat <= 0 {
				t.Errorf("%s, %s: %+v", fill, mode, r)
			}
			if mode == jobs.SearchAdaptive && (r.clear > 1.1 || r.time > time.Second) {
				t.Errorf("%s: workers are %.2f times as far as they could be, after %v", fill, r.clear, r.time)
			}
		}
	}
	if r, _ := measure(nets, "idle", 200, jobs.SearchPaper, 1); r.jobs != 0 {
		t.Errorf("a job of 200 workers on 120 slots: %+v", r)
	}
	if _, err := measure(nets, "many", 1, jobs.SearchPaper, 1); err == nil {
		t.Error("load \"many\" is accepted")
	}
}
