package web

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/placement/mapping"
	"zorilla/node/api"
	"zorilla/vicinity"
)

func TestFormats(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{span(0), "0.0 s"}, {span(-time.Hour), "0.0 s"}, {span(340 * time.Millisecond), "0.3 s"}, {span(59999 * time.Millisecond), "59 s"},
		{span(62 * time.Second), "1 min 02 s"}, {span(3*time.Hour + 5*time.Minute), "3 h 05 min"}, {span(51 * time.Hour), "2 d 3 h"},
		{ago(2 * time.Second), "just now"}, {ago(-time.Hour), "just now"}, {ago(70 * time.Second), "1 min ago"}, {ago(49 * time.Hour), "2 d ago"},
		{latency(0), "–"}, {latency(20 * time.Microsecond), "0.02 ms"}, {latency(1700 * time.Microsecond), "1.7 ms"}, {latency(25 * time.Millisecond), "25.0 ms"},
		{count(7), "7"}, {count(1204), "1\u202f204"}, {count(-1204), "-1\u202f204"}, {count(-204), "-204"}, {count(1234567), "1\u202f234\u202f567"},
		{label("a\nb\x1b\u202ec\xff", 9), "a\ufffdb\ufffd\ufffdc\ufffd"}, {label("abcdef", 3), "abc…"},
		{command(&jobs.Spec{Args: []string{"echo", "it's", "", "$HOME"}}, 80), `echo 'it'\''s' '' '$HOME'`},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestMapKeepsDistances(t *testing.T) {
	// Four corners of a rectangle in a plane that lies askew in five dimensions.
	var nodes []api.NodeInfo
	u, v := []float64{.5, .5, .5, .5, 0}, []float64{.5, -.5, .5, -.5, 0}
	for _, c := range []point{{0, 0}, {100, 0}, {0, 40}, {100, 40}} {
		n := api.NodeInfo{Member: vicinity.Member{ID: nodeID(len(nodes))}}
		for d := range u {
			n.Position = append(n.Position, 7+c.x*u[d]+c.y*v[d])
		}
		nodes = append(nodes, n)
	}
	at := new(atlas).place(nodes, time.Now())
	for _, c := range []struct {
		a, b int
		ms   float64
	}{{0, 1, 100}, {0, 2, 40}, {0, 3, math.Hypot(100, 40)}, {1, 2, math.Hypot(100, 40)}, {2, 3, 100}} {
		if got := at.points[nodes[c.a].ID].to(at.points[nodes[c.b].ID]) / at.perMS; math.Abs(got-c.ms) > .5 {
			t.Errorf("nodes %d and %d are %.1f ms apart on the map, want %.1f", c.a, c.b, got, c.ms)
		}
	}
}

func TestMapIsAlwaysDrawable(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	nan, inf := math.NaN(), math.Inf(1)
	for name, change := range map[string]func(i int, n *api.NodeInfo){
		"as it is":        func(int, *api.NodeInfo) {},
		"all at one spot": func(_ int, n *api.NodeInfo) { n.Position = []float64{1, 1} },
		"on a line":       func(i int, n *api.NodeInfo) { n.Position = []float64{float64(i), 0, 0} },
		"no coordinates":  func(_ int, n *api.NodeInfo) { n.Position = nil },
		"one dimension":   func(i int, n *api.NodeInfo) { n.Position = []float64{float64(i)} },
		"no numbers":      func(i int, n *api.NodeInfo) { n.Position = []float64{nan, inf} },
		"some nonsense":   func(i int, n *api.NodeInfo) { n.Position[0] *= 1 + float64(i%5/4)*1e300 },
		"mixed lengths":   func(i int, n *api.NodeInfo) { n.Position = make([]float64, 2+i%2) },
		"no round trips":  func(_ int, n *api.NodeInfo) { n.Position, n.RTT = nil, 0 },
		"long trips": func(_ int, n *api.NodeInfo) {
			n.Position, n.RTT = nil, codec.Duration(time.Hour*time.Duration(rnd.IntN(9)))
		},
	} {
		for _, size := range []int{1, 2, 3, 12, 400} {
			nodes := network(size)
			for i := range nodes {
				change(i, &nodes[i])
			}
			v := drawMap(nodes, groupTones(nodes), new(atlas).place(nodes, time.Now()))
			if len(v.Dots) == 0 || len(v.Dots) > maxDots {
				t.Errorf("%s, %d nodes: %d dots", name, size, len(v.Dots))
			}
			for _, d := range v.Dots {
				if !(d.X >= 0 && d.X <= mapWidth && d.Y >= 0 && d.Y <= mapHeight && d.R > 0) {
					t.Errorf("%s, %d nodes: a dot at %v, %v", name, size, d.X, d.Y)
					break
				}
			}
			if v.Dots[0].Kind != "self" {
				t.Errorf("%s, %d nodes: this node is not on the map", name, size)
			}
		}
	}
}

func TestMapIsTheSameEveryTime(t *testing.T) {
	nodes := network(50)
	tones := groupTones(nodes)
	first := fmt.Sprintf("%+v", drawMap(nodes, tones, new(atlas).place(nodes, time.Now())))
	for range 5 {
		if again := fmt.Sprintf("%+v", drawMap(nodes, tones, new(atlas).place(nodes, time.Now()))); again != first {
			t.Fatal("the same nodes gave two maps")
		}
	}
}

func TestMembersAreSortedByRoundTrip(t *testing.T) {
	nodes := network(9)
	nodes[4].RTT = 0 // not measured
	self := nodes[0]
	rand.New(rand.NewPCG(3, 4)).Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
	got := nearestFirst(self, nodes)
	if len(got) != 9 || got[0].ID != self.ID || !got[0].Self || got[8].RTT != 0 {
		t.Fatalf("got %d nodes, first %s, last %v", len(got), got[0].Name, got[8].RTT)
	}
	if !slices.IsSortedFunc(got[1:8], func(a, b api.NodeInfo) int { return int(a.RTT - b.RTT) }) {
		t.Error("not sorted by round trip")
	}
}

func TestStatesThatAJobHasPassed(t *testing.T) {
	nodes := network(2)
	for _, c := range []struct {
		state   jobs.State
		came    string // how far before it ended
		files   int
		outputs int
		want    string
	}{
		{jobs.Pending, "", 0, 0, "now todo todo todo todo"},
		{jobs.Staging, "placed", 0, 0, "done now todo todo todo"},
		{jobs.Running, "started", 0, 0, "done done now todo todo"},
		{jobs.Collecting, "started", 0, 0, "done done done now todo"},
		{jobs.Completed, "started", 1, 1, "done done done done completed"},
		{jobs.Completed, "started", 0, 0, "done done done todo completed"}, // no -o
		{jobs.Failed, "started", 0, 1, "done done done todo failed"},       // -o, and nothing was there
		{jobs.Failed, "started", 0, 0, "done done done todo failed"},       // such as a command that is not found
		{jobs.Failed, "", 0, 0, "done todo todo todo failed"},
		{jobs.Cancelled, "placed", 0, 0, "done done todo todo cancelled"},
		{jobs.NodeFail, "started", 0, 0, "done done done todo node_fail"},
	} {
		st := sample("a2b3c@zaaaa", c.state, nodes, 1, time.Minute, "x")
		if c.came != "started" {
			st.Started = time.Time{}
		}
		if c.came == "" {
			st.Workers[0].Node = ""
		}
		st.Outputs = make([]jobs.RankOutput, c.outputs)
		for i := range st.Outputs {
			st.Outputs[i].Files = c.files
		}
		var tones []string
		for _, s := range steps(&st) {
			tones = append(tones, s.Tone)
		}
		if got := strings.Join(tones, " "); got != c.want {
			t.Errorf("%s: %s, want %s", c.state, got, c.want)
		}
	}
}

func TestResultsThatNeedTooMuchRoomAreTold(t *testing.T) {
	f := newFake(network(2))
	f.put(sample("aaaaa@zeb2a", jobs.Completed, f.nodes, 1, time.Hour, "first"))
	f.self.Results = &jobs.Results{Jobs: 5001, Forgotten: 3000, Bytes: 3 << 30, Limit: 2 << 30, Full: true}
	v, err := newPage(t, f).views.overview(t.Context(), listQuery{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"--keep-outputs", "kept for a day"} {
		if !strings.Contains(v.Jobs.Note, want) {
			t.Errorf("%q lacks %q", v.Jobs.Note, want)
		}
	}
}

// What counts of an array is its tasks, not the workers that ran them.
func TestRowOfAnArrayCountsTasks(t *testing.T) {
	f := newFake(network(2))
	st := sample("aaaaa@zeb2a", jobs.Completed, f.nodes, 2, time.Hour, "sweep")
	short := st.Summary()
	if row := describeJob(&short, time.Now()); row.Workers != "2/2 ended" {
		t.Errorf("a job of two workers: %q", row.Workers)
	}
	st.Array = &jobs.ArrayStatus{Tasks: 20, Done: 19, Failed: 1}
	short = st.Summary()
	if row := describeJob(&short, time.Now()); row.Workers != "19/20 tasks" {
		t.Errorf("an array: %q", row.Workers)
	}
}

// Files on their way are a bar beside their line, which is gone when they are there.
func TestFilesOnTheirWay(t *testing.T) {
	st := jobs.Status{State: jobs.Staging, Submitted: time.Now(), Moving: &jobs.Moving{What: jobs.MovingInputs, Done: 1 << 20, Total: 4 << 20, Nodes: 2}}
	if l := drawLine(&st, time.Now()); l.Still || l.Files != 250 {
		t.Errorf("a quarter is there: %+v", l)
	}
	st.Moving.Done, st.Moving.Total = 5, 0 // no more than all, whatever a node says
	if l := drawLine(&st, time.Now()); l.Files != 1000 {
		t.Errorf("more than all is there: %+v", l)
	}
	st.Moving = nil
	if l := drawLine(&st, time.Now()); !l.Still {
		t.Errorf("nothing is on its way: %+v", l)
	}
}

func TestAttemptText(t *testing.T) {
	c := &jobs.Checkpoint{Number: 9, Bytes: 2048, Holders: []vicinity.ID{"zaaaaaaa", "zbbbbbbb"}}
	for want, w := range map[string]jobs.WorkerStatus{
		"":          {Attempt: 1},
		"attempt 2": {Attempt: 2},
		"attempt 3, since its node died; from checkpoint 7":                      {Attempt: 3, Retried: "its node died", Resumed: 7},
		"checkpoint 9 (2 KiB) is at zaaaa, zbbbb":                                {Attempt: 1, Checkpoint: c},
		"attempt 2; from checkpoint 9; checkpoint 9 (2 KiB) is at lima\ufffd, b": {Attempt: 2, Resumed: 9, Checkpoint: c, Keepers: []string{"lima\x1b", "b"}},
	} {
		if got := attemptText(&jobs.Spec{}, &w); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	mapped := jobs.Spec{Strategy: "maheve", Placing: jobs.Placing{Graph: &mapping.Listed{Names: []string{"source"}}}}
	w := jobs.WorkerStatus{Attempt: 2, Node: "zbbbbb", Cluster: "lyon\x1b", Replaced: &jobs.Replaced{From: "zaaaaa", Same: true}}
	if got := attemptText(&mapped, &w); got != "cluster lyon\ufffd: the same cluster as zaaaa, which it left; attempt 2" {
		t.Errorf("where it is: %q", got)
	}
	if row := describeWorker(&mapped, &w); row.Rank != "0 (source)" {
		t.Errorf("it is called %q", row.Rank)
	}
}
