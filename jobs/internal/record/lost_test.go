package record

import (
	"slices"
	"testing"

	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/vicinity"
)

// Where a rank was lost is known until it has started elsewhere, also if a node in between did not begin it.
func TestWhereRanksWereLost(t *testing.T) {
	var r Record
	apply := func(ev Event) {
		ev.At = jobtest.Start
		r.Apply(ev)
	}
	all := []jobs.RankAttempt{{Rank: 0, Attempt: 1}, {Rank: 1, Attempt: 1}, {Rank: 2, Attempt: 1}}
	apply(Event{Kind: Submitted, Spec: &jobs.Spec{Args: []string{"prog"}, Min: 1, Max: 4, Slots: 1}})
	for i, ra := range all {
		apply(Event{Kind: Granted, Node: jobtest.Node(i), Ranks: []jobs.RankAttempt{ra}})
	}
	want := func(when string, nodes ...vicinity.ID) {
		t.Helper()
		if got := r.Ranks.LostAt(r.WantedRanks(9)); !slices.Equal(got, nodes) {
			t.Errorf("%s: lost at %v, want %v", when, got, nodes)
		}
	}
	want("before the start")
	apply(Event{Kind: Started, Ranks: all})
	want("after it")
	apply(Event{Kind: Lost, Ranks: all[2:], Reason: "gone"})
	want("one is lost, and one that is new is wanted", jobtest.Node(2))
	apply(Event{Kind: Lost, Ranks: all[:1], Reason: "gone"})
	want("two", jobtest.Node(0), jobtest.Node(2))
	second := []jobs.RankAttempt{{Rank: 2, Attempt: 2}}
	apply(Event{Kind: Granted, Node: jobtest.Node(7), Ranks: second})
	want("one is granted again", jobtest.Node(0))
	apply(Event{Kind: Released, Ranks: second, Reason: "no"})
	want("that did not begin", jobtest.Node(0), jobtest.Node(2))
	second[0].Attempt = 3
	apply(Event{Kind: Granted, Node: jobtest.Node(8), Ranks: second})
	apply(Event{Kind: Started, Ranks: second})
	apply(Event{Kind: Retried, Ranks: second, Reason: "failed"})
	want("it has started and failed", jobtest.Node(0))
}
