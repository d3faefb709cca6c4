package record

import (
	"slices"
	"testing"

	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/work"
)

// A worker that had ended does not count among those that a job is to have; if its files are lost it
// runs again, but not beside as many others.
func TestLostFilesAreMadeAgainWithinTheSize(t *testing.T) {
	var r Record
	apply := func(ev Event) {
		ev.At = jobtest.Start
		r.Apply(ev)
	}
	ra := func(rank, attempt int) []jobs.RankAttempt { return []jobs.RankAttempt{{Rank: rank, Attempt: attempt}} }
	both := append(ra(0, 1), ra(1, 1)...)
	node := jobtest.Node(1)
	apply(Event{Kind: Submitted, Spec: &jobs.Spec{Args: []string{"prog"}, Min: 1, Max: 2, Slots: 1}})
	apply(Event{Kind: Granted, Node: node, Ranks: both})
	apply(Event{Kind: Started, Ranks: both})
	apply(Event{Kind: Exited, Ranks: ra(1, 1), Exit: &work.Exit{Cause: work.Exited}})
	apply(Event{Kind: Resized, Sizing: Sizing{Size: 1}})
	apply(Event{Kind: Lost, Ranks: both, Reason: "its node is gone"})
	want := func(ranks ...int) {
		t.Helper()
		if got := r.WantedRanks(9); !slices.Equal(got, ranks) {
			t.Errorf("wants %v, want %v", got, ranks)
		}
	}
	want(0)
	apply(Event{Kind: Granted, Node: node, Ranks: ra(0, 2)})
	want()
	apply(Event{Kind: Started, Ranks: ra(0, 2)})
	want()
	apply(Event{Kind: Exited, Ranks: ra(0, 2), Exit: &work.Exit{Cause: work.Exited}})
	want(1)
}

// A rank that the job was told to do without needs no other node when its worker has gone back:
// the job is done when the rest of it is.
func TestRankThatIsGivenBackAndReleased(t *testing.T) {
	var r Record
	apply := func(ev Event) {
		ev.At = jobtest.Start
		r.Apply(ev)
	}
	rank := func(ranks ...int) (list []jobs.RankAttempt) {
		for _, n := range ranks {
			list = append(list, jobs.RankAttempt{Rank: n, Attempt: 1})
		}
		return list
	}
	apply(Event{Kind: Submitted, Spec: &jobs.Spec{Args: []string{"prog"}, Min: 1, Max: 2, Slots: 1}})
	apply(Event{Kind: Granted, Node: jobtest.Node(1), Ranks: rank(0, 1)})
	apply(Event{Kind: Started, Ranks: rank(0)})
	apply(Event{Kind: Resized, Sizing: Sizing{Size: 1}, Ranks: rank(1)})
	apply(Event{Kind: Released, Ranks: rank(1)})
	if got := r.WantedRanks(9); len(got) != 0 {
		t.Errorf("wants %v", got)
	}
	apply(Event{Kind: Exited, Ranks: rank(0), Exit: &work.Exit{Cause: work.Exited}})
	if r.State != jobs.Collecting {
		t.Errorf("it is %s when its only rank has ended, want %s", r.State, jobs.Collecting)
	}
}
