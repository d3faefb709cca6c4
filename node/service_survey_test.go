package node

import (
	"fmt"
	"testing"
	"time"

	"zorilla/node/api"
	"zorilla/node/usage"
	"zorilla/vicinity"
)

func validID(c string) vicinity.ID {
	id := "z"
	for len(id) < 27 {
		id += c
	}
	return vicinity.ID(id)
}

func TestSurveyAsksTheNearestAndNoneTwice(t *testing.T) {
	y, now := newMemberStats(), time.Now()
	nodes := make([]api.NodeInfo, 200)
	for i := range nodes {
		nodes[i].ID = vicinity.ID(string(validID("a"))[:25] + string(rune('a'+i/26)) + string(rune('a'+i%26)))
	}
	due := y.due(nodes, now)
	if len(due) != surveyNearest || due[0] != nodes[0].ID {
		t.Fatalf("%d members are asked, want %d", len(due), surveyNearest)
	}
	for i, id := range due {
		if y.put(id, memberStat{at: now, busy: 1}); i%2 == 0 {
			y.silence(id, now)
		}
	}
	if again := y.due(nodes, now.Add(surveyAgain-1)); len(again) != 0 {
		t.Errorf("%d members are asked again too soon", len(again))
	}
	if again := y.due(nodes, now.Add(surveyAgain)); len(again) != surveyNearest/2 {
		t.Errorf("%d members are asked again, want those that answered", len(again))
	}
	if again := y.due(nodes, now.Add(surveySilent)); len(again) != surveyNearest {
		t.Errorf("%d members are asked again, want all", len(again))
	}
	y.forget(nodes[:3])
	if len(y.told) != 3 {
		t.Errorf("%d members are remembered, want the 3 that are left", len(y.told))
	}
}

func TestSurveyBelievesWhatCanBe(t *testing.T) {
	y, self, other := newMemberStats(), validID("a"), validID("b")
	hostile := memberStat{at: time.Now(), busy: 1 << 40, links: []api.Link{{ID: "../../x", Kind: "near"}, {ID: other, Kind: "<b>"}, {ID: self, Kind: "near"}, {ID: other, Kind: "far"}}}
	for range 1000 {
		hostile.links = append(hostile.links, api.Link{ID: other, Kind: "near"})
	}
	hostile.lately = &usage.Lately{Busy: []byte{255}, Shut: []byte{255}, Load: -1}
	y.put(self, hostile)
	y.put(other, memberStat{at: time.Now(), busy: -5})
	list := []api.NodeInfo{{Member: vicinity.Member{ID: self, Slots: 4}}, {Member: vicinity.Member{ID: other, Slots: 4}}, {Member: vicinity.Member{ID: validID("c"), Slots: 4}}}
	y.fill(list, time.Now())
	if list[0].Lately != nil {
		t.Errorf("what cannot be of its last hour is believed: %v", list[0].Lately)
	}
	if n := list[0]; n.Busy != 4 || !n.Loaded() || len(n.Links) > maxTold || n.Links[0] != (api.Link{ID: other, Kind: "far"}) {
		t.Errorf("a hostile member is believed: %d busy, %d links, first %v", n.Busy, len(n.Links), n.Links[0])
	}
	if list[1].Busy != 0 || !list[1].Loaded() || list[2].Loaded() {
		t.Errorf("got %+v", list[1:])
	}
}

// What a member told stands while it is silent, with the time of it, but not
// for ever.
func TestSilentMembersAreNotBelievedForEver(t *testing.T) {
	y, now, id := newMemberStats(), time.Now(), validID("a")
	y.put(id, memberStat{at: now, busy: 1, state: stateDraining})
	y.silence(id, now.Add(surveyAgain))
	list := []api.NodeInfo{{Member: vicinity.Member{ID: id, Slots: 4}}}
	y.fill(list, now.Add(surveyBelieved-1))
	if n := list[0]; !n.Told.Equal(now) || n.Busy != 1 || n.State != stateDraining {
		t.Errorf("what it told is forgotten: %+v", n)
	}
	list[0] = api.NodeInfo{Member: list[0].Member}
	if y.fill(list, now.Add(surveyBelieved)); list[0].Loaded() {
		t.Errorf("what it told stands for ever: %+v", list[0])
	}
}

func TestOneMeasurementForEachAsker(t *testing.T) {
	turns := newOneAtATime()
	done, ok := turns.acquire("a")
	if !ok {
		t.Fatal("the first was refused")
	}
	if _, ok := turns.acquire("a"); ok {
		t.Error("a second one at the same time")
	}
	done()
	for i := range maxMeasuring {
		if _, ok := turns.acquire(vicinity.ID(string(rune('b' + i)))); !ok {
			t.Errorf("asker %d was refused", i)
		}
	}
	if _, ok := turns.acquire("a"); ok {
		t.Error("more than there may be in all")
	}
}

// Of large clusters some pairs tell how far they are apart; of one node there is no distance within.
func TestDistancesOfClusters(t *testing.T) {
	id := func(cluster, i int) vicinity.ID { return vicinity.ID(fmt.Sprintf("z%d-%d", cluster, i)) }
	list := make([]vicinity.Cluster, 3)
	for c, n := range []int{50, 3, 1} {
		list[c].Name = fmt.Sprint("c", c)
		for i := range n {
			list[c].Members = append(list[c].Members, id(c, i))
		}
	}
	asked := 0
	far := distances(list, func(a, b vicinity.ID) (time.Duration, bool) {
		asked++
		x, y := int(a[1]-'0'), int(b[1]-'0')
		if b == id(1, 2) || a == id(1, 2) {
			return time.Hour, true // one pair of several is out of order
		}
		return time.Duration(10*(x-y)+1) * time.Millisecond, x < 2 || y < 1
	})
	got := ""
	for _, d := range far {
		got += fmt.Sprintf("%s-%s %v, ", d.From, d.To, d.RTT)
	}
	if want := "c0-c0 1ms, c1-c0 11ms, c1-c1 1h0m0s, c2-c0 21ms, c2-c1 1h0m0s, "; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if most := 6 * maxPairs * maxPairs; asked > most {
		t.Errorf("%d pairs were looked at, want at most %d", asked, most)
	}
}
