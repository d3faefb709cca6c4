package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/node/api"
	"zorilla/vicinity"
)

func threeSites() *scene {
	return &scene{sites: []string{"a", "b", "c"}, rtt: [][]float64{{0, 12, 10}, {12, 0, 12.5}, {10, 12.5, 0}}}
}

func TestNearestSitesFirst(t *testing.T) {
	s := threeSites()
	for host, want := range map[string]string{"a-1": "a c b", "b-2": "b a c", "c-1": "c a b"} {
		var got []string
		for _, site := range s.nearest(host) {
			got = append(got, s.sites[site])
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
	s.rtt[0][1], s.rtt[1][0] = 10.5, 10.5
	if wrong := s.sorted("a-1", members(map[string]float64{"a-2": 0.3, "b-1": 11, "b-2": 11, "c-1": 12, "c-2": 12})); wrong != "" {
		t.Errorf("half a millisecond matters: %s", wrong)
	}
}

func TestPlaces(t *testing.T) {
	s := threeSites()
	const runs = jobs.WorkerRunning
	st := jobs.Status{Workers: []jobs.WorkerStatus{{Name: "b-1", State: runs}, {Name: "b-2", State: runs}, {Name: "c-1", State: jobs.WorkerLost}}}
	if got := s.places(st); got != "b" {
		t.Errorf("both at b: %q", got)
	}
	st.Workers = append(st.Workers, jobs.WorkerStatus{Name: "a-1", State: runs}, jobs.WorkerStatus{State: jobs.WorkerWanted})
	if got := s.places(st); got != "1 a + 2 b" {
		t.Errorf("one at a, two at b, one wanted: %q", got)
	}
}

func TestLeftoversFindProcesses(t *testing.T) {
	before, err := lookAround()
	if err != nil {
		t.Fatal(err)
	}
	link, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		t.Fatal(err)
	}
	write := func(lines ...string) string {
		file := filepath.Join(t.TempDir(), "census")
		if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	none := strings.Split(strings.Repeat("net:[1] ", 16), " ")
	if left, err := before.leftovers(write(none...)); err != nil || len(left) > 0 {
		t.Errorf("where nothing was: %v, %v", left, err)
	}
	if left, err := before.leftovers(write(append(none, link)...)); err != nil || len(left) == 0 {
		t.Errorf("this process itself is not found: %v", err)
	}
	if _, err := before.leftovers(write("net:[1]")); err == nil {
		t.Error("a list that is too short is accepted")
	}
}

func TestOutsideOfALabCommandsSaySo(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if err := change("heal"); err == nil || !strings.Contains(err.Error(), exec.ErrNotFound.Error()) {
		t.Errorf("without a lab: %v", err)
	}
	if err := probe([]string{"nonsense"}); err == nil {
		t.Error("an unknown probe is accepted")
	}
}
