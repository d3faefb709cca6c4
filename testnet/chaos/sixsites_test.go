package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/node/api"
	"zorilla/testnet/hosts/lab"
	"zorilla/vicinity"
)

func threeSites() *sixSites {
	return &sixSites{plan: &lab.Plan{
		Sites: []lab.Site{{Name: "a", Hosts: 2}, {Name: "b", Hosts: 2}, {Name: "c", Hosts: 2}},
		RTT:   [][]float64{{0, 12, 10}, {12, 0, 12.5}, {10, 12.5, 0}},
	}}
}

func TestNearestSitesFirst(t *testing.T) {
	s := threeSites()
	for host, want := range map[string]string{"a-1": "a c b", "b-2": "b a c", "c-1": "c a b"} {
		var got []string
		for _, site := range s.nearest(host) {
			got = append(got, s.plan.Sites[site].Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("nearest to %s: %v, want %s", host, got, want)
		}
	}
}

func TestSortedSeesWrongOrderOnly(t *testing.T) {
	s := threeSites()
	members := func(ms map[string]float64) []api.NodeInfo {
		all := []api.NodeInfo{{Self: true}}
		all[0].Name = "a-1"
		for name, v := range ms {
			all = append(all, api.NodeInfo{Member: vicinity.Member{Name: name}, RTT: codec.Duration(v * float64(time.Millisecond))})
		}
		return all
	}
	if wrong := s.sorted("a-1", members(map[string]float64{"a-2": 0.3, "b-1": 13, "b-2": 12, "c-1": 11, "c-2": 10})); wrong != "" {
		t.Errorf("the right order is called wrong: %s", wrong)
	}
	if wrong := s.sorted("a-1", members(map[string]float64{"a-2": 0.3, "b-1": 11, "b-2": 11, "c-1": 12, "c-2": 12})); !strings.Contains(wrong, "c at 12.0 ms and b at 11.0 ms") {
		t.Errorf("the wrong order gives %q", wrong)
	}
	s.plan.RTT[0][1], s.plan.RTT[1][0] = 10.5, 10.5
	if wrong := s.sorted("a-1", members(map[string]float64{"a-2": 0.3, "b-1": 11, "b-2": 11, "c-1": 12, "c-2": 12})); wrong != "" {
		t.Errorf("half a millisecond matters: %s", wrong)
	}
}

func TestPlaces(t *testing.T) {
	s := threeSites()
	const runs = jobs.WorkerRunning
	st := jobs.Status{Workers: []jobs.WorkerStatus{{Name: "b-1", State: runs}, {Name: "b-2", State: runs}, {Name: "c-1", State: jobs.WorkerLost}}}
	if got := s.places(st); got != "b" || running(st) != 2 {
		t.Errorf("both at b: %d at %q", running(st), got)
	}
	st.Workers = append(st.Workers, jobs.WorkerStatus{Name: "a-1", State: runs}, jobs.WorkerStatus{State: jobs.WorkerWanted})
	if got := s.places(st); got != "1 a + 2 b" {
		t.Errorf("one at a, two at b, one wanted: %q", got)
	}
}

func TestMustEndsWhatIsTold(t *testing.T) {
	want := errors.New("the end")
	if err := told(func() { must(nil); must(want); t.Error("it went on") }); !errors.Is(err, want) {
		t.Errorf("told %v", err)
	}
	defer func() {
		if recover() == nil {
			t.Error("another panic was swallowed")
		}
	}()
	_ = told(func() { panic("broken") })
}

func TestWrongRowsAreBlamed(t *testing.T) {
	s := &sixSites{play: &play{record: newRecord()}}
	s.row("right", "1", "1", true)
	if len(s.wrong) > 0 {
		t.Errorf("a right row is blamed: %v", s.wrong)
	}
	if s.row("packets lost", "3", "more than 50", false); len(s.wrong) != 1 || s.wrong[0] != "packets lost: 3, want more than 50" || s.rows[1][3] != "WRONG" {
		t.Errorf("a wrong row gives %q, %q", s.wrong, s.rows)
	}
}
