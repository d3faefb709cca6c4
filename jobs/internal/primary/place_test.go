package primary

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/internal/wire/wiretest"
	"zorilla/vicinity"
)

// line is a flooding talk whose nodes lie on a line, the origin at 0: round trips
// are differences of their places, in milliseconds. What the primary believes of
// two others is that times a mistake.
type line struct {
	*flooding
	at      map[vicinity.ID]float64
	mistake float64
	silent  map[vicinity.ID]bool // do not measure, and are not measured
	asked   []string             // measurements, as "1:2 3"
	grants  []DoGrant
}

func newLine(t *testing.T, spec jobs.Spec) *line {
	c := &line{flooding: newFlooding(t, spec), at: map[vicinity.ID]float64{}, mistake: 1, silent: map[vicinity.ID]bool{}}
	c.p.Distance = func(a, b vicinity.ID) time.Duration {
		return time.Duration(c.mistake * math.Abs(c.at[a]-c.at[b]) * float64(ms))
	}
	return c
}

// put has node n at a place offer so many workers, in answer to the last flood.
func (c *line) put(n int, at float64, workers int) {
	c.at[jobtest.Node(n)] = at
	rtt := time.Duration(math.Abs(at) * float64(ms))
	c.rtts[jobtest.Node(n)] = rtt
	c.answer(n, rtt, 0, func(a *wire.Answer) { a.Workers, a.Rim = workers, false })
}

// play lets time pass, measures what is asked and takes grants.
func (c *line) play(d time.Duration) {
	c.t.Helper()
	for end := c.now.Add(d); ; {
		effects := c.step()
		for _, e := range effects {
			switch e := e.(type) {
			case DoMeasure:
				c.measure(e)
			case DoGrant:
				c.grants = append(c.grants, e)
			case DoFlood:
				c.sent()
			}
		}
		if len(effects) > 0 {
			continue
		}
		if at := c.p.Wake(); at.IsZero() || at.After(end) {
			c.now = end
			return
		} else if at.After(c.now) {
			c.now = at
		}
		c.p.Tick(c.now)
	}
}

func (c *line) measure(e DoMeasure) {
	text := name(e.From) + ":"
	var rtts []time.Duration
	for _, id := range e.Nodes {
		text += " " + name(id)
		d := time.Duration(math.Abs(c.at[e.From]-c.at[id]) * float64(ms))
		if c.silent[id] {
			d = 0
		}
		rtts = append(rtts, d)
	}
	c.asked = append(c.asked, text)
	if c.silent[e.From] {
		rtts = nil
	}
	c.p.Paired(c.now, e.From, e.Nodes, rtts)
}

func name(id vicinity.ID) string {
	for n := range 30 {
		if jobtest.Node(n) == id {
			return fmt.Sprint(n)
		}
	}
	return string(id)
}

// want checks who was granted how many ranks, as "1x2 3x1".
func (c *line) want(grants string) {
	c.t.Helper()
	var got []string
	for _, g := range c.grants {
		got = append(got, fmt.Sprintf("%sx%d", name(g.To), len(g.Grant.Ranks)))
	}
	if slices.Sort(got); strings.Join(got, " ") != grants {
		c.t.Fatalf("granted %v, want %q; the job is %s: %s", got, grants, c.p.Rec.State, c.p.reason())
	}
}

func TestCompactTakesNodesNearEachOther(t *testing.T) {
	c := newLine(t, jobs.Spec{Min: 3, Max: 3, Strategy: "compact"})
	if !c.p.Rec.Spec.Pairwise() {
		t.Fatal("compact does not ask where nodes are")
	}
	c.put(1, 3, 1)
	c.put(2, -4, 1)
	c.put(3, 20, 2)
	c.put(4, 20.4, 2)
	c.play(500 * ms)
	c.want("3x2 4x1")
	if len(c.asked) != 1 || c.asked[0] != "3: 4" {
		t.Errorf("measured %q, want the one pair", c.asked)
	}
	c.report(3, jobs.WorkerReady, 0, wiretest.RA(0, 1), wiretest.RA(1, 1))
	c.report(4, jobs.WorkerReady, 0, wiretest.RA(2, 1))
	c.state(jobs.Running, -1)
	w := c.p.Status().Worst
	if w == nil || w.Estimated || w.A != jobtest.Node(3) || w.B != jobtest.Node(4) || time.Duration(w.RTT).Round(ms/100) != 4*ms/10 {
		t.Errorf("the worst pair is %+v", w)
	}
}

func TestBoundIsKeptAndWaitedFor(t *testing.T) {
	c := newLine(t, jobs.Spec{Min: 2, Max: 2, Placing: jobs.Placing{MaxRTT: codec.Duration(5 * ms)}})
	c.put(1, 3, 1)
	c.put(2, -4, 1)
	c.put(3, 12, 1)
	c.play(500 * ms)
	c.want("")
	for _, text := range []string{"3 offered", "nodes too far apart: the closest that have room for 2 workers are up to 7ms apart, want 5ms"} {
		if r := c.p.reason(); !strings.Contains(r, text) {
			t.Errorf("the reason %q does not say %q", r, text)
		}
	}
	if e := c.p.Explain(c.now); e.Wanted != 2 || !strings.Contains(e.Summary, "want 5ms") {
		t.Errorf("explains %+v", e)
	}
	c.put(4, 14, 1)
	c.play(500 * ms)
	c.want("3x1 4x1")
	if strings.Contains(c.p.reason(), "apart") {
		t.Errorf("waits still: %s", c.p.reason())
	}
}

// An estimate is not enough for a promise: the pairs are measured.
func TestBoundHoldsForMeasuredPairs(t *testing.T) {
	c := newLine(t, jobs.Spec{Min: 2, Max: 2, Placing: jobs.Placing{MaxRTT: codec.Duration(5 * ms)}})
	c.mistake = 0.5
	c.put(1, 3, 1)
	c.put(2, -4, 1) // 7 ms apart, believed to be 3.5
	c.put(3, -5, 1)
	c.play(500 * ms)
	c.want("2x1 3x1")
	if len(c.asked) < 2 {
		t.Errorf("measured %q", c.asked)
	}
}

func TestNodesThatDoNotMeasureAreLeftOut(t *testing.T) {
	c := newLine(t, jobs.Spec{Min: 2, Max: 2, Placing: jobs.Placing{MaxRTT: codec.Duration(5 * ms)}})
	c.silent[jobtest.Node(2)] = true
	c.put(1, 3, 1)
	c.put(2, 3.5, 1)
	c.put(3, 6, 1)
	c.play(500 * ms)
	c.want("1x1 3x1")
}

func TestUnmeasurableBoundIsAReason(t *testing.T) {
	c := newLine(t, jobs.Spec{Min: 2, Max: 2, Placing: jobs.Placing{MaxRTT: codec.Duration(5 * ms)}})
	c.silent[jobtest.Node(1)] = true
	c.put(1, 3, 1)
	c.put(2, 3.5, 1)
	c.play(700 * ms)
	c.want("")
	if r := c.p.reason(); !strings.Contains(r, "too far apart") {
		t.Errorf("waits without a reason: %s", r)
	}
	c.silent = map[vicinity.ID]bool{}
	c.play(2 * time.Second) // floods again
	c.put(1, 3, 1)
	c.put(2, 3.5, 1)
	c.play(500 * ms)
	c.want("1x1 2x1")
}

// A job grows as far as its bound lets it, around the nodes that it has.
func TestGrowthKeepsTheBound(t *testing.T) {
	c := newLine(t, jobs.Spec{Min: 1, Max: 6, Placing: jobs.Placing{MaxRTT: codec.Duration(5 * ms)}})
	c.put(1, 3, 1)
	c.put(2, 40, 2)
	c.put(3, 41, 1)
	c.play(500 * ms)
	c.want("2x2 3x1") // three of them, where node 1 would be alone
	c.report(2, jobs.WorkerReady, 0, wiretest.RA(0, 1), wiretest.RA(1, 1))
	c.report(3, jobs.WorkerReady, 0, wiretest.RA(2, 1))
	c.state(jobs.Running, -1)
	c.grants = nil
	for len(c.p.Search.Rounds) < 2 {
		c.play(time.Second)
	}
	c.put(1, 3, 1)
	c.put(4, 44, 1)
	c.play(500 * ms)
	c.want("4x1")
	c.report(4, jobs.WorkerReady, 0, wiretest.RA(3, 1))
	if w := c.p.Status().Worst; w == nil || time.Duration(w.RTT) != 4*ms {
		t.Errorf("the worst pair is %+v", w)
	}
}

// Estimates tell where the worst pair is of a job that did not ask for it.
func TestWorstPairOfOtherJobs(t *testing.T) {
	c := newLine(t, jobs.Spec{Min: 3, Max: 3})
	c.put(1, 3, 1)
	c.put(2, -4, 1)
	c.put(3, 1, 1)
	c.play(500 * ms)
	c.want("1x1 2x1 3x1")
	for n := 1; n <= 3; n++ {
		for rank, k := range c.p.Rec.Ranks {
			if k.Node == jobtest.Node(n) {
				c.report(n, jobs.WorkerReady, 0, wiretest.RA(rank, 1))
			}
		}
	}
	w := c.p.Status().Worst
	if w == nil || !w.Estimated || time.Duration(w.RTT) != 7*ms || !strings.HasPrefix(w.String(), "about 7ms: ") {
		t.Errorf("the worst pair is %v", w)
	}
	replayed := record.Record{ID: c.p.Rec.ID}
	for _, ev := range c.log {
		replayed.Apply(ev)
	}
	if replayed.Worst == nil || !reflect.DeepEqual(replayed.Worst, w) {
		t.Errorf("after a restart it is %v", replayed.Worst)
	}
}

// A choice looks at all pairs, so not every answer makes a new one.
func TestChoicesAmongManyAreFew(t *testing.T) {
	for _, spec := range []jobs.Spec{{Min: 4, Max: 4, Strategy: "compact"}, {Min: 4, Max: 4, Placing: jobs.Placing{MaxRTT: codec.Duration(5 * ms)}, Search: jobs.Search{Mode: jobs.SearchPaper}}} {
		c := newLine(t, spec)
		pairs, believe := 0, c.p.Distance
		c.p.Distance = func(a, b vicinity.ID) time.Duration { pairs++; return believe(a, b) }
		const nodes = 100
		for n := 1; n <= nodes; n++ {
			c.put(n, 10+float64(n%10)/2, 1)
		}
		c.play(time.Second)
		if len(c.grants) != 4 || pairs > 5*nodes*nodes {
			t.Errorf("%+v: %d grants after a look at %d pairs", spec, len(c.grants), pairs)
		}
	}
}
