package described

import (
	"slices"
	"testing"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/groups"
	"zorilla/jobs/placement/mapping"
	"zorilla/jobs/placement/topology"
)

func ms(n int) codec.Duration { return codec.Duration(time.Duration(n) * time.Millisecond) }

func TestGroups(t *testing.T) {
	st := jobs.Status{
		Spec: jobs.Spec{Slots: 1, Topology: groups.Topology{
			Groups: []groups.Group{
				{Name: "sea", Min: 3, Max: 3, Slots: groups.Range{Min: 2}, Memory: groups.Range{Min: 1 << 30}, GPUs: groups.Range{Min: 1},
					Clusters: 1, Prefer: codec.Duration(time.Minute), Homogeneous: groups.Power, Restart: groups.RestartGroup},
				{Name: "air", Min: 1, Max: 1, Clusters: 2, Restart: groups.RestartRank},
			},
			Links: []groups.Link{
				{Name: "all", Groups: []string{"sea", "air"}, MinRTT: ms(1), MaxRTT: ms(50), Bandwidth: groups.Range{Min: 100, Max: 1000}},
				{Name: "sea", Groups: []string{"sea"}, MaxRTT: ms(5)},
				{Name: "air", Groups: []string{"air"}, MaxRTT: codec.Duration(topology.OneHost), Bandwidth: groups.Range{Max: 1000}},
			},
		}},
		Shape: jobs.Shape{Groups: []jobs.GroupStatus{{Name: "sea", Min: 2, Max: 4, Workers: 3}, {Name: "air", Min: 1, Max: 1, Workers: 1}}},
		Workers: []jobs.WorkerStatus{
			{Rank: 0, Attempt: 1, Node: "a"}, {Rank: 1, Attempt: 1, Node: "a"},
			{Rank: 2, Attempt: 1, Node: "b"}, {Rank: 3, Attempt: 0},
		},
		Worst: &jobs.WorstPair{Links: []jobs.LinkPair{{Link: "sea", WorstPair: jobs.WorstPair{A: "a", B: "b", NameA: "a", NameB: "b", RTT: ms(3)}}}},
	}
	want := []Fact{
		{"group sea", "3 of 2 to 4 workers, 2 slots each, 1 GiB each, 1 GPU each, in one cluster if that is possible within 1m0s, with alike power, " +
			"a lost rank starts the group again, on 2 nodes"},
		{"group air", "1 worker, 1 slot each, in at most 2 clusters, a lost rank starts again by itself"},
		{"link all", "sea, air: 1ms to 50ms apart: 100Mbit to 1Gbit"},
		{"link sea", "sea: at most 5ms apart; worst pair " + st.Worst.Links[0].String()},
		{"link air", "air: on one node: at most 1Gbit"},
	}
	got := Groups(&st)
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Errorf("it has\n%q, want\n%q", got[min(i, len(got)):], want[min(i, len(want)):])
			break
		}
	}
	if got := Groups(&jobs.Status{}); len(got) > 0 {
		t.Errorf("a job without groups: %v", got)
	}
	var ranks []string
	for rank := range 4 {
		ranks = append(ranks, Rank(&st.Spec, rank))
	}
	if want := []string{"0 (sea 0)", "1 (sea 1)", "2 (sea 2)", "3 (air 0)"}; !slices.Equal(ranks, want) {
		t.Errorf("ranks are %q, want %q", ranks, want)
	}
	if got := Rank(&jobs.Spec{}, 3); got != "3" {
		t.Errorf("a rank of a job without groups is %s", got)
	}
	mapped := jobs.Spec{Placing: jobs.Placing{Graph: &mapping.Listed{Tasks: 2, Names: []string{"source", "sink"}}}}
	if got := Rank(&mapped, 1) + Rank(&mapped, 2); got != "1 (sink)2" {
		t.Errorf("tasks with names are %s", got)
	}
}

// Where a worker is, and why there.
func TestPlace(t *testing.T) {
	mapped := jobs.Spec{Strategy: "maheve"}
	for want, c := range map[string]struct {
		spec jobs.Spec
		w    jobs.WorkerStatus
	}{
		"":                            {},
		"lyon":                        {w: jobs.WorkerStatus{Cluster: "lyon"}},
		"lyon: the node that it left": {w: jobs.WorkerStatus{Cluster: "lyon", Node: "zaaaaaa", Replaced: &jobs.Replaced{From: "zaaaaaa", Same: true}}},
		"lyon: the same cluster as zaaaa, which it left": {w: jobs.WorkerStatus{Cluster: "lyon", Node: "zbbbbbb", Replaced: &jobs.Replaced{From: "zaaaaaa", Same: true, RTT: ms(1)}}},
		"lyon: the nearest node, 12ms from zaaaa":        {w: jobs.WorkerStatus{Cluster: "lyon", Replaced: &jobs.Replaced{From: "zaaaaaa", RTT: ms(12)}}},
		"lyon: the best cluster, 12.3ms from zaaaa":      {spec: mapped, w: jobs.WorkerStatus{Cluster: "lyon", Replaced: &jobs.Replaced{From: "zaaaaaa", RTT: ms(12) + 312345}}},
		"any free node": {spec: mapped, w: jobs.WorkerStatus{Replaced: &jobs.Replaced{From: "zaaaaaa"}}},
	} {
		if got := Place(&c.spec, &c.w); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
