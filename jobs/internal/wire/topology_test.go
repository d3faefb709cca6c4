package wire

import (
	"encoding/json"
	"reflect"
	"testing"

	"zorilla/jobs"
	"zorilla/jobs/groups"
)

// paperJob is that of the QosCosGrid paper's table 1: three groups of two processes, each in a link of its own
// and all in one.
func paperJob() *jobs.Spec {
	two := func(name string) groups.Group { return groups.Group{Name: name, Min: 2, Max: 2} }
	return &jobs.Spec{Args: []string{"true"}, Min: 6, Max: 6, Slots: 1, Topology: groups.Topology{
		Groups: []groups.Group{two("PG1"), two("PG2"), two("PG3")},
		Links: []groups.Link{{Name: "PCG1", Groups: []string{"PG1"}}, {Name: "PCG2", Groups: []string{"PG2"}},
			{Name: "PCG3", Groups: []string{"PG3"}}, {Name: "PCG4", Groups: []string{"PG1", "PG2", "PG3"}}},
	}}
}

func TestTopologyIsThatOfThePaper(t *testing.T) {
	spec := paperJob()
	if err := spec.Validate(); err != nil {
		t.Fatal(err)
	}
	for rank, want := range []map[string]string{
		{"ZORILLA_GROUP": "PG1", "ZORILLA_GROUP_RANK": "0", "ZORILLA_TOPOLOGY_COLORS": "PCG4:3 PCG1:0"},
		{"ZORILLA_GROUP": "PG1", "ZORILLA_GROUP_RANK": "1", "ZORILLA_TOPOLOGY_COLORS": "PCG4:3 PCG1:0"},
		{"ZORILLA_GROUP": "PG2", "ZORILLA_GROUP_RANK": "0", "ZORILLA_TOPOLOGY_COLORS": "PCG4:3 PCG2:1"},
		{"ZORILLA_GROUP": "PG2", "ZORILLA_GROUP_RANK": "1", "ZORILLA_TOPOLOGY_COLORS": "PCG4:3 PCG2:1"},
		{"ZORILLA_GROUP": "PG3", "ZORILLA_GROUP_RANK": "0", "ZORILLA_TOPOLOGY_COLORS": "PCG4:3 PCG3:2"},
		{"ZORILLA_GROUP": "PG3", "ZORILLA_GROUP_RANK": "1", "ZORILLA_TOPOLOGY_COLORS": "PCG4:3 PCG3:2"},
	} {
		want["ZORILLA_GROUP_SIZE"], want["ZORILLA_TOPOLOGY_DEPTH"] = "2", "2"
		if got := TopologyVariables(spec, rank); !reflect.DeepEqual(got, want) {
			t.Errorf("rank %d learns %v, want %v", rank, got, want)
		}
	}
	var file Topology
	if err := json.Unmarshal([]byte(TopologyFile(spec)), &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Ranks) != 6 || file.Depth != 2 {
		t.Fatalf("the file has %d ranks and depth %d", len(file.Ranks), file.Depth)
	}
	for i, want := range [][]int{{3, 0}, {3, 0}, {3, 1}, {3, 1}, {3, 2}, {3, 2}} {
		if r := file.Ranks[i]; r.Rank != i || !reflect.DeepEqual(r.Colors, want) {
			t.Errorf("rank %d is %+v in the file, want colours %v", i, r, want)
		}
	}
}

// A process that is in fewer links than others has no colour where it is in none.
func TestColoursOutsideOfLinks(t *testing.T) {
	spec := paperJob()
	spec.Links = []groups.Link{{Name: "wide", Groups: []string{"PG1", "PG2"}}, {Name: "near", Groups: []string{"PG1"}}}
	for rank, want := range map[int]string{0: "wide:0 near:1", 2: "wide:0 -", 4: "- -"} {
		if got := TopologyVariables(spec, rank)["ZORILLA_TOPOLOGY_COLORS"]; got != want {
			t.Errorf("rank %d has colours %q, want %q", rank, got, want)
		}
	}
	if got := TopologyOf(spec).Ranks[2].Colors; !reflect.DeepEqual(got, []int{0, groups.None}) {
		t.Errorf("rank 2 has colours %v in the file", got)
	}
	if got := TopologyVariables(&jobs.Spec{Min: 2, Max: 2}, 0); got != nil {
		t.Errorf("a job without groups learns %v", got)
	}
}
