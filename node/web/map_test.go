package web

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/node/api"
	"zorilla/vicinity"
)

// turned returns the nodes with all places turned and shifted, and with some
// noise: the same distances, other numbers.
func turned(nodes []api.NodeInfo, angle, noise float64, rnd *rand.Rand) []api.NodeInfo {
	out := slices.Clone(nodes)
	sin, cos := math.Sincos(angle)
	for i := range out {
		p := slices.Clone(out[i].Position)
		p[0], p[1] = 100+cos*p[0]-sin*p[1], -sin*p[0]-cos*p[1]
		p[1], p[2] = cos*p[1]-sin*p[2], sin*p[1]+cos*p[2]
		for d := range p {
			p[d] += rnd.NormFloat64() * noise
		}
		out[i].Position = p
	}
	return out
}

func TestMapStaysWhereItIs(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for _, n := range []int{3, 12, 60, 300} {
		nodes, a, now := network(n), new(atlas), time.Now()
		first := a.place(nodes, now)
		worst := 0.0
		for step := 1; step <= 5; step++ {
			now = now.Add(keepMap)
			next := turned(nodes, float64(step)*1.3, .02, rnd)
			rnd.Shuffle(n-1, func(i, j int) { next[i+1], next[j+1] = next[j+1], next[i+1] })
			for id, p := range a.place(next, now).points {
				worst = max(worst, p.to(first.points[id]))
			}
		}
		if worst > 20 {
			t.Errorf("%d nodes: a dot has moved by %.1f while no distance has changed", n, worst)
		}
	}
}

func TestMapIsDrawnAnewOnlyWhenItMatters(t *testing.T) {
	a, nodes, now := new(atlas), network(20), time.Now()
	first := a.place(nodes[:12], now)
	moved := turned(nodes, .1, 1, rand.New(rand.NewPCG(1, 1)))
	if again := a.place(moved[:12], now.Add(keepMap-1)); again.points[nodes[3].ID] != first.points[nodes[3].ID] {
		t.Error("the map is drawn again at once though the members are the same")
	}
	if more := a.place(moved[:13], now.Add(1)); len(more.points) != 13 {
		t.Error("a new member is not drawn at once")
	}
	if fewer := a.place(moved[:7], now.Add(2)); len(fewer.points) != 7 {
		t.Error("a member that has left is still drawn")
	}
}

func TestAbsurdPlaceDoesNotShrinkTheMap(t *testing.T) {
	nodes := network(40)
	before := new(atlas).place(nodes, time.Now())
	nodes[7].Position = []float64{4900, -4900, 4900}
	after := new(atlas).place(nodes, time.Now())
	if after.perMS < before.perMS/6 {
		t.Errorf("a millisecond is %.2f long instead of %.2f because of one nonsensical place", after.perMS, before.perMS)
	}
}

func TestDotsDoNotHideEachOther(t *testing.T) {
	for _, n := range []int{50, 300} {
		at := new(atlas).place(network(n), time.Now())
		near := math.Inf(1)
		points := make([]point, 0, n)
		for _, p := range at.points {
			for _, q := range points {
				near = min(near, p.to(q))
			}
			points = append(points, p)
		}
		if near < 4 {
			t.Errorf("%d nodes: two dots are %.1f apart", n, near)
		}
	}
}

func TestMapShowsLoadLinksAndClusters(t *testing.T) {
	nodes := network(12)
	nodes[1].Busy, nodes[2].Busy, nodes[3].Busy, nodes[5].Busy = 0, nodes[2].Slots, nodes[3].Slots/2, nodes[5].Slots-1
	nodes[6].Told = time.Time{}
	v := drawMap(nodes, groupTones(nodes), new(atlas).place(nodes, time.Now()))
	loads := map[string]string{}
	for _, d := range v.Dots {
		loads[d.Key] = d.Load
	}
	for i, want := range map[int]string{1: "free", 2: "full", 3: "some", 5: "most", 6: "unknown"} {
		if got := loads[string(nodes[i].ID)]; got != want {
			t.Errorf("node %d with %s has load %s, want %s", i, busy(nodes[i]), got, want)
		}
	}
	if nodes[1].State = "paused"; !strings.HasSuffix(busy(nodes[1]), " busy, paused") {
		t.Errorf("a paused node is %s", busy(nodes[1]))
	}
	own, other := 0, map[string]bool{}
	for _, l := range v.Lines {
		if l.Whose == "own" {
			own++
		}
		if other[l.Key] {
			t.Errorf("link %s is drawn twice", l.Key)
		}
		other[l.Key] = true
	}
	if want := len(linksOf(nodes)); own != want || len(v.Lines) <= own || v.Lines[len(v.Lines)-1].Whose != "own" {
		t.Errorf("%d own links of %d, last %v; want %d, on top", own, len(v.Lines), v.Lines[len(v.Lines)-1], want)
	}
	if len(v.Halos) != 4 || len(v.Places) != 4 || v.Places[0].Name != "amsterdam" || v.Places[0].Tone != "site0" {
		t.Errorf("clusters %v, legend %v; want 4, this node's first", v.Halos, v.Places)
	}
	named := 0
	for _, h := range v.Halos {
		if h.Text != "" {
			named++
		}
	}
	if named < 3 {
		t.Errorf("%d clusters of 4 are named on the map", named)
	}
}

func linksOf(nodes []api.NodeInfo) (n []vicinity.ID) {
	for _, m := range nodes {
		if m.Neighbour != "" {
			n = append(n, m.ID)
		}
	}
	return n
}

func TestLegendTellsSitesOfACluster(t *testing.T) {
	nodes := network(9)
	for i := range nodes {
		nodes[i].Cluster, nodes[i].Site = "near badger", []string{"b", "a", "c", "", "d", "a", "e", "a", "b"}[i]
	}
	l := legends(nodes, groupTones(nodes))
	if len(l) != 1 || l[0].Name != "near badger" || l[0].Nodes != "9" || l[0].Sites != "site a, b, c, …" {
		t.Errorf("got %+v", l)
	}
	for i := range nodes {
		nodes[i].Cluster, nodes[i].Site = "delft", "delft"
	}
	if l := legends(nodes, groupTones(nodes)); len(l) != 1 || l[0].Sites != "" {
		t.Errorf("a site is told twice: %+v", l)
	}
}

func TestManyClustersStayReadable(t *testing.T) {
	nodes := network(300)
	for i := range nodes {
		nodes[i].Cluster = fmt.Sprintf("cluster of number %d", i%60)
	}
	v := drawMap(nodes, groupTones(nodes), new(atlas).place(nodes, time.Now()))
	names := 0
	for _, h := range v.Halos {
		if h.Text != "" {
			names++
		}
	}
	if names == 0 || names > maxLabels || len(v.Places) != maxLegends || len(v.Lines) > maxLines {
		t.Errorf("%d names, %d legends, %d lines", names, len(v.Places), len(v.Lines))
	}
}

func flooded(nodes []api.NodeInfo, rounds int) (st jobs.Status, answers []jobs.NodeAnswer) {
	st = sample("a2b3c@zaaaa", jobs.Pending, nodes, 3, time.Minute, "x")
	for k := 1; k <= rounds; k++ {
		st.Rounds = append(st.Rounds, jobs.Round{Number: k, Radius: k, Hops: k, Reached: min(len(nodes), 4*k)})
	}
	for i, n := range nodes {
		a := jobs.NodeAnswer{Node: n.ID, Name: n.Name, RTT: n.RTT, Hops: (i + 3) / 4, Round: rounds}
		if i%2 == 0 {
			a.Offered = 2
		} else {
			a.Reason = "busy"
		}
		if a.Hops <= rounds {
			answers = append(answers, a)
		}
	}
	return st, answers
}

func TestRippleShowsWhoWasReachedWhen(t *testing.T) {
	nodes := network(20)
	st, answers := flooded(nodes, 3)
	v := drawRipple(nodes, new(atlas).place(nodes, time.Now()), &st, answers)
	if v.State != "searching" || len(v.Rings) != 3 || v.Rings[2].Tone != "last" || v.Rings[0].Tone != "past" {
		t.Fatalf("%s, rings %+v", v.State, v.Rings)
	}
	if !(v.Rings[0].R < v.Rings[1].R && v.Rings[1].R < v.Rings[2].R) {
		t.Errorf("rings do not grow: %+v", v.Rings)
	}
	if len(v.Dots) != 20 {
		t.Fatalf("%d dots", len(v.Dots))
	}
	for _, d := range v.Dots {
		i := slices.IndexFunc(nodes, func(n api.NodeInfo) bool { return string(n.ID) == d.Key })
		hop := (i + 3) / 4
		kind, wave := []string{"offer", "decline"}[i%2], hop
		switch {
		case i == 0:
			kind, wave, hop = "origin", 0, 0
		case hop > 3:
			kind, wave, hop = "silent", 0, 0
		}
		if d.Kind != kind || d.Wave != wave || d.Hop != hop {
			t.Errorf("node %d: %s in wave %d after %d hops, want %s, %d, %d", i, d.Kind, d.Wave, d.Hop, kind, wave, hop)
		}
	}
	if !strings.HasPrefix(v.Alt, "3 floods; the last one reached 12 nodes, 3 hops far") {
		t.Errorf("it says %q", v.Alt)
	}
}

func TestRippleShowsTheLastFloods(t *testing.T) {
	nodes := network(30)
	st, answers := flooded(nodes, 20)
	st.State, st.Origin = jobs.Running, nodes[2].ID
	v := drawRipple(nodes, new(atlas).place(nodes, time.Now()), &st, answers)
	if v.State != "over" || len(v.Rings) != maxWaves || v.Rings[0].Key != "15" || v.Rings[5].Key != "20" {
		t.Errorf("%s, rings %+v", v.State, v.Rings)
	}
	for _, d := range v.Dots {
		if d.Wave < 0 || d.Wave > maxWaves || d.Hop < 0 || d.Hop > maxHops || (d.Kind == "origin") != (d.Key == string(nodes[2].ID)) {
			t.Errorf("dot %+v", d)
		}
	}
}

func TestRippleOfStrangeJobs(t *testing.T) {
	nodes := network(6)
	at := new(atlas).place(nodes, time.Now())
	st, answers := flooded(nodes, 2)
	st.Rounds = nil
	if v := drawRipple(nodes, at, &st, nil); len(v.Rings) != 0 || len(v.Dots) != 6 || v.Alt != "no flood yet" {
		t.Errorf("without a flood: %+v", v)
	}
	if v := drawRipple(nodes, at, &st, answers); len(v.Rings) != 0 || v.Dots[1].Wave != 0 {
		t.Errorf("answers without a flood: %+v", v)
	}
	st, answers = flooded(nodes, 2)
	st.Origin = nodeID(999)
	answers = append(answers, jobs.NodeAnswer{Node: nodeID(998), Hops: 1 << 40}, jobs.NodeAnswer{Node: nodes[1].ID, Hops: -5, Round: -1}, jobs.NodeAnswer{})
	v := drawRipple(nodes, at, &st, answers)
	if len(v.Rings) != 0 || !strings.Contains(v.Note, "origin is not on the map") || !strings.Contains(v.Note, "2 nodes that answered are not on the map") {
		t.Errorf("of an unknown origin: %d rings, %q", len(v.Rings), v.Note)
	}
}

func TestMeterAveragesOverItsWindow(t *testing.T) {
	m, start := new(meter), time.Now()
	if got := m.read(start, start.Add(100*time.Second), 500, 10_000); got != [2]float64{5, 100} {
		t.Errorf("first %v, want the mean since the start", got)
	}
	if got := m.read(start, start.Add(101*time.Second), 600, 20_000); got != [2]float64{5, 100} {
		t.Errorf("within the window %v, want what it was", got)
	}
	if got := m.read(start, start.Add(110*time.Second), 520, 11_000); got != [2]float64{2, 100} {
		t.Errorf("after the window %v", got)
	}
	if got := m.read(start.Add(120*time.Second), start.Add(130*time.Second), 10, 100); got != [2]float64{1, 10} {
		t.Errorf("after a new start %v", got)
	}
	if got := new(meter).read(time.Time{}, time.Time{}, 3, 4); got != [2]float64{3, 4} {
		t.Errorf("without a time %v", got)
	}
}
