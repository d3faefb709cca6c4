package record

import (
	"reflect"
	"testing"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/work"
)

// survives has each field of a Rank, and whether it is the rank's, and not its attempt's.
var survives = map[string]bool{
	"Attempt": true, "Retries": true, "Retried": true, "GivenBack": true, "Saved": true, "Former": true, "Left": true,
	"Node": false, "Name": false, "RTT": false, "State": false, "Exit": false, "Wrote": false, "Output": false, "Collected": false, "Port": false, "Resumed": false,
	"Replaced": false,
}

// fullRank is one of which everything is known.
func fullRank() Rank {
	return Rank{Attempt: 3, Node: jobtest.Node(1), Name: "first", RTT: time.Second, State: jobs.WorkerReady, Exit: &work.Exit{},
		Wrote: &wire.Written{}, Output: &jobs.RankOutput{}, Collected: true, Port: 4000, Retries: 2, Retried: "it failed", GivenBack: true,
		Saved: Saved{Last: 7}, Resumed: 6, Former: jobtest.Node(5), Left: jobtest.Node(6), Replaced: &jobs.Replaced{From: jobtest.Node(4)}}
}

func TestWhatIsLeftOfAnAttempt(t *testing.T) {
	full := fullRank()
	before, after := reflect.ValueOf(full), reflect.ValueOf(full.fresh())
	for i := range before.NumField() {
		name := before.Type().Field(i).Name
		if before.Field(i).IsZero() {
			t.Errorf("%s is not filled in", name)
		}
		stays, known := survives[name]
		if !known {
			t.Errorf("%s: is it the rank's, or its attempt's?", name)
		}
		if name == "State" {
			continue
		}
		if same := reflect.DeepEqual(after.Field(i).Interface(), before.Field(i).Interface()); same != stays || !stays && !after.Field(i).IsZero() {
			t.Errorf("%s is %v, was %v", name, after.Field(i), before.Field(i))
		}
	}
	if got := full.fresh().State; got != jobs.WorkerWanted {
		t.Errorf("it is %s", got)
	}
}

// Each event that ends an attempt keeps what is the rank's, but for what the event itself says.
func TestEventsKeepWhatIsTheRanks(t *testing.T) {
	for _, c := range []struct {
		event Event
		want  func(k *Rank) // changes what is left
	}{
		{event: Event{Kind: Granted, Node: jobtest.Node(2), Name: "second", RTT: codec.Duration(time.Minute),
			Placed: Placed{Replaced: []jobs.Replaced{{From: jobtest.Node(5), Same: true}}}}, want: func(k *Rank) {
			k.Attempt, k.Node, k.Name, k.RTT, k.State, k.GivenBack = 4, jobtest.Node(2), "second", time.Minute, jobs.WorkerPreparing, false
			k.Replaced = &jobs.Replaced{From: jobtest.Node(5), Same: true}
		}},
		{event: Event{Kind: Released, Reason: "it went"}, want: func(k *Rank) { k.Retried = "it went" }},
		{event: Event{Kind: Retried, Reason: "it broke"}, want: func(k *Rank) { k.Retries, k.Retried, k.GivenBack = 3, "it broke", false }},
		{event: Event{Kind: Declined, Reason: "no program"}, want: func(k *Rank) { k.Retried, k.GivenBack = "no program", false }},
		{event: Event{Kind: Resized, Sizing: Sizing{Size: 1}, Reason: "fewer"}, want: func(k *Rank) { k.Retried, k.Left = "fewer", "" }},
		{event: Event{Kind: Moved, Reason: "moved"}, want: func(k *Rank) { k.Retried, k.Former, k.Left = "moved", jobtest.Node(1), jobtest.Node(1) }},
		{event: Event{Kind: Moved, Node: jobtest.Node(3), Reason: "moved"}, want: func(k *Rank) { k.Retried, k.Former, k.Left = "moved", jobtest.Node(3), jobtest.Node(1) }},
		{event: Event{Kind: Lost, Reason: "its node is gone"}, want: func(*Rank) {}},
	} {
		var r Record
		r.Apply(Event{Kind: Submitted, At: jobtest.Start, Spec: &jobs.Spec{Args: []string{"prog"}, Min: 1, Max: 2, Slots: 1}})
		r.Ranks[1] = fullRank()
		c.event.At, c.event.Ranks = jobtest.Start, []jobs.RankAttempt{{Rank: 1, Attempt: 3}}
		if c.event.Kind == Granted {
			c.event.Ranks[0].Attempt = 4
		}
		r.Apply(c.event)
		want := Rank{Attempt: 3, State: jobs.WorkerWanted, Retries: 2, Retried: "it failed", GivenBack: true, Saved: Saved{Last: 7}, Former: jobtest.Node(5), Left: jobtest.Node(6)}
		c.want(&want)
		if !reflect.DeepEqual(r.Ranks[1], want) {
			t.Errorf("%s: %+v, want %+v", c.event.Kind, r.Ranks[1], want)
		}
	}
}
