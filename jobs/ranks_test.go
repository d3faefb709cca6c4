package jobs

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"zorilla/internal/codec"
	"zorilla/jobs/groups"
	"zorilla/jobs/work"
)

// model is a job of two groups, with needs of their own and of the job.
func model() Spec {
	return Spec{
		Args: []string{"prog"}, Env: map[string]string{"A": "job", "B": "job"}, Min: 4, Max: 6, Slots: 2, Memory: 1 << 30, Disk: 1 << 20, GPUs: 1,
		Topology: groups.Topology{Groups: []groups.Group{
			{Name: "sea", Min: 3, Max: 5},
			{Name: "air", Args: []string{"air", "-x"}, Env: map[string]string{"B": "air", "C": "air"}, Min: 1, Max: 1, Slots: groups.Range{Min: 4, Max: 8},
				Memory: groups.Range{Min: 1 << 31}, Disk: groups.Range{Min: 1 << 21}, GPUs: groups.Range{Min: 2}, Restart: groups.RestartRank},
		}},
	}
}

func TestRankSeesItsGroup(t *testing.T) {
	s := model()
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	sized := s.Sized([]int{3, 1})
	if err := sized.Validate(); err != nil || sized.Min != 4 || sized.Max != 4 {
		t.Fatalf("sized it has %d..%d workers: %v", sized.Min, sized.Max, err)
	}
	before := codec.MustMarshal(&sized)
	for rank, want := range [][2]int{{0, 0}, {0, 1}, {0, 2}, {1, 0}, {-1, 0}} {
		if group, number := sized.GroupOf(rank); group != want[0] || number != want[1] {
			t.Errorf("rank %d is %d of group %d, want %d of %d", rank, number, group, want[1], want[0])
		}
	}
	if group, number := s.GroupOf(4); group != 0 || number != 4 {
		t.Errorf("as long as sizes are not chosen rank 4 is %d of group %d", number, group)
	}
	sea, air := sized.Of(2), sized.Of(3)
	if !slices.Equal(sea.Args, s.Args) || !reflect.DeepEqual(sea.Env, s.Env) || sea.Slots != 2 {
		t.Errorf("a rank of a group without anything of its own sees %+v", sea)
	}
	if want := map[string]string{"A": "job", "B": "air", "C": "air"}; !slices.Equal(air.Args, []string{"air", "-x"}) || !reflect.DeepEqual(air.Env, want) {
		t.Errorf("a rank of the other sees %v and %v", air.Args, air.Env)
	}
	if got, want := sized.Needs(2), (Needs{2, 1 << 30, 1 << 20, 1}); got != want || sized.NeedsOf(0) != want {
		t.Errorf("it needs %+v, want %+v", got, want)
	}
	if got, want := sized.Needs(3), (Needs{4, 1 << 31, 1 << 21, 2}); got != want || sized.NeedsOf(1) != want {
		t.Errorf("it needs %+v, want %+v", got, want)
	}
	if after := codec.MustMarshal(&sized); !slices.Equal(before, after) {
		t.Error("to look at a rank has changed the job")
	}
	plain := Spec{Args: []string{"prog"}, Min: 2, Max: 2, Slots: 3}
	if group, number := plain.GroupOf(1); group != -1 || number != 1 || plain.Of(1) != &plain || plain.Needs(1) != (Needs{Slots: 3}) {
		t.Error("a job without groups is another to its ranks")
	}
	if kinds, of := plain.Kinds(); len(kinds)+len(of) > 0 {
		t.Errorf("a job without groups has kinds %v", kinds)
	}
	// A group alone may have an environment.
	plain.Topology, plain.Min, plain.Max = groups.Topology{Groups: []groups.Group{{Name: "a", Min: 1, Max: 1, Env: map[string]string{"X": "1"}}}}, 1, 1
	if got := plain.Of(0).Env["X"]; got != "1" || plain.Env != nil {
		t.Errorf("it has X=%q, the job %v", got, plain.Env)
	}
}

// What is chosen is no other job: the sum of what was submitted stays, and groups are not shared.
func TestSumOfAJobWithGroups(t *testing.T) {
	s := model()
	was := s.Sum()
	sized := s.Sized([]int{4, 1})
	if s.Sum() != was || sized.Sum() == was || s.Groups[0].Max != 5 {
		t.Error("the choice of sizes has changed what was submitted")
	}
	for what, change := range map[string]func(*Spec){
		"a group": func(s *Spec) { s.Groups[0].Clusters = 1 }, "a link": func(s *Spec) { s.Links = []groups.Link{{Name: "l", Groups: []string{"sea"}}} },
		"utility": func(s *Spec) { s.Utility.Utilisation = 1 },
	} {
		other := model()
		if change(&other); other.Sum() == was {
			t.Errorf("with %s it is the same job", what)
		}
	}
}

func TestKindsOfGroups(t *testing.T) {
	g := func(change func(*groups.Group)) groups.Group {
		x := groups.Group{Min: 1, Max: 1}
		change(&x)
		return x
	}
	s := Spec{Slots: 2, Topology: groups.Topology{Groups: []groups.Group{
		g(func(*groups.Group) {}),
		g(func(x *groups.Group) { x.Slots.Min = 2 }), // as the job
		g(func(x *groups.Group) { x.Slots = groups.Range{Min: 2, Max: 4} }),
		g(func(x *groups.Group) { x.Where = `site == "a" || gpus > 1` }),
		g(func(x *groups.Group) {
			x.Clock, x.Power, x.Where = groups.Range{Min: 2000}, groups.Range{Min: 800, Max: 1200}, `site == "a" || gpus > 1`
		}),
		g(func(x *groups.Group) {
			x.Memory, x.Disk, x.GPUs = groups.Range{Max: 1 << 30}, groups.Range{Max: 1 << 20}, groups.Range{Max: 3}
		}),
	}}}
	kinds, of := s.Kinds()
	plain := Needs{Slots: 2}
	want := []Kind{{plain, ""}, {plain, "slots <= 4"}, {plain, `site == "a" || gpus > 1`},
		{plain, `clock >= 2000 && power >= 800 && power <= 1200 && (site == "a" || gpus > 1)`},
		{plain, "mem <= 1073741824 && disk <= 1048576 && gpus <= 3"}}
	if !slices.Equal(kinds, want) || !slices.Equal(of, []int{0, 0, 1, 2, 3, 4}) {
		t.Errorf("the kinds are %+v of %v, want %+v", kinds, of, want)
	}
}

func TestWhatStartsAgain(t *testing.T) {
	rank, group, whole := groups.RestartRank, groups.RestartGroup, groups.RestartJob
	s := Spec{Topology: groups.Topology{Groups: []groups.Group{{Min: 1, Max: 1, Restart: rank}, {Min: 1, Max: 1, Restart: group}, {Min: 1, Max: 2}, {Min: 1, Max: 1, Restart: whole}}}}
	for n, want := range []string{rank, group, whole, whole, whole} {
		if got := s.Restarts(n); got != want {
			t.Errorf("rank %d: %s, want %s", n, got, want)
		}
	}
	for _, c := range []struct {
		ranks []int
		want  string
	}{{[]int{0}, rank}, {[]int{0, 1}, group}, {[]int{1, 0}, group}, {[]int{0, 1, 4}, whole}, {[]int{2, 0}, whole}} {
		var list []RankAttempt
		for _, n := range c.ranks {
			list = append(list, RankAttempt{Rank: n, Attempt: 1})
		}
		if got := s.RestartsOf(list); got != c.want {
			t.Errorf("ranks %v: %s, want %s", c.ranks, got, c.want)
		}
	}
	some := groups.Topology{Groups: []groups.Group{{Min: 1, Max: 3}, {Min: 1, Max: 1}}}
	mended := groups.Topology{Groups: []groups.Group{{Min: 1, Max: 3}, {Min: 1, Max: 1, Restart: group}}}
	for name, c := range map[string]struct {
		spec         Spec
		fixed, rigid bool
		restarts     string
	}{
		"gang":                     {Spec{Min: 2, Max: 2}, true, true, whole},
		"malleable":                {Spec{Min: 1, Max: 2}, false, false, rank},
		"array":                    {Spec{Min: 2, Max: 2, Array: &Array{}}, false, false, rank},
		"groups":                   {Spec{Min: 2, Max: 4, Topology: some}, true, true, whole},
		"groups that start again":  {Spec{Min: 2, Max: 4, Topology: mended}, true, false, whole},
		"groups of which one is a": {Spec{Min: 1, Max: 1, Topology: groups.Topology{Groups: []groups.Group{{Min: 1, Max: 1, Restart: rank}}}}, true, false, rank},
	} {
		if f, r, w := c.spec.FixedSize(), c.spec.Rigid(), c.spec.Restarts(0); f != c.fixed || r != c.rigid || w != c.restarts {
			t.Errorf("%s: fixed size %v, rigid %v, %s; want %v, %v, %s", name, f, r, w, c.fixed, c.rigid, c.restarts)
		}
	}
}

func TestGroupsThatAreRefused(t *testing.T) {
	long := strings.Repeat(" ", 190)
	for want, change := range map[string]func(*Spec){
		"": func(*Spec) {},
		"group sea: n 7..5: want at least 1, and MIN at most MAX": func(s *Spec) { s.Groups[0].Min = 7 },
		"groups: the tasks of an array do not know of each other": func(s *Spec) {
			s.Array, s.Min, s.Max = &Array{Tasks: []work.TaskIDs{{First: 1, Last: 9, Step: 1}}}, 1, 9
		},
		"groups: with --replicas there are none":                                func(s *Spec) { s.Replicas = 2 },
		"groups: with --share-work there are none":                              func(s *Spec) { s.ShareWork = true },
		"groups: want --search adaptive":                                        func(s *Spec) { s.Search.Mode = SearchPaper },
		"groups: links say where they are: want no --strategy and no --max-rtt": func(s *Spec) { s.Strategy = "compact" },
		"-n 4..7: the groups have 4..6":                                         func(s *Spec) { s.Max = 7 },
		"-n 3..6: the groups have 4..6":                                         func(s *Spec) { s.Min = 3 },
		"groups: 9 kinds of needs and conditions, at most 8":                    func(s *Spec) { differ(s, 9) },
		"groups: their conditions take 407 bytes, at most 400": func(s *Spec) { // "version >= 8" and 395 more
			s.Groups[0].Where, s.Groups[1].Where, s.Groups[1].Slots.Max = "true"+long, "slots > 9"+long+"  ", 0
		},
		"group air: where: " + noColour:                                                                func(s *Spec) { s.Groups[1].Where = "colour == 3" },
		"group air: where: " + brackets:                                                                func(s *Spec) { s.Groups[1].Where = "gpus > 1) || (gpus == 0" },
		"group air: restart: the ranks of an MPI program start together, want job":                     func(s *Spec) { s.MPI, s.Min, s.Max, s.Groups[0].Min = true, 6, 6, 5 },
		"group sea: no command":                                                                        func(s *Spec) { s.Groups[0].Args = []string{""} },
		"no command: put it after the options, as in 'zorilla run -n 4 -- ./prog'":                     func(s *Spec) { s.Args = nil },
		"group air: slots 4097: want 1 to 4096":                                                        func(s *Spec) { s.Groups[1].Slots = groups.Range{Min: 4097} },
		"group air: gpus 257: want 0 to 256":                                                           func(s *Spec) { s.Groups[1].GPUs = groups.Range{Min: 257} },
		"group sea: slots: a worker takes 4, and its node may have 2 at most":                          func(s *Spec) { s.Slots, s.Groups[0].Slots = 4, groups.Range{Max: 2} },
		"group sea: mem: a worker takes 2 GiB, and its node may have 1 GiB at most":                    func(s *Spec) { s.Memory, s.Groups[0].Memory = 2<<30, groups.Range{Max: 1 << 30} },
		"group air: 4097 arguments, at most 4096":                                                      func(s *Spec) { s.Groups[1].Args = make([]string, 4097); s.Groups[1].Args[0] = "x" },
		`group air: argument "a\x00" holds a zero byte`:                                                func(s *Spec) { s.Groups[1].Args[1] = "a\x00" },
		"group air: environment variable ZORILLA_X: names that begin with ZORILLA_ are set by zorilla": func(s *Spec) { s.Groups[1].Env["ZORILLA_X"] = "1" },
	} {
		s := model()
		change(&s)
		err := s.Validate()
		if want == "" && err != nil || want != "" && (!errors.Is(err, ErrInvalid) || err.Error() != ErrInvalid.Error()+": "+want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	s := model() // each group has a command of its own
	if s.Args, s.Groups[0].Args = nil, []string{"sea"}; s.Validate() != nil {
		t.Error(s.Validate())
	}
}

const (
	noColour = "column 1: unknown property colour: there are arch, bandwidth, clock, disk, enforces, gpus, id, labels, mem, name, os, power, site, slots and version"
	brackets = `column 9: unexpected token Bracket(")")`
)

// differ makes a job of one rank in each of so many groups that want different nodes.
func differ(s *Spec, n int) {
	s.Groups, s.Min, s.Max = nil, n, n
	for i := range n {
		s.Groups = append(s.Groups, groups.Group{Name: string(rune('a' + i)), Min: 1, Max: 1, Slots: groups.Range{Min: int64(i + 1)}})
	}
}

// Nodes that know nothing of groups are kept out, whatever else a job wants.
func TestNodesOfJobsWithGroups(t *testing.T) {
	for want, change := range map[string]func(*Spec){
		"version >= 8":               func(*Spec) {},
		"version >= 8 && (gpus > 1)": func(s *Spec) { s.Where, s.MPI, s.Net, s.Mounts = "gpus > 1", true, NetJob, []string{"/data:ro"} },
	} {
		s := model()
		if change(&s); s.Condition() != want || CurrentVersion < 8 {
			t.Errorf("the condition is %s, want %s", s.Condition(), want)
		}
	}
}
