package topology

import (
	"strings"
	"testing"
	"time"
)

func TestCheckNamesWhatIsBroken(t *testing.T) {
	p := offers(5, 3, 2)
	p.Hosts[0].Workers, p.Hosts[2].Fits = 4, 2
	p.group("sea", 1, 4).Clusters = 1
	p.group("air", 0, 3).Takes = Amounts{2}
	p.Links = []Link{{Name: "all", Groups: 3, MaxRTT: 20 * ms, MinBandwidth: 10}, {Name: "air", Groups: 2, MinRTT: ms}}
	p.Bandwidth = func(a, b int) int64 { return int64(5 * (a + b)) }
	for _, c := range []struct {
		counts [][]int
		want   string // "" = nothing is broken
	}{
		{[][]int{{2, 0}, {0, 0}, {0, 0}}, ""},
		{[][]int{{2, 0}, {0, 0}}, "counts of 2 hosts, there are 3"},
		{[][]int{{2, 0}, {0}, {0, 0}}, "n1 has counts of 1 groups, there are 2"},
		{[][]int{{0, 0}, {0, 0}, {0, 0}}, "group sea has 0 workers, it wants 1 to 4"},
		{[][]int{{0, 0}, {0, 0}, {1, 0}}, "n2 has 1 workers of group sea, which it does not fit"},
		{[][]int{{-1, 0}, {2, 0}, {0, 0}}, "n0 has -1 workers of group sea, which it does not fit"},
		{[][]int{{0, 0}, {2, 1}, {0, 0}}, "n1 is to give 4 of resource 0, it has 3"},
		{[][]int{{5, 0}, {0, 0}, {0, 0}}, "n0 has 5 workers, it takes 4"},
		{[][]int{{1, 0}, {1, 0}, {0, 0}}, "group sea is in 2 clusters, it wants 1 at most"},
		{[][]int{{1, 2}, {0, 0}, {0, 0}}, "link air wants 1ms at least: two workers on n0 are 0ms apart"},
		{[][]int{{1, 1}, {0, 1}, {0, 0}}, "link all wants 20ms at most and 10 Mbit/s at least: n0 and n1 have 5 Mbit/s between them"},
		{[][]int{{1, 1}, {0, 0}, {0, 1}}, ""}, // air has no other bound inside
		{[][]int{{0, 1}, {3, 0}, {0, 0}}, "link all wants 20ms at most and 10 Mbit/s at least: n0 and n1 have 5 Mbit/s between them"},
		{[][]int{{0, 0}, {3, 0}, {0, 1}}, ""},
	} {
		err := p.Check(c.counts)
		if got := errorText(err); got != c.want {
			t.Errorf("%v: %q, want %q", c.counts, got, c.want)
		}
	}
	p.RTT = func(a, b int) time.Duration { return -1 }
	if err := p.Check([][]int{{0, 0}, {3, 0}, {0, 1}}); !strings.Contains(errorText(err), "the round trip between n1 and n2 is not known") {
		t.Error(err)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Workers that stay are not judged, those that come beside them are.
func TestWorkersThatStay(t *testing.T) {
	p := offers(2, 2, 2)
	p.group("sea", 1, 2).Clusters = 1
	p.Links = []Link{{Name: "all", Groups: 1, MaxRTT: 5 * ms}}
	p.Hosts[1].Has = []int{3}
	if r := p.Solve(); shown(p, r.Counts) != "n1:2" {
		t.Errorf("one stays: %+v", r)
	}
	p.Hosts[2].Has = []int{1} // farther than the link allows, in a second cluster
	if r := p.Solve(); r.Verdict != Infeasible || r.Why != "link all wants 5ms at most: n0 and n1 are 10ms apart" {
		t.Errorf("two stay: %+v", r)
	}
	p.Groups[0].Min, p.Groups[0].Max = 0, 0
	if r := p.Solve(); r.Verdict != Found {
		t.Errorf("two stay, none is to come: %+v", r)
	}
	p.Groups[0].Max, p.Links = 5, nil
	if r := p.Solve(); shown(p, r.Counts) != "n1:2 n2:2" {
		t.Errorf("two stay, no link: %+v", r)
	}
}

func TestNothingThere(t *testing.T) {
	if r := new(Problem).Solve(); r.Verdict != Found || !r.Proven || len(r.Counts) != 0 {
		t.Errorf("nothing is wanted: %+v", r)
	}
	p := new(Problem)
	p.group("sea", 0, 2)
	p.Groups[0].Clusters = 1
	p.Links = []Link{{Name: "all", Groups: 1, MaxRTT: ms}}
	if r := p.Solve(); r.Verdict != Found || r.Utility != 0 {
		t.Errorf("no hosts, and none needed: %+v", r)
	}
	p.Groups[0].Min = 1
	if r := p.Solve(); r.Verdict != Infeasible || r.Why != "group sea wants 1 worker, no node fulfils it" {
		t.Errorf("no hosts: %+v", r)
	}
}
