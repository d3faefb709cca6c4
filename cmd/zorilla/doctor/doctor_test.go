package doctor

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"zorilla/internal/codec"
	"zorilla/node/api"
	"zorilla/vicinity"
)

// healthy is a node with a member, of which nothing is to be said.
func healthy() Seen {
	self := api.NodeInfo{Member: vicinity.Member{ID: "zaaaaaaa", Name: "a", Slots: 4, Enforces: []string{"cgroups", "landlock", "namespaces"}}, Self: true, Release: "1.2", Room: &api.Room{Dir: "/work", Free: 100 << 30, Keep: 1 << 30}}
	other := api.NodeInfo{Member: vicinity.Member{ID: "zbbbbbbb", Name: "b", Addrs: []string{"10.0.0.2:5444"}}}
	return Seen{Release: "1.2 0123456789ab", Nodes: []api.NodeInfo{self, other}, Ways: []Way{{Member: other, There: pinged(3, 3), Back: pinged(3, 3)}}}
}

func pinged(sent, answered int) api.Measurement {
	var all []codec.Duration
	for range answered {
		all = append(all, codec.Duration(time.Millisecond))
	}
	m := api.NewMeasurement(sent, all)
	m.Stream = &api.Stream{}
	return m
}

func TestHealthyNode(t *testing.T) {
	found := Examine(healthy())
	for _, f := range found {
		if f.Level != OK || f.Cure != "" {
			t.Errorf("%+v", f)
		}
	}
	if len(found) != 6 || Bad(found) {
		t.Errorf("%d findings, bad: %v", len(found), Bad(found))
	}
}

// Each thing that is wrong is one finding that is not ok, with a cure.
func TestEachTrouble(t *testing.T) {
	for name, trouble := range map[string]struct {
		level Level
		about string
		make  func(*Seen)
	}{
		"old program":    {Warn, "node", func(s *Seen) { s.Release = "1.3" }},
		"broken":         {Fail, "work", func(s *Seen) { s.Nodes[0].State, s.Nodes[0].Why = "broken", "no room" }},
		"paused":         {Warn, "work", func(s *Seen) { s.Nodes[0].State = "paused" }},
		"draining":       {Warn, "work", func(s *Seen) { s.Nodes[0].State = "draining" }},
		"alone":          {Warn, "network", func(s *Seen) { s.Nodes, s.Ways = s.Nodes[:1], nil }},
		"same names":     {Warn, "network", func(s *Seen) { s.Nodes[1].Name = "a" }},
		"no way there":   {Fail, "b (zbbbb)", func(s *Seen) { s.Ways[0].There = pinged(3, 0); s.Ways[0].There.Stream.Error = "refused" }},
		"cannot ping":    {Fail, "b (zbbbb)", func(s *Seen) { s.Ways[0].ThereErr = errors.New("gone") }},
		"no UDP there":   {Fail, "b (zbbbb)", func(s *Seen) { s.Ways[0].There = pinged(3, 0) }},
		"no UDP back":    {Fail, "b (zbbbb)", func(s *Seen) { s.Ways[0].Back = pinged(3, 0) }},
		"no TCP there":   {Fail, "b (zbbbb)", func(s *Seen) { s.Ways[0].There.Stream = &api.Stream{Error: "timeout"} }},
		"no TCP back":    {Fail, "b (zbbbb)", func(s *Seen) { s.Ways[0].Back.Stream = &api.Stream{Error: "timeout"} }},
		"small packets":  {Warn, "b (zbbbb)", func(s *Seen) { s.Ways[0].Back.Stream.Small = true }},
		"no requests":    {Fail, "b (zbbbb)", func(s *Seen) { s.Ways[0].BackErr = errors.New("refused") }},
		"no way back":    {Fail, "b (zbbbb)", func(s *Seen) { s.Ways[0].Back = pinged(3, 0); s.Ways[0].Back.Stream.Error = "refused" }},
		"lost packets":   {Warn, "b (zbbbb)", func(s *Seen) { s.Ways[0].Back = pinged(3, 2) }},
		"no namespaces":  {Warn, "sandbox", func(s *Seen) { s.Nodes[0].Enforces = []string{"cgroups", "landlock"} }},
		"others measure": {Warn, "b (zbbbb)", func(s *Seen) { s.Ways[0].BackErr = fmt.Errorf("%w: it measures already", api.ErrRefused) }},
		"little room":    {Warn, "disk", func(s *Seen) { s.Nodes[0].Room.Free = 3 << 29 }},
		"no room":        {Fail, "disk", func(s *Seen) { s.Nodes[0].Room.Free = 1 << 20 }},
		"bad messages": {Warn, "gossip", func(s *Seen) {
			s.Nodes[0].Traffic = api.Traffic{{Group: "gossip", Name: "packets refused", Bad: true, Value: 9, Recent: 2, Help: "of strangers"}}
		}},
	} {
		s := healthy()
		trouble.make(&s)
		var wrong []Finding
		for _, f := range Examine(s) {
			if f.Level != OK {
				wrong = append(wrong, f)
			}
		}
		if len(wrong) != 1 || wrong[0].Level != trouble.level || wrong[0].About != trouble.about || wrong[0].Cure == "" || wrong[0].What == "" {
			t.Errorf("%s: %+v", name, wrong)
		}
	}
}

// Where there are many members, how many were asked is said.
func TestNotAllMembersAreAsked(t *testing.T) {
	s := healthy()
	for i := range 20 {
		s.Nodes = append(s.Nodes, api.NodeInfo{Member: vicinity.Member{Name: fmt.Sprint("n", i)}})
	}
	if f := Examine(s)[2]; f.Level != OK || f.What != "22 members; the nearest 1 are asked" {
		t.Errorf("%+v", f)
	}
}
