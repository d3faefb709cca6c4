package record

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/groups"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/wire/wiretest"
	"zorilla/jobs/work"
	"zorilla/vicinity"
)

// islands is a job of two groups, whose sizes are to be chosen; the second starts again as a whole.
func islands() jobs.Spec {
	return jobs.Spec{Args: []string{"prog"}, Min: 3, Max: 6, Slots: 1, Topology: groups.Topology{Groups: []groups.Group{
		{Name: "a", Min: 1, Max: 3, Restart: groups.RestartRank}, {Name: "b", Min: 2, Max: 3, Restart: groups.RestartGroup},
	}}}
}

// told is a record and the events that it is of.
type told struct {
	t   *testing.T
	rec Record
	log []Event
}

// add applies an event as it comes from the journal.
func (r *told) add(ev Event) {
	r.t.Helper()
	ev.At = jobtest.Start.Add(time.Duration(len(r.log)) * time.Second)
	var back Event
	if err := codec.Unmarshal(codec.MustMarshal(ev), &back); err != nil {
		r.t.Fatal(err)
	}
	if !back.Sound(&r.rec) {
		r.t.Fatalf("%s %v is not sound", ev.Kind, ev.Ranks)
	}
	r.rec.Apply(back)
	r.log = append(r.log, back)
}

// granted is an event of it.
func granted(node int, sizes []int, ranks ...jobs.RankAttempt) Event {
	return Event{Kind: Granted, Node: jobtest.Node(node), Name: "n", Ranks: ranks, Sizing: Sizing{Sizes: sizes}}
}

func newTold(t *testing.T, spec jobs.Spec) *told {
	r := &told{t: t, rec: Record{ID: wiretest.Job}}
	r.add(Event{Kind: Submitted, Spec: &spec})
	return r
}

// sizes are those of the groups, as the record has them.
func (r *told) sizes() (list []int) {
	for _, g := range r.rec.Spec.Groups {
		list = append(list, g.Max)
	}
	return list
}

// want compares the sizes, and whether they are chosen.
func (r *told) want(open bool, sizes ...int) {
	r.t.Helper()
	n := 0
	for _, size := range sizes {
		n += size
	}
	if r.rec.SizesOpen() != open || !slices.Equal(r.sizes(), sizes) || len(r.rec.Ranks) != n || r.rec.Spec.Max != n || !open && r.rec.Spec.Min != n {
		r.t.Fatalf("after %d events there are %d ranks of sizes %v, -n %d..%d, to be chosen: %v; want %v, %v",
			len(r.log), len(r.rec.Ranks), r.sizes(), r.rec.Spec.Min, r.rec.Spec.Max, r.rec.SizesOpen(), sizes, open)
	}
}

var ra = wiretest.RA

// The sizes are those of the first grant until all of the job is looked for again.
func TestSizesAreChosenWithNodes(t *testing.T) {
	spec := islands()
	sum := spec.Sum()
	r := newTold(t, islands())
	r.want(true, 3, 3)
	if r.rec.Threshold(6) != 3 || r.rec.Wanted() != 6 {
		t.Errorf("%d of %d are enough", r.rec.Threshold(6), r.rec.Wanted())
	}
	r.add(granted(1, []int{1, 2}, ra(0, 1), ra(1, 1)))
	r.want(false, 1, 2)
	r.add(granted(2, []int{1, 2}, ra(2, 1)))
	r.want(false, 1, 2)
	if r.rec.State != jobs.Staging || r.rec.Wanted() != 0 || r.rec.AsSubmitted().Sum() != sum {
		t.Errorf("it is %s, wants %d, its sum has changed: %v", r.rec.State, r.rec.Wanted(), r.rec.AsSubmitted().Sum() != sum)
	}
	r.add(Event{Kind: Released, Ranks: []jobs.RankAttempt{ra(0, 1)}, Reason: "one"})
	r.want(false, 1, 2) // others are there
	r.add(Event{Kind: Released, Ranks: []jobs.RankAttempt{ra(1, 1), ra(2, 1)}, Reason: "all"})
	r.want(true, 3, 3)
	r.add(granted(3, []int{3, 3}, ra(0, 2), ra(1, 2), ra(2, 2), ra(3, 1), ra(4, 1), ra(5, 1)))
	r.want(false, 3, 3)
	var all []jobs.RankAttempt
	for rank, k := range r.rec.Ranks {
		all = append(all, ra(rank, k.Attempt))
	}
	r.add(Event{Kind: Started, Ranks: all})
	r.add(Event{Kind: Lost, Ranks: all[:1], Reason: "gone"})
	r.want(false, 3, 3) // a job that has started keeps its size
	r.add(Event{Kind: Retried, Ranks: all, Reason: "again"})
	r.want(true, 3, 3)
	if !r.rec.Started.IsZero() || r.rec.Retries != 1 || r.rec.State != jobs.Pending {
		t.Errorf("all of it starts again, but it is %s since %v, %d retries", r.rec.State, r.rec.Started, r.rec.Retries)
	}
	r.add(granted(1, []int{2, 2}, ra(0, 3), ra(1, 3), ra(2, 3), ra(3, 2)))
	r.want(false, 2, 2)
	r.add(Event{Kind: Ended, State: jobs.Cancelled})
	r.want(false, 2, 2) // what it was stays to be seen
	if r.rec.AsSubmitted().Sum() != sum {
		t.Error("its sum has changed")
	}

	once, twice := Record{ID: wiretest.Job}, Record{ID: wiretest.Job}
	for i, ev := range r.log {
		once.Apply(ev)
		twice.Apply(ev)
		if twice.Apply(ev); once.State != twice.State || !reflect.DeepEqual(once.Spec, twice.Spec) || !reflect.DeepEqual(once.Lineup.wish, twice.Lineup.wish) || !sameRanks(once.Ranks, twice.Ranks) {
			t.Fatalf("event %d (%s) twice makes %+v, once %+v", i, ev.Kind, twice.Ranks, once.Ranks)
		}
	}
	if !reflect.DeepEqual(once.Spec, r.rec.Spec) || !sameRanks(once.Ranks, r.rec.Ranks) {
		t.Errorf("replayed there are %+v, want %+v", once.Ranks, r.rec.Ranks)
	}
}

// sameRanks compares ranks but for the counts of retries.
func sameRanks(a, b RankList) bool {
	return slices.EqualFunc(a, b, func(x, y Rank) bool { return x.Attempt == y.Attempt && x.State == y.State && x.Node == y.Node })
}

func TestSizesThatCannotBe(t *testing.T) {
	one := []jobs.RankAttempt{ra(0, 1)}
	for name, c := range map[string]struct {
		sizes []int
		ranks []jobs.RankAttempt
		sound bool
	}{
		"as they may be": {[]int{1, 2}, one, true}, "the largest": {[]int{3, 3}, []jobs.RankAttempt{ra(5, 1)}, true},
		"too few": {[]int{1, 1}, one, false}, "too many": {[]int{4, 2}, one, false}, "negative": {[]int{-1, 2}, one, false},
		"of one group": {[]int{3}, one, false}, "of another one": {[]int{1, 2, 1}, one, false}, "none": {nil, one, false},
		"a rank beyond them": {[]int{1, 2}, []jobs.RankAttempt{ra(3, 1)}, false},
	} {
		r := newTold(t, islands())
		ev := granted(1, c.sizes, c.ranks...)
		if ev.Sound(&r.rec) != c.sound {
			t.Errorf("%s: sound is %v", name, !c.sound)
		}
	}
	r := newTold(t, islands())
	r.add(granted(1, []int{1, 2}, one...))
	for _, sizes := range [][]int{{1, 2}, nil} { // said again, or not
		if ev := granted(2, sizes, ra(1, 1)); !ev.Sound(&r.rec) {
			t.Errorf("sizes %v are not sound when they are chosen", sizes)
		}
	}
	ev := granted(2, []int{1, 2}, ra(3, 1))
	if ev.Sound(&r.rec) {
		t.Error("a rank beyond the sizes is sound")
	}
	plain := newTold(t, jobs.Spec{Args: []string{"prog"}, Min: 2, Max: 2, Slots: 1})
	if ev := granted(1, []int{2}, one...); ev.Sound(&plain.rec) {
		t.Error("a job without groups has sizes")
	}
}

// running is a job of sizes 2 and 2 that runs, the groups at nodes 1 and 2 by turns.
func running(t *testing.T) *told {
	r := newTold(t, islands())
	r.add(granted(1, []int{2, 2}, ra(0, 1), ra(2, 1)))
	r.add(granted(2, []int{2, 2}, ra(1, 1), ra(3, 1)))
	r.add(Event{Kind: Started, Ranks: []jobs.RankAttempt{ra(0, 1), ra(1, 1), ra(2, 1), ra(3, 1)}})
	return r
}

func TestWhatGroupsWant(t *testing.T) {
	check := func(r *told, least, most []int, has map[vicinity.ID][]int) {
		t.Helper()
		l, m, h := r.rec.GroupsWanted()
		if !slices.Equal(l, least) || !slices.Equal(m, most) || !reflect.DeepEqual(h, has) {
			t.Errorf("after %d events the groups want %v to %v and have %v; want %v to %v, %v", len(r.log), l, m, h, least, most, has)
		}
	}
	check(newTold(t, islands()), []int{1, 2}, []int{3, 3}, map[vicinity.ID][]int{})
	r := running(t)
	one, two := jobtest.Node(1), jobtest.Node(2)
	check(r, []int{0, 0}, []int{0, 0}, map[vicinity.ID][]int{one: {1, 1}, two: {1, 1}})
	r.add(Event{Kind: Lost, Ranks: []jobs.RankAttempt{ra(0, 1)}, Reason: "gone"})
	check(r, []int{1, 0}, []int{1, 0}, map[vicinity.ID][]int{one: {0, 1}, two: {1, 1}})
	r.add(Event{Kind: Declined, Ranks: []jobs.RankAttempt{ra(2, 1), ra(3, 1)}, Reason: "again"})
	check(r, []int{1, 2}, []int{1, 2}, map[vicinity.ID][]int{two: {1, 0}})
	r.add(granted(3, nil, ra(0, 2), ra(2, 2)))
	check(r, []int{0, 1}, []int{0, 1}, map[vicinity.ID][]int{two: {1, 0}, jobtest.Node(3): {1, 1}})
	r.add(Event{Kind: Exited, Ranks: []jobs.RankAttempt{ra(1, 1)}, Exit: &work.Exit{Cause: work.Exited}})
	check(r, []int{0, 1}, []int{0, 1}, map[vicinity.ID][]int{jobtest.Node(3): {1, 1}})
}

// A job whose groups start again one by one keeps its sizes, even if no rank has a node for a while.
func TestSizesOfAJobThatRunsAreKept(t *testing.T) {
	r := running(t)
	r.add(Event{Kind: Lost, Ranks: []jobs.RankAttempt{ra(0, 1), ra(1, 1), ra(2, 1), ra(3, 1)}, Reason: "gone"})
	r.add(Event{Kind: Declined, Ranks: []jobs.RankAttempt{ra(2, 1), ra(3, 1)}, Reason: "again"})
	r.add(Event{Kind: Declined, Ranks: []jobs.RankAttempt{ra(0, 1), ra(1, 1)}, Reason: "again"})
	r.want(false, 2, 2)
	if r.rec.Started.IsZero() || r.rec.State != jobs.Running || r.rec.Threshold(4) != 4 {
		t.Errorf("it is %s, and %d ranks are enough", r.rec.State, r.rec.Threshold(4))
	}
}

// A group that starts again as a whole is all of its ranks; of others only those that are named.
func TestGroupsOfRanks(t *testing.T) {
	r := running(t)
	for _, c := range []struct{ ranks, want []jobs.RankAttempt }{
		{[]jobs.RankAttempt{ra(3, 1)}, []jobs.RankAttempt{ra(2, 1), ra(3, 1)}},
		{[]jobs.RankAttempt{ra(0, 1)}, []jobs.RankAttempt{ra(0, 1)}},
		{[]jobs.RankAttempt{ra(1, 1), ra(2, 1)}, []jobs.RankAttempt{ra(1, 1), ra(2, 1), ra(3, 1)}},
		{nil, nil},
	} {
		if got := r.rec.OfGroups(c.ranks); !slices.Equal(got, c.want) {
			t.Errorf("of %v there are %v, want %v", c.ranks, got, c.want)
		}
	}
}

func TestRankAwaitsItsGroup(t *testing.T) {
	r := running(t)
	for i := range r.rec.Ranks {
		if r.rec.Awaits(i) {
			t.Errorf("rank %d awaits others that run", i)
		}
	}
	for _, state := range []jobs.WorkerState{jobs.WorkerLost, jobs.WorkerWanted, jobs.WorkerPreparing, jobs.WorkerReady, jobs.WorkerRunning, jobs.WorkerEnded} {
		r.rec.Ranks[3].State = state
		want := state == jobs.WorkerLost || state == jobs.WorkerWanted || state == jobs.WorkerPreparing
		if got := r.rec.Awaits(2); got != want {
			t.Errorf("a rank beside one that is %s awaits it: %v", state, got)
		}
		if r.rec.Awaits(0) {
			t.Errorf("a rank of another group awaits one that is %s", state)
		}
	}
	r.rec.Ranks[1].State = jobs.WorkerLost
	if r.rec.Awaits(0) {
		t.Error("a rank that starts again by itself awaits another one")
	}
}
