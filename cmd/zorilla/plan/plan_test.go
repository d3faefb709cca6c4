package plan

import (
	"slices"
	"strings"
	"testing"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/groups"
	"zorilla/node/api"
	"zorilla/vicinity"
)

// twoSites are four nodes with two free slots each, two of them here and two 9 ms away.
func twoSites() []api.NodeInfo {
	told := time.Unix(1, 0)
	node := func(name, cluster string, rtt time.Duration) api.NodeInfo {
		return api.NodeInfo{Member: vicinity.Member{ID: vicinity.ID(name), Name: name, Slots: 3, Version: jobs.CurrentVersion},
			Self: rtt == 0, RTT: codec.Duration(rtt), Cluster: cluster, Told: told, Busy: 1}
	}
	list := []api.NodeInfo{node("here", "near", 0), node("beside", "near", 200*time.Microsecond),
		node("far1", "far", 9*time.Millisecond), node("far2", "far", 9*time.Millisecond)}
	list[0].Distances = []api.Distance{{From: "far", To: "far", RTT: codec.Duration(200 * time.Microsecond)},
		{From: "far", To: "near", RTT: codec.Duration(9 * time.Millisecond)}}
	return list
}

func twoGroups(within time.Duration) *jobs.Spec {
	return &jobs.Spec{Args: []string{"true"}, Min: 6, Max: 8, Slots: 1, Topology: groups.Topology{
		Groups: []groups.Group{{Name: "sea", Min: 3, Max: 4, Clusters: 1}, {Name: "air", Min: 3, Max: 4, Clusters: 1}},
		Links:  []groups.Link{{Name: "all", Groups: []string{"sea", "air"}, MaxRTT: codec.Duration(within)}},
	}}
}

func TestPlan(t *testing.T) {
	paused, silent := twoSites(), twoSites()
	paused[3].State = "paused"
	silent[2].Told = time.Time{}
	for what, c := range map[string]struct {
		spec  *jobs.Spec
		nodes []api.NodeInfo
		want  []string
	}{
		"room at both sites": {twoGroups(20 * time.Millisecond), twoSites(), []string{"now it would run, as far as distances are known:",
			"  sea: 4 workers: 2 at here (here), 2 at beside (besid)", "  air: 4 workers: 2 at far1 (far1), 2 at far2 (far2)"}},
		"too far apart": {twoGroups(5 * time.Millisecond), twoSites(), []string{"now it would wait: link all wants 5ms at most: beside (besid) and far1 (far1) are 9ms apart"}},
		"paused":        {twoGroups(20 * time.Millisecond), paused, []string{"now it would wait: group sea wants to be in one cluster, which the links and other groups leave no room for"}},
		"silent":        {twoGroups(20 * time.Millisecond), silent, []string{"now it would wait: group sea wants to be in one cluster, which the links and other groups leave no room for"}},
		"nobody":        {twoGroups(20 * time.Millisecond), nil, []string{"now it would wait: group sea wants 3 workers, no node fulfils it"}},
	} {
		got := Of(c.spec, c.nodes)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}

// Who is asked right after its start knows no coordinates: nodes are not farther apart than by way of it.
func TestDistanceWithoutCoordinates(t *testing.T) {
	nodes := twoSites()
	nodes[0].Distances = nil
	if got := Of(twoGroups(5*time.Millisecond), nodes)[0]; !strings.HasPrefix(got, "now it would wait: link all") {
		t.Errorf("without distances of clusters: %q", got)
	}
	n := network{nodes: nodes}
	if got := n.rtt(2, 3); got != 18*time.Millisecond {
		t.Errorf("two nodes 9ms away are %v apart", got)
	}
	nodes[2].Position, nodes[3].Position = []float64{0, 3}, []float64{4, 0}
	if got := n.rtt(2, 3); got != 5*time.Millisecond {
		t.Errorf("by their coordinates they are %v apart", got)
	}
}
