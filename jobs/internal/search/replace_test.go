package search

import (
	"slices"
	"testing"
	"time"

	"zorilla/flood"
	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/groups"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/timers"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// loss is a search for ranks that were lost, among nodes at sites as in sites; node 0 looks for them, from
// site 0. All nodes of the sites 0 to 3 are members.
type loss struct {
	*hunt
	asked map[vicinity.ID]bool
	mute  map[int]bool // sites that do not answer
	full  map[int]bool // nodes without room
	slots int          // of the others
	free  bool         // those where ranks were lost have room, too
}

func newLoss(t *testing.T, spec jobs.Spec, wanted int, lost ...vicinity.ID) *loss {
	t.Helper()
	spec.Args, spec.Slots, spec.Min, spec.Max = []string{"prog"}, 1, 1, max(spec.Max, wanted)
	if err := spec.Validate(); err != nil {
		t.Fatal(err)
	}
	l := &loss{hunt: newHunt(spec), asked: map[vicinity.ID]bool{}, mute: map[int]bool{}, full: map[int]bool{}, slots: 1}
	l.d = Demand{Wanted: wanted, Least: 1, Placed: true, Lost: lost}
	l.around()
	return l
}

// around tells the search how far the members are.
func (l *loss) around() {
	l.s.Measured = func(id vicinity.ID) time.Duration { return apartBy(jobtest.Node(0), id) }
	l.s.Fresh, l.s.Distance = l.s.Measured, apartBy
	l.s.Members = func() int { return 40 }
	l.s.Near = func(than time.Duration, limit int) (list []vicinity.Measured) {
		for n := 1; n < 40 && len(list) < limit; n++ {
			if rtt := l.s.Measured(jobtest.Node(n)); rtt < than {
				list = append(list, vicinity.Measured{ID: jobtest.Node(n), RTT: rtt})
			}
		}
		return list
	}
}

// granted lets the search run, each node that is asked answering after the round trip to it, until ranks were
// granted or two seconds have passed. It returns which node each place got, when, and how many rounds there were.
func (l *loss) granted(t *testing.T, links int) (nodes map[int]int, took time.Duration) {
	t.Helper()
	begun, due := l.now, map[int]time.Time{}
	core := flood.NewCore(flood.Config{Self: jobtest.Node(0), Rand: jobtest.Rand(), Neighbours: func() []vicinity.ID { return l.links(links) }})
	for l.now.Before(begun.Add(2 * time.Second)) {
		n := l.s.Next(l.now, l.d)
		nodes = map[int]int{}
		for _, g := range n.Grant {
			for _, place := range g.Places {
				nodes[place] = l.number(g.Node)
			}
		}
		if len(nodes) > 0 {
			return nodes, l.now.Sub(begun)
		}
		if n.Flood.Number > 0 {
			if n.Flood.Radius == 0 {
				t.Fatal("asks its own node first, which is nearest to here and not to what was lost")
			}
			radius := n.Flood.Radius
			if n.Direct {
				radius = 0
			}
			f, _, err := core.Start(l.now, max(1, radius), time.Minute, nil)
			if err != nil {
				t.Fatal(err)
			}
			l.s.Sent(l.now, n.Flood.Number, f)
			due[0] = l.now
			if !n.Direct {
				l.hear(due, l.links(links))
			}
		}
		for _, m := range n.Measure {
			var rtt []time.Duration
			for _, id := range m.Nodes {
				rtt = append(rtt, apartBy(m.From, id))
			}
			if m.From != jobtest.Node(0) {
				l.s.Paired(l.now, m.From, m.Nodes, rtt)
				due[-1] = l.now
			}
		}
		for _, r := range n.Extend {
			l.hear(due, []vicinity.ID{r.Node})
		}
		at := n.Until
		for _, when := range due {
			at = timers.Earlier(at, when)
		}
		l.now = timers.Later(l.now, at)
		for n, when := range due {
			if !l.now.Before(when) {
				delete(due, n)
				l.says(n)
			}
		}
	}
	return nil, 0
}

func (l *loss) links(n int) (ids []vicinity.ID) {
	for i := 1; i <= n; i++ {
		ids = append(ids, jobtest.Node(i))
	}
	return ids
}

func (l *loss) number(id vicinity.ID) int {
	for n := range 40 {
		if jobtest.Node(n) == id {
			return n
		}
	}
	return -1
}

func (l *loss) hear(due map[int]time.Time, ids []vicinity.ID) {
	for _, id := range ids {
		n := l.number(id)
		if l.asked[id] = true; !l.mute[n/10] {
			due[n] = l.now.Add(l.s.Measured(id))
		}
	}
}

func (l *loss) says(n int) {
	if n < 0 { // somebody has measured
		return
	}
	a := wire.Answer{Round: len(l.s.Rounds), Capacity: l.slots, Hops: 1, Reason: wire.ReasonBusy}
	if !l.full[n] && (l.free || !slices.Contains(l.d.Lost, jobtest.Node(n))) {
		a.Workers, a.Key, a.Reason = l.slots, uint64(n)+1, ""
	}
	rtt := l.s.Measured(jobtest.Node(n))
	if n == 0 {
		rtt = 0
	}
	l.s.Answered(l.now, vicinity.Member{ID: jobtest.Node(n), Name: "n"}, rtt, a, false)
}

// A rank that was lost runs again in the cluster where it was, else at the nearest node to there, though
// others are nearer to the origin; in one round, and as soon as those near there can have answered.
func TestLostRankIsReplacedNearWhereItWas(t *testing.T) {
	node, fullSite := jobtest.Node, map[int]bool{}
	for n := 30; n < 40; n++ {
		fullSite[n] = true
	}
	fullSites := map[int]bool{}
	for n := 20; n < 40; n++ {
		fullSites[n] = true
	}
	for name, c := range map[string]struct {
		spec  jobs.Spec
		lost  []vicinity.ID
		full  map[int]bool
		mute  int
		sites []int         // of the replacements
		soon  time.Duration // how far those are who may be waited for
	}{
		"in its cluster":                       {lost: []vicinity.ID{node(31)}, sites: []int{3}, soon: 60 * time.Millisecond},
		"at the nearest, else":                 {lost: []vicinity.ID{node(31)}, full: fullSite, sites: []int{2}, soon: 60 * time.Millisecond},
		"two sites away, else":                 {lost: []vicinity.ID{node(31)}, full: fullSites, sites: []int{1}, soon: 60 * time.Millisecond},
		"each where it was":                    {lost: []vicinity.ID{node(31), node(21), node(32)}, sites: []int{3, 2, 3}, soon: 60 * time.Millisecond},
		"in its cluster, spread":               {spec: jobs.Spec{Strategy: "spread"}, lost: []vicinity.ID{node(31), node(22)}, sites: []int{3, 2}, soon: time.Second},
		"in its cluster, concentrate":          {spec: jobs.Spec{Strategy: "concentrate"}, lost: []vicinity.ID{node(31)}, sites: []int{3}, soon: 60 * time.Millisecond},
		"in its cluster, bandwidth":            {spec: jobs.Spec{Strategy: "bandwidth"}, lost: []vicinity.ID{node(31)}, sites: []int{3}, soon: 60 * time.Millisecond},
		"who is silent is not waited for long": {lost: []vicinity.ID{node(31)}, mute: 3, sites: []int{2}, soon: 60 * time.Millisecond},
		"new ones are near the origin":         {spec: jobs.Spec{Max: 3}, lost: []vicinity.ID{"", node(31)}, sites: []int{0, 3, 0}, soon: 60 * time.Millisecond},
	} {
		for _, links := range []int{0, 9} { // all others are known and asked one by one, or it floods
			t.Run(name, func(t *testing.T) {
				l := newLoss(t, c.spec, len(c.sites), c.lost...)
				if l.full = c.full; l.full == nil {
					l.full = map[int]bool{}
				}
				l.mute[c.mute] = c.mute > 0
				if l.s.byLinks = links > 0; links > 0 {
					l.s.adaptive = true
				}
				got, took := l.granted(t, links)
				for place, site := range c.sites {
					if n, ok := got[place]; !ok || n/10 != site {
						t.Errorf("place %d is at node %d (%v), want one of site %d; all: %v", place, n, ok, site, got)
					}
				}
				if most := c.soon*5/4 + 2*c.soon + 20*time.Millisecond; took > most || len(l.s.Rounds) != 1 {
					t.Errorf("it took %v and %d rounds, want at most %v and one", took, len(l.s.Rounds), most)
				}
			})
		}
	}
}

// A choice says of each rank that was lost how near to there its node is.
func TestWhereReplacementsAre(t *testing.T) {
	node := jobtest.Node
	far := func(a, b vicinity.ID) time.Duration {
		if b == node(39) {
			return jobs.MaxApart
		}
		return apartBy(a, b)
	}
	lost := losses{node(31), "", node(31), node(21)}
	k := newNearness(lost, offered(11, 32, 39), far)
	for _, c := range []struct {
		to     int
		places []int
		want   []jobs.Replaced
	}{
		{32, []int{0, 1, 3}, []jobs.Replaced{{From: node(31), Same: true, RTT: codec.Duration(time.Millisecond / 2)}, {}, {From: node(21), RTT: codec.Duration(20 * time.Millisecond)}}},
		{11, []int{2}, []jobs.Replaced{{From: node(31), RTT: codec.Duration(40 * time.Millisecond)}}},
		{39, []int{0}, []jobs.Replaced{{From: node(31)}}},
		{31, []int{0}, []jobs.Replaced{{From: node(31), Same: true, RTT: codec.Duration(time.Millisecond / 2)}}},
		{11, []int{1, 5}, nil},
	} {
		if got := k.replaced(node(c.to), c.places); !slices.Equal(got, c.want) {
			t.Errorf("places %v at node %d: %+v, want %+v", c.places, c.to, got, c.want)
		}
	}
	if got := (*nearness)(nil).replaced(node(1), []int{0}); got != nil {
		t.Errorf("nothing was lost, and %+v", got)
	}
}

// A bound on the round trips between its nodes holds for a replacement, too: among those within it the one
// nearest to where the rank was is taken.
func TestReplacementKeepsToBounds(t *testing.T) {
	spec := jobs.Spec{Placing: jobs.Placing{MaxRTT: codec.Duration(45 * time.Millisecond)}}
	l := newLoss(t, spec, 1, jobtest.Node(31))
	l.d.Nodes = []vicinity.ID{jobtest.Node(1)} // 60 ms from where the other one was
	if got, _ := l.granted(t, 9); got[0]/10 != 2 {
		t.Errorf("it is at node %d, want one of site 2", got[0])
	}
	l = newLoss(t, spec, 2, jobtest.Node(31), jobtest.Node(22))
	l.d.Nodes, l.d.Least = []vicinity.ID{jobtest.Node(29)}, 2
	if got, _ := l.granted(t, 9); len(got) != 2 || got[0]/10 != 3 || got[1]/10 != 2 {
		t.Errorf("two are at nodes %v, want each where it was", got)
	}
}

// Of a job with groups, too, a rank runs again near where it was.
func TestRankOfAGroupIsReplacedNearWhereItWas(t *testing.T) {
	for site := 1; site < 3; site++ {
		s := newSites(t, jobs.Spec{Topology: groups.Topology{Groups: []groups.Group{{Name: "a", Min: 2, Max: 2, Restart: groups.RestartRank}}}})
		s.d.Groups.Least, s.d.Groups.Most = []int{1}, []int{1}
		s.d.Groups.Has[jobtest.Node(1)] = []int{1}
		s.d.Wanted, s.d.Least, s.d.Placed, s.d.Nodes = 1, 1, true, []vicinity.ID{jobtest.Node(1)}
		s.d.Lost = []vicinity.ID{jobtest.Node(10*site + 1)}
		s.room(1, 5, 15, 25)
		if got, _ := s.taken(); got[10*site+5] != 1 {
			t.Errorf("a rank of site %d is at %v", site, got)
		}
	}
}

// How many nodes are asked for their nearness to lost ones is bounded, however many were lost.
func TestFewAreAskedBesides(t *testing.T) {
	var lost []vicinity.ID
	for n := 10; n < 40; n++ {
		lost = append(lost, jobtest.Node(n))
	}
	l := newLoss(t, jobs.Spec{}, len(lost), lost...)
	l.s.Near = func(_ time.Duration, limit int) (list []vicinity.Measured) {
		for n := 1; n < 400; n++ {
			list = append(list, vicinity.Measured{ID: jobtest.Node(n), RTT: time.Duration(n) * time.Millisecond})
		}
		return list[:min(limit, len(list))]
	}
	l.s.Members = func() int { return 5000 }
	l.s.Next(l.now, l.d)
	l.sent(t, 1, 4)
	if n := l.s.Next(l.now, l.d); len(n.Extend) != maxBeside-4 { // those with links have been
		t.Errorf("%d are asked, want %d", len(n.Extend), maxBeside-4)
	}
}

// A rank that is moved goes to the node that is named, however far that is, or near there if that has no room;
// never to the node that it left.
func TestMovedRankGoesWhereItIsTo(t *testing.T) {
	node := jobtest.Node
	for name, c := range map[string]struct {
		spec  jobs.Spec
		lost  losses
		left  vicinity.ID
		full  int // a node without room
		nodes int // wanted
		where func(n int) bool
	}{
		"to a node":                    {lost: losses{node(33)}, left: node(1), where: func(n int) bool { return n == 33 }},
		"near it":                      {lost: losses{node(33)}, left: node(1), full: 33, where: func(n int) bool { return n/10 == 3 }},
		"to a node, by bandwidth":      {spec: jobs.Spec{Strategy: "bandwidth"}, lost: losses{node(33)}, left: node(1), where: func(n int) bool { return n == 33 }},
		"to a node, and a new one":     {spec: jobs.Spec{Max: 3}, lost: losses{node(33)}, left: node(1), nodes: 2, where: func(n int) bool { return n == 33 }},
		"to a node of the old cluster": {lost: losses{node(33)}, left: node(31), where: func(n int) bool { return n == 33 }},
	} {
		for _, links := range []int{0, 9} {
			t.Run(name, func(t *testing.T) {
				l := newLoss(t, c.spec, max(1, c.nodes), c.lost...)
				l.d.Left, l.d.To = []vicinity.ID{c.left}, c.lost
				l.full[c.full] = c.full > 0
				l.free = true
				l.s.byLinks = links > 0
				if got, _ := l.granted(t, links); !c.where(got[0]) {
					t.Errorf("it is at node %d", got[0])
				}
			})
		}
	}
	for _, links := range []int{0, 9} {
		l := newLoss(t, jobs.Spec{}, 1, node(31))
		l.d.Left, l.free, l.s.byLinks = []vicinity.ID{node(31)}, true, links > 0
		if got, _ := l.granted(t, links); got[0] == 31 || got[0]/10 != 3 {
			t.Errorf("without a node it is at node %d", got[0])
		}
	}
}

// What stands of the node that is left is given back, and what comes is refused, until the rank runs elsewhere.
func TestOffersOfTheNodeThatIsLeft(t *testing.T) {
	h := newHunt(jobs.Spec{Min: 1, Max: 9, Slots: 1})
	h.d = Demand{Wanted: 8, Least: 8}
	h.next()
	h.sent(t, 1, 4)
	h.answer(1, 1, nil)
	h.d = Demand{Wanted: 8, Least: 8, Lost: losses{jobtest.Node(1)}, Left: []vicinity.ID{jobtest.Node(1)}}
	if n := h.next(); len(n.Release) != 1 || n.Release[0].Node != jobtest.Node(1) || len(h.s.Offers) > 0 {
		t.Fatalf("gives back %+v, keeps %+v", n.Release, h.s.Offers)
	}
	other := func(a *wire.Answer) { a.Key = 99 }
	if _, refused := h.answer(1, 1, other); !refused || len(h.s.Offers) > 0 {
		t.Errorf("refused: %v", refused)
	}
	h.s.Lost(h.now, jobtest.Node(1), MovedAway)
	wantRow(t, "a rank was moved away from it", h.s.Answers[jobtest.Node(1)].Reason)
	h.d.Left = nil
	h.next()
	if _, refused := h.answer(1, 1, func(a *wire.Answer) { a.Key, a.Round = 100, 2 }); refused || len(h.s.Offers) != 1 {
		t.Errorf("once the rank runs its offer is refused: %v", refused)
	}
}

// However often it is asked who comes next, nobody is asked beyond those there are.
func TestBesideNobodyIsLeft(t *testing.T) {
	b := beside{batch: batchBeside, list: make([]vicinity.Measured, batchBeside+1), until: map[vicinity.ID]time.Time{}}
	asked := 0
	for range 100 {
		asked += len(b.next(jobtest.Start))
	}
	if asked != batchBeside+1 {
		t.Errorf("%d were asked", asked)
	}
}
