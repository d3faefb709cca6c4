package primary

import (
	"slices"
	"strings"
	"testing"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/groups"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/record"
)

var first, second = jobs.ID("aaaaa").At(jobtest.Node(1)), jobs.ID("bbbbb").At(jobtest.Node(1))

func TestJobStartsAfterOthers(t *testing.T) {
	for _, c := range []struct {
		kind   jobs.DependencyKind
		state  jobs.State
		starts bool
	}{
		{jobs.AfterOK, jobs.Completed, true}, {jobs.AfterOK, jobs.Failed, false}, {jobs.AfterOK, jobs.Cancelled, false},
		{jobs.AfterNotOK, jobs.Completed, false}, {jobs.AfterNotOK, jobs.Timeout, true}, {jobs.AfterNotOK, jobs.NodeFail, true},
		{jobs.AfterAny, jobs.Completed, true}, {jobs.AfterAny, jobs.Failed, true}, {jobs.AfterAny, "", false},
	} {
		t.Run(string(c.kind)+" "+string(c.state), func(t *testing.T) {
			talk := newTalk(t, jobs.Spec{Min: 1, Max: 1, After: []jobs.Dependency{{Kind: c.kind, Job: first}}, GiveUp: codec.Duration(time.Minute)})
			if f := only[DoFlood](talk); len(f) != 0 {
				t.Fatalf("looks for workers at once: %+v", f)
			}
			talk.after(time.Hour) // the time to give up has not begun
			talk.state(jobs.Pending, -1)
			if r := talk.p.Status().Reason; r != "waits for job aaaaa@zaaba to end ("+string(c.kind)+")" {
				t.Errorf("the reason is %q", r)
			}
			talk.p.Followed(talk.now, first, c.state)
			floods := only[DoFlood](talk)
			if c.starts != (len(floods) == 1) {
				t.Fatalf("floods %+v", floods)
			}
			if c.starts {
				talk.after(2 * time.Minute)
				talk.state(jobs.Failed, jobs.CodeZorilla)
				return
			}
			talk.state(jobs.Failed, jobs.CodeZorilla)
			if r := talk.p.Status().Reason; !strings.HasPrefix(r, "was not started: "+string(c.kind)+":aaaaa@zaaba: that job ") {
				t.Errorf("the reason is %q", r)
			}
		})
	}
}

func TestJobStartsAfterAllOfThem(t *testing.T) {
	talk := newTalk(t, jobs.Spec{Min: 1, Max: 1, After: []jobs.Dependency{{Kind: jobs.AfterOK, Job: first}, {Kind: jobs.AfterAny, Job: second}}})
	talk.p.Followed(talk.now, second, jobs.Failed)
	if f := only[DoFlood](talk); len(f) != 0 {
		t.Fatal("one of two is enough")
	}
	// After a restart the fulfilled one need not be known any more.
	replay := newTalk(t, jobs.Spec{Min: 1, Max: 1, After: []jobs.Dependency{{Kind: jobs.AfterOK, Job: first}, {Kind: jobs.AfterAny, Job: second}}})
	for _, ev := range talk.log {
		if !ev.Sound(&replay.p.Rec) && ev.Kind != record.Submitted {
			t.Fatalf("%+v is not sound", ev)
		}
		replay.p.Rec.Apply(ev)
	}
	if u := replay.p.Unmet(); len(u) != 1 || u[0].Job != first {
		t.Fatalf("still waits for %v", u)
	}
	replay.step()
	replay.p.Followed(replay.now, first, jobs.Completed)
	if f := only[DoFlood](replay); len(f) != 1 {
		t.Fatalf("floods %+v", f)
	}
}

// A job that is to begin later looks for nobody before, also after a restart, and its time to give
// up begins then.
func TestJobBeginsLater(t *testing.T) {
	begin := newTalk(t, jobs.Spec{Min: 1, Max: 1}).now.Add(time.Hour)
	spec := jobs.Spec{Min: 1, Max: 1, Search: jobs.Search{Begin: begin}, GiveUp: codec.Duration(time.Minute)}
	talk := newTalk(t, spec)
	talk.after(time.Hour - time.Second)
	talk.state(jobs.Pending, -1)
	if r, want := talk.p.Status().Reason, "begins at "+begin.Local().Format(time.RFC3339); r != want {
		t.Errorf("the reason is %q, want %q", r, want)
	}
	if at := talk.p.Wake(); !at.Equal(begin) {
		t.Errorf("wakes at %v, want %v", at, begin)
	}
	if f := only[DoFlood](talk); len(f) != 0 {
		t.Fatalf("looks for workers before: %+v", f)
	}
	talk.after(time.Second)
	if f := only[DoFlood](talk); len(f) != 1 {
		t.Fatalf("floods %+v", f)
	}
	replay := newTalk(t, spec) // the clock of the machine went back meanwhile
	for _, ev := range talk.log {
		if !ev.Sound(&replay.p.Rec) && ev.Kind != record.Submitted {
			t.Fatalf("%+v is not sound", ev)
		}
		replay.p.Rec.Apply(ev)
	}
	if replay.p.Rec.Blocked() {
		t.Error("it waits again after a restart")
	}
	talk.after(2 * time.Minute)
	talk.state(jobs.Failed, jobs.CodeZorilla)
	if r := talk.p.Status().Reason; !strings.HasPrefix(r, "gave up after 1m0s: ") {
		t.Errorf("the reason is %q", r)
	}

	spec.After = []jobs.Dependency{{Kind: jobs.AfterAny, Job: first}}
	both := newTalk(t, spec)
	if r := both.p.Status().Reason; !strings.HasPrefix(r, "waits for job aaaaa@zaaba to end (afterany); begins at ") {
		t.Errorf("the reason is %q", r)
	}
	both.after(time.Hour)
	if f := only[DoFlood](both); len(f) != 0 {
		t.Fatalf("looks for workers before the other job has ended: %+v", f)
	}
	both.p.Followed(both.now, first, jobs.Failed)
	if f := only[DoFlood](both); len(f) != 1 {
		t.Fatalf("floods %+v", f)
	}
}

func TestDependenciesAreChecked(t *testing.T) {
	for _, d := range []jobs.Dependency{{Kind: "after", Job: first}, {Kind: jobs.AfterOK, Job: "aaaaa"}, {Kind: jobs.AfterOK, Job: "../../x"}, {Kind: "", Job: ""}} {
		s := jobs.Spec{Args: []string{"x"}, Min: 1, Max: 1, Slots: 1, After: []jobs.Dependency{d}}
		if s.Validate() == nil {
			t.Errorf("%+v is accepted", d)
		}
	}
	s := jobs.Spec{Args: []string{"x"}, Min: 1, Max: 1, Slots: 1, After: make([]jobs.Dependency, jobs.MaxDependencies+1)}
	if err := s.Validate(); err == nil || !strings.Contains(err.Error(), "at most 64") {
		t.Errorf("too many: %v", err)
	}
	r := record.Record{}
	if ev := (record.Event{Kind: record.Followed, After: 1}); ev.Sound(&r) {
		t.Error("an event for a dependency that there is not is sound")
	}
}

// Nodes that do not know what a job asks for must not offer.
func TestWhatIsNewIsAskedForWithAVersion(t *testing.T) {
	mounts := []string{"/data:ro"}
	for _, spec := range []jobs.Spec{{Access: jobs.Access{Mounts: mounts}}, {Access: jobs.Access{Net: jobs.NetNone}}} {
		spec.Min, spec.Max, spec.Where = 3, 3, "slots > 1"
		floods := only[DoFlood](newTalk(t, spec))
		if len(floods) != 1 || floods[0].Ad.Where != "version >= 3 && (slots > 1)" || !slices.Equal(floods[0].Ad.Mounts, spec.Mounts) || floods[0].Ad.Net != spec.Net {
			t.Fatalf("got %+v", floods)
		}
	}
	floods := only[DoFlood](newTalk(t, jobs.Spec{Min: 3, Max: 3, Where: "slots > 1", Access: jobs.Access{Mounts: mounts, Net: jobs.NetJob}}))
	if len(floods) != 1 || floods[0].Ad.Where != "version >= 4 && (slots > 1)" || floods[0].Ad.Network() != jobs.NetJob || floods[0].Ad.Net != "" {
		t.Fatalf("got %+v", floods)
	}
	floods = only[DoFlood](newTalk(t, jobs.Spec{Min: 3, Max: 3, Access: jobs.Access{Net: jobs.NetHost}}))
	if len(floods) != 1 || floods[0].Ad.Where != "" {
		t.Fatalf("got %+v", floods)
	}
}

// A job whose origin comes back with its clock set back by hours waits for no longer than it is to.
func TestWaitsAfterTheClockWasSetBack(t *testing.T) {
	spec := jobs.Spec{Min: 2, Max: 2, GiveUp: codec.Duration(time.Minute), Topology: groups.Topology{Groups: []groups.Group{
		{Name: "a", Min: 2, Max: 2, Clusters: 1, Prefer: codec.Duration(30 * time.Second)},
	}}}
	c := newTalk(t, spec).restarted(-5 * time.Hour)
	if ends, want := c.p.preferences.ends, c.now.Add(30*time.Second); !ends.Equal(want) {
		t.Errorf("it waits for one cluster until %v, want %v", ends, want)
	}
	if since := c.p.Explain(c.now).Since; since.After(c.now) {
		t.Errorf("it has waited since %v, and it is %v", since, c.now)
	}
	c.after(30 * time.Second)
	if !c.p.Demand().Groups.Split[0] {
		t.Error("it still waits for one cluster")
	}
	c.state(jobs.Pending, -1)
	c.after(30 * time.Second)
	c.state(jobs.Failed, jobs.CodeZorilla)
}
