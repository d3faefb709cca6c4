package groups

import (
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"zorilla/internal/codec"
)

// sea is two groups with a link of each kind, all in order.
func sea() Topology {
	return Topology{
		Groups: []Group{
			{Name: "sea", Min: 2, Max: 4, Slots: Range{Min: 2}, Clusters: 1, Prefer: codec.Duration(time.Minute), Restart: RestartGroup, Homogeneous: Power},
			{Name: "air", Min: 1, Max: 1, Memory: Range{1 << 30, 1 << 33}, Homogeneous: Clock},
		},
		Links: []Link{
			{Name: "all", Groups: []string{"air", "sea"}, MinRTT: codec.Duration(time.Millisecond), MaxRTT: codec.Duration(time.Second), Bandwidth: Range{Min: 100}},
			{Name: "near", Groups: []string{"sea"}, MaxRTT: codec.Duration(time.Millisecond)},
		},
		Utility: Utility{Satisfaction: 1, Utilisation: 0.1},
	}
}

func TestWhatIsWrongWithATopology(t *testing.T) {
	const name = "want 1 to 32 letters, digits and -_. in it"
	long := strings.Repeat("x", MaxName+1)
	second := codec.Duration(time.Second)
	for want, change := range map[string]func(*Topology){
		"":                                                                            func(*Topology) {},
		"links and utility want groups":                                               func(s *Topology) { s.Groups, s.Utility = nil, Utility{} },
		"group air/: " + name:                                                         func(s *Topology) { s.Groups[1].Name = "air/" },
		"group : " + name:                                                             func(s *Topology) { s.Groups[1].Name = "" },
		"group " + long + ": " + name:                                                 func(s *Topology) { s.Groups[1].Name = long },
		"two groups are called sea":                                                   func(s *Topology) { s.Groups[1].Name = "sea" },
		"group sea: n 0..4: " + atLeast:                                               func(s *Topology) { s.Groups[0].Min = 0 },
		"group sea: n 5..4: " + atLeast:                                               func(s *Topology) { s.Groups[0].Min = 5 },
		"group sea: slots 3..2: " + inOrder:                                           func(s *Topology) { s.Groups[0].Slots = Range{3, 2} },
		"group sea: slots -1..0: " + inOrder:                                          func(s *Topology) { s.Groups[0].Slots = Range{Min: -1} },
		"group sea: mem 0..-1: " + inOrder:                                            func(s *Topology) { s.Groups[0].Memory = Range{Max: -1} },
		"group sea: mem 9223372036854775807..0: " + inOrder:                           func(s *Topology) { s.Groups[0].Memory = Range{Min: math.MaxInt64} },
		"group sea: disk 2..1: " + inOrder:                                            func(s *Topology) { s.Groups[0].Disk = Range{2, 1} },
		"group sea: gpus 2..1: " + inOrder:                                            func(s *Topology) { s.Groups[0].GPUs = Range{2, 1} },
		"group sea: clock 2..1: " + inOrder:                                           func(s *Topology) { s.Groups[0].Clock = Range{2, 1} },
		"group sea: power 2..1: " + inOrder:                                           func(s *Topology) { s.Groups[0].Power = Range{2, 1} },
		`group sea: homogeneous "colour": want clock or power`:                        func(s *Topology) { s.Groups[0].Homogeneous = "colour" },
		"group sea: clusters -1: want 1 or more":                                      func(s *Topology) { s.Groups[0].Clusters = -1 },
		"group sea: prefer -1s: want up to 8784h0m0s":                                 func(s *Topology) { s.Groups[0].Prefer = -second },
		"group sea: prefer 8784h0m1s: want up to 8784h0m0s":                           func(s *Topology) { s.Groups[0].Prefer = codec.Duration(maxPrefer) + second },
		"group sea: prefer wants unsplit or clusters":                                 func(s *Topology) { s.Groups[0].Clusters = 0 },
		`group sea: restart "all": want rank, group or job`:                           func(s *Topology) { s.Groups[0].Restart = "all" },
		`link "al l": ` + name:                                                        func(s *Topology) { s.Links[0].Name = "al l" },
		"two links are called all":                                                    func(s *Topology) { s.Links[1].Name = "all" },
		"link all: want groups":                                                       func(s *Topology) { s.Links[0].Groups = nil },
		`link all: there is no group "ice"`:                                           func(s *Topology) { s.Links[0].Groups = []string{"sea", "ice"} },
		"link all: group sea is named twice":                                          func(s *Topology) { s.Links[0].Groups = []string{"sea", "air", "sea"} },
		"link all: rtt 2s..1s: want up to 10s, and MIN at most MAX":                   func(s *Topology) { s.Links[0].MinRTT = 2 * second },
		"link all: rtt -1s..1s: want up to 10s, and MIN at most MAX":                  func(s *Topology) { s.Links[0].MinRTT = -second },
		"link all: rtt 1ms..11s: want up to 10s, and MIN at most MAX":                 func(s *Topology) { s.Links[0].MaxRTT = 11 * second },
		"link all: bandwidth 2..1: want up to 1000000000 Mbit/s, and MIN at most MAX": func(s *Topology) { s.Links[0].Bandwidth = Range{2, 1} },
		"link all: bandwidth 1000000001..0: want up to 1000000000 Mbit/s, and MIN at most MAX": func(s *Topology) { s.Links[0].Bandwidth = Range{Min: 1_000_000_001} },
		"links all and near: both are of the same groups":                                      func(s *Topology) { s.Links[1].Groups = []string{"sea", "air"} },
		"links all and near: they share groups, but neither has all of the other's: links are nested or disjoint": func(s *Topology) {
			s.Groups = append(s.Groups, Group{Name: "ice", Min: 1, Max: 1})
			s.Links[1].Groups = []string{"sea", "ice"}
		},
		"utility: a weight of -1, want 0 to 1000000":    func(s *Topology) { s.Utility.Utilisation = -1 },
		"utility: a weight of NaN, want 0 to 1000000":   func(s *Topology) { s.Utility.Satisfaction = math.NaN() },
		"utility: a weight of 2e+06, want 0 to 1000000": func(s *Topology) { s.Utility.Satisfaction = 2e6 },
		"33 groups, at most 32":                         func(s *Topology) { *s = many(MaxGroups+1, 0) },
		"65 links, at most 64":                          func(s *Topology) { *s = many(MaxGroups, MaxLinks+1) },
	} {
		s := sea()
		if change(&s); s.Check() != want {
			t.Errorf("got %q, want %q", s.Check(), want)
		}
	}
	if s := many(MaxGroups, MaxGroups); s.Check() != "" {
		t.Errorf("as many groups as there may be: %s", s.Check())
	}
	if s := (Topology{Utility: Utility{Utilisation: 1}}); s.Check() != "links and utility want groups" {
		t.Errorf("got %q", s.Check())
	}
}

const (
	atLeast = "want at least 1, and MIN at most MAX"
	inOrder = "want 0 or more, and MIN at most MAX"
)

// many is so many groups, and links of one each.
func many(groups, links int) (s Topology) {
	for i := range groups {
		s.Groups = append(s.Groups, Group{Name: "g" + strconv.Itoa(i), Min: 1, Max: 1})
	}
	for i := range links {
		s.Links = append(s.Links, Link{Name: "l" + strconv.Itoa(i), Groups: []string{"g" + strconv.Itoa(i%groups)}})
	}
	return s
}

// Links are listed in any order: the widest is the first level, the smallest rules.
func TestLinksOfGroups(t *testing.T) {
	s := many(5, 0)
	s.Links = []Link{
		{Name: "pair", Groups: []string{"g0", "g1"}},
		{Name: "one", Groups: []string{"g1"}},
		{Name: "three", Groups: []string{"g0", "g2", "g1"}},
		{Name: "other", Groups: []string{"g3"}},
	}
	if text := s.Check(); text != "" {
		t.Fatal(text)
	}
	if s.Depth() != 3 {
		t.Errorf("there are %d levels, want 3", s.Depth())
	}
	for group, want := range []struct {
		chain, colours []int
		text           string
	}{
		{[]int{2, 0}, []int{2, 0, None}, "three:2 pair:0 -"},
		{[]int{2, 0, 1}, []int{2, 0, 1}, "three:2 pair:0 one:1"},
		{[]int{2}, []int{2, None, None}, "three:2 - -"},
		{[]int{3}, []int{3, None, None}, "other:3 - -"},
		{nil, []int{None, None, None}, "- - -"},
	} {
		if got := s.Chain(group); !slices.Equal(got, want.chain) {
			t.Errorf("group %d is in links %v, want %v", group, got, want.chain)
		}
		if got := s.Colours(group); !slices.Equal(got, want.colours) || s.ColourText(group) != want.text {
			t.Errorf("group %d has colours %v (%s), want %v (%s)", group, got, s.ColourText(group), want.colours, want.text)
		}
	}
	for pair, want := range map[[2]int]int{{0, 0}: 0, {0, 1}: 0, {1, 1}: 1, {1, 2}: 2, {2, 2}: 2, {0, 3}: None, {3, 3}: 3, {4, 4}: None, {2, 4}: None} {
		if a, b := s.Ruling(pair[0], pair[1]), s.Ruling(pair[1], pair[0]); a != want || b != want {
			t.Errorf("link %d rules groups %v, %d the other way round, want %d", a, pair, b, want)
		}
	}
}

func TestSizedTopologyIsAnother(t *testing.T) {
	s := sea()
	if s.Least() != 3 || s.Most() != 5 || s.Index("air") != 1 || s.Index("ice") != -1 {
		t.Errorf("%d to %d workers", s.Least(), s.Most())
	}
	sized := s.Sized([]int{3, 1})
	if sized.Least() != 4 || sized.Most() != 4 || !reflect.DeepEqual(s, sea()) {
		t.Errorf("sized it is %+v, and %+v was", sized, s)
	}
	sized.Groups[0].Min, sized.Groups[0].Max = 2, 4
	if !reflect.DeepEqual(sized, sea()) {
		t.Errorf("more than sizes differ: %+v", sized)
	}
}

func TestWhenRoundTripsCount(t *testing.T) {
	for want, list := range map[bool][]Topology{
		false: {{}, {Groups: []Group{{Name: "a"}}, Links: []Link{{Groups: []string{"a"}, Bandwidth: Range{Min: 1}}}}},
		true:  {{Groups: []Group{{Name: "a", Clusters: 1}}}, {Links: []Link{{MinRTT: 1}}}, {Links: []Link{{}, {MaxRTT: 1}}}},
	} {
		for _, s := range list {
			if s.Near() != want {
				t.Errorf("%+v: %v", s, s.Near())
			}
		}
	}
}

// Nodes differ only in what a group wants to be alike, and not by how exactly power can be measured.
func TestStrength(t *testing.T) {
	for alike, want := range map[string][2]int64{"": {}, Clock: {2400, 0}, Power: {0, 1000}} {
		s := Topology{Groups: []Group{{Homogeneous: alike}, {}}}
		for _, power := range []int64{960, 1040} {
			if clock, power := s.Strength(2400, power); clock != want[0] || power != want[1] {
				t.Errorf("alike %q: clock %d and power %d, want %v", alike, clock, power, want)
			}
		}
	}
}
