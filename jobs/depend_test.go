package jobs

import (
	"strings"
	"testing"
	"time"

	"zorilla/internal/codec"
)

var first, second = ID("aaaaa").At(testNode(1)), ID("bbbbb").At(testNode(1))

func TestJobStartsAfterOthers(t *testing.T) {
	for _, c := range []struct {
		kind   DependencyKind
		state  State
		starts bool
	}{
		{AfterOK, Completed, true}, {AfterOK, Failed, false}, {AfterOK, Cancelled, false},
		{AfterNotOK, Completed, false}, {AfterNotOK, Timeout, true}, {AfterNotOK, NodeFail, true},
		{AfterAny, Completed, true}, {AfterAny, Failed, true}, {AfterAny, "", false},
	} {
		t.Run(string(c.kind)+" "+string(c.state), func(t *testing.T) {
			talk := newTalk(t, Spec{Min: 1, Max: 1, After: []Dependency{{c.kind, first}}, GiveUp: codec.Duration(time.Minute)})
			if f := only[doFlood](talk); len(f) != 0 {
				t.Fatalf("looks for workers at once: %+v", f)
			}
			talk.after(time.Hour) // the time to give up has not begun
			talk.state(Pending, -1)
			if r := talk.p.status().Reason; r != "waits for job aaaaa@zaaba to end ("+string(c.kind)+")" {
				t.Errorf("the reason is %q", r)
			}
			talk.p.followed(talk.now, first, c.state)
			floods := only[doFlood](talk)
			if c.starts != (len(floods) == 1) {
				t.Fatalf("floods %+v", floods)
			}
			if c.starts {
				talk.after(2 * time.Minute)
				talk.state(Failed, CodeZorilla)
				return
			}
			talk.state(Failed, CodeZorilla)
			if r := talk.p.status().Reason; !strings.HasPrefix(r, "was not started: "+string(c.kind)+":aaaaa@zaaba: that job ") {
				t.Errorf("the reason is %q", r)
			}
		})
	}
}

func TestJobStartsAfterAllOfThem(t *testing.T) {
	talk := newTalk(t, Spec{Min: 1, Max: 1, After: []Dependency{{AfterOK, first}, {AfterAny, second}}})
	talk.p.followed(talk.now, second, Failed)
	if f := only[doFlood](talk); len(f) != 0 {
		t.Fatal("one of two is enough")
	}
	// After a restart the fulfilled one need not be known any more.
	replay := newTalk(t, Spec{Min: 1, Max: 1, After: []Dependency{{AfterOK, first}, {AfterAny, second}}})
	for _, ev := range talk.log {
		if !ev.sound(&replay.p.rec) && ev.Kind != evSubmitted {
			t.Fatalf("%+v is not sound", ev)
		}
		replay.p.rec.apply(ev)
	}
	if u := replay.p.unmet(); len(u) != 1 || u[0].Job != first {
		t.Fatalf("still waits for %v", u)
	}
	replay.step()
	replay.p.followed(replay.now, first, Completed)
	if f := only[doFlood](replay); len(f) != 1 {
		t.Fatalf("floods %+v", f)
	}
}

func TestDependenciesAreChecked(t *testing.T) {
	for _, d := range []Dependency{{"after", first}, {AfterOK, "aaaaa"}, {AfterOK, "../../x"}, {"", ""}} {
		s := Spec{Args: []string{"x"}, Min: 1, Max: 1, Slots: 1, After: []Dependency{d}}
		if s.Validate() == nil {
			t.Errorf("%+v is accepted", d)
		}
	}
	s := Spec{Args: []string{"x"}, Min: 1, Max: 1, Slots: 1, After: make([]Dependency, maxDependencies+1)}
	if err := s.Validate(); err == nil || !strings.Contains(err.Error(), "at most 64") {
		t.Errorf("too many: %v", err)
	}
	r := record{}
	if ev := (event{Kind: evFollowed, After: 1}); ev.sound(&r) {
		t.Error("an event for a dependency that there is not is sound")
	}
}
