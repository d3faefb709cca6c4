package model_test

import (
	"slices"
	"testing"
	"time"

	"zorilla/internal/seeds"
	"zorilla/jobs"
	"zorilla/jobs/internal/timers"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/model"
)

// contest is a world in which gangs want several times the slots that there
// are, and who looks whether they get them in order.
type contest struct {
	*world
	gangs   []*gang     // in the order that all nodes agree on
	all     int         // slots
	used    map[int]int // slots, by claims
	free    int
	begun   int           // gangs that had all they need, however often
	later   int           // of them, though an older one could have had the slots for a while
	filled  int           // of them, while an older one waited that could not
	longest time.Duration // that the oldest one waited though there was room
}

// gang is one of them.
type gang struct {
	id     jobs.ID
	order  jobs.Order
	home   int
	size   int // slots
	length time.Duration
	begun  bool // it has all that it needs, or had
	ended  bool
	first  time.Time // since when it is the oldest that waits
	room   time.Time // since when there has been room for it; zero = there is none
}

// prompt is how soon a gang that is the oldest and for which there is room should
// have it: two floods may be needed, of which the first was a moment too early.
const prompt = 3 * time.Second

// newContest has so many gangs submitted within a time, at all nodes, whose
// clocks differ by up to 20 s.
func newContest(seed uint64, nodes, gangs int, within time.Duration) *contest {
	each := make([]int, nodes)
	c := &contest{used: map[int]int{}}
	for i := range each {
		each[i] = 1 + i%4
		c.all += each[i]
	}
	c.world = newWorld(seed, each...)
	c.free = c.all
	calm := noise
	calm.Loss = 0.02
	c.net.SetNoise(calm)
	for i := range c.clocks {
		c.clocks[i] += c.upTo(20*time.Second) - 10*time.Second
	}
	rnd := c.net.Rand()
	lengths := map[jobs.ID]time.Duration{}
	c.fate = func(id jobs.ID, _ *jobs.Spec, _ jobs.RankAttempt) model.Fate {
		return model.Fate{Prepare: c.upTo(50 * time.Millisecond), Run: lengths[id]}
	}
	for i := range gangs {
		size := 1 + rnd.IntN(c.all*6/10)
		if i%2 == 0 {
			size = 1 + size/8
		}
		g := &gang{size: size, length: time.Second + c.upTo(9*time.Second), home: rnd.IntN(nodes)}
		c.net.Schedule(c.upTo(within), func() { c.enter(g, lengths) })
	}
	c.watch = c.see
	return c
}

// enter submits a gang.
func (c *contest) enter(g *gang, lengths map[jobs.ID]time.Duration) {
	id, err := c.submit(g.home, jobs.Spec{Min: g.size, Max: g.size})
	if err != nil {
		c.audit.Fail("", "%v", err)
		return
	}
	rec := &c.Jobs(g.home).Core().Jobs[id].Primary.Rec
	g.id, g.order = id, jobs.Order{Priority: 0, Stamp: rec.Stamp, ID: id}
	lengths[id] = g.length
	i, _ := slices.BinarySearchFunc(c.gangs, g, func(a, b *gang) int {
		if a.order.Before(b.order) {
			return -1
		}
		return 1
	})
	c.gangs = slices.Insert(c.gangs, i, g)
}

// see looks at a node that has done something.
func (c *contest) see(node int) {
	used, _ := c.Jobs(node).Slots()
	changed := used != c.used[node]
	c.free -= used - c.used[node]
	c.used[node] = used
	for i, g := range c.gangs {
		if g.home != node || g.ended {
			continue
		}
		switch state := c.Jobs(node).State(g.id); {
		case state.Final():
			g.ended = true
		case state == jobs.Pending:
			g.begun = false
			continue
		case g.begun:
			continue
		default:
			g.begun = true
			c.started(i)
		}
		changed = true
	}
	if changed {
		c.rooms()
	}
}

// started judges a gang that has just been granted all it needs.
func (c *contest) started(i int) {
	c.begun++
	over, waits := false, false
	for _, o := range c.gangs[:i] {
		if !o.begun && !o.ended {
			waits = true
			over = over || !o.room.IsZero() && c.net.Now().Sub(o.room) > prompt
		}
	}
	switch {
	case over:
		c.later++
	case waits:
		c.filled++
	}
}

// rooms notes for which gangs there is room, and how long the oldest one has
// not used it.
func (c *contest) rooms() {
	first := true
	for _, g := range c.gangs {
		switch {
		case g.begun || g.ended:
			g.room, g.first = time.Time{}, time.Time{}
			continue
		case g.size > c.free:
			g.room = time.Time{}
		case g.room.IsZero():
			g.room = c.net.Now()
		}
		if first && g.first.IsZero() {
			g.first = c.net.Now()
		}
		if d := c.net.Now().Sub(timers.Later(g.room, g.first)); first && !g.room.IsZero() && d > c.longest {
			c.longest = d
		}
		first = false
	}
}

func (c *contest) over() bool {
	return !slices.ContainsFunc(c.gangs, func(g *gang) bool { return !g.ended })
}

// floods returns how often all of them together have flooded.
func (c *contest) floods() (n int) {
	for _, g := range c.gangs {
		// One that its own node has room for does not flood.
		if rounds := c.Jobs(g.home).Core().Jobs[g.id].Primary.Search.Rounds; len(rounds) > 0 {
			n += rounds[len(rounds)-1].Number
		}
	}
	return n
}

// TestGangs lets two hundred gangs compete for 60 slots, of which some want more
// than half, and compares what they get with what is promised of slots:
// docs/architecture/search.md. ZORILLA_SEEDS=FROM-TO chooses other seeds.
func TestGangs(t *testing.T) {
	seeds.OneGoroutine(t)
	const gangs, burst = 200, 20 * time.Second
	from, to := seeds.Range(t, 1)
	for seed := from; seed <= to; seed++ {
		c := newContest(seed, 24, gangs, burst)
		c.wait(burst)
		done := c.run(time.Hour, c.over)
		c.sound(t)
		var work time.Duration
		for _, g := range c.gangs {
			work += time.Duration(g.size) * g.length
			if state := c.state(g.id); state != jobs.Completed {
				t.Errorf("seed %d: gang %s of %d is %s", seed, g.id, g.size, state)
			}
		}
		least := work / time.Duration(c.all)
		more := float64(c.net.Elapsed()) / float64(least)
		t.Logf("seed %d: over after %v, %.2f times the least possible; %d were granted in vain; %d began before an older one that could have, %d while an older one did not fit; the oldest waited at most %v; %d floods",
			seed, c.net.Elapsed().Round(time.Second), more, c.begun-gangs, c.later, c.filled, c.longest.Round(10*time.Millisecond), c.floods())
		if !done || len(c.gangs) != gangs || more > 1.6 {
			t.Errorf("seed %d: %d gangs took %.2f times the least possible", seed, len(c.gangs), more)
		}
		if c.longest > wire.HoldLease+prompt || c.later > gangs/8 || c.begun > gangs*6/5 {
			t.Errorf("seed %d: not in order", seed)
		}
		if !c.run(time.Hour, c.idle) {
			t.Errorf("seed %d: slots are in use", seed)
		}
	}
}
