package record

import (
	"slices"
	"testing"

	"zorilla/jobs"
	"zorilla/jobs/groups"
	"zorilla/jobs/internal/jobtest"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// saved is a checkpoint that so many nodes keep.
func saved(number int, epoch int64, holders int) jobs.Checkpoint {
	c := jobs.Checkpoint{Number: number, Epoch: epoch, Dir: "state", Manifest: transfer.Hash{1}, Files: 1, Bytes: 8}
	for i := range holders {
		c.Holders = append(c.Holders, jobtest.Node(i+1))
	}
	return c
}

// recordOf is a job of which each rank has had an attempt.
func recordOf(spec jobs.Spec) *Record {
	var r Record
	spec.Args, spec.Slots = []string{"prog"}, 1
	r.Apply(Event{Kind: Submitted, At: jobtest.Start, Spec: &spec})
	var all []jobs.RankAttempt
	for i := range r.Ranks {
		all = append(all, jobs.RankAttempt{Rank: i, Attempt: 1})
	}
	r.Apply(Event{Kind: Granted, At: jobtest.Start, Node: vicinity.ID(jobtest.Node(1)), Ranks: all})
	return &r
}

// make has a rank make a checkpoint.
func (r *Record) make(t *testing.T, rank int, c jobs.Checkpoint) {
	t.Helper()
	ev := SavedNow(&r.Lineup, jobtest.Start, rank, Keeping(&r.Lineup, rank, c))
	if !ev.Sound(r) {
		t.Errorf("%+v is not sound", ev)
	}
	r.Apply(ev)
}

func numbers(list []jobs.Checkpoint) (n []int) {
	for _, c := range list {
		n = append(n, c.Number)
	}
	return n
}

func TestARankAloneGoesOnFromItsNewestCheckpoint(t *testing.T) {
	r := recordOf(jobs.Spec{Min: 1, Max: 2})
	if c := StartsOf(&r.Lineup, nil).Of(0); c != nil {
		t.Errorf("without a checkpoint it goes on from %+v", c)
	}
	for _, step := range []struct {
		made jobs.Checkpoint
		keep []int
	}{
		{saved(1, 1, 3), []int{1}}, {saved(2, 2, 2), []int{2}},
		{saved(3, 3, 1), []int{2, 3}}, // its own node alone has it
		{saved(4, 4, 1), []int{2, 3, 4}}, {saved(6, 9, 2), []int{6}},
	} {
		r.make(t, 0, step.made)
		if got := numbers(r.Ranks[0].Checkpoints); !slices.Equal(got, step.keep) || r.Ranks[0].Last != step.made.Number {
			t.Errorf("after %d it keeps %v, the last is %d, want %v", step.made.Number, got, r.Ranks[0].Last, step.keep)
		}
		if c := StartsOf(&r.Lineup, nil).Of(0); c == nil || c.Number != step.made.Number {
			t.Errorf("after %d it goes on from %+v", step.made.Number, c)
		}
		if _, changed := StartsOf(&r.Lineup, nil).Outdated(0, true); changed {
			t.Errorf("after %d something is outdated", step.made.Number)
		}
	}
	if c := StartsOf(&r.Lineup, nil).Of(1); c != nil {
		t.Errorf("the other rank goes on from %+v", c)
	}
	// None is left: it begins anew, and numbers go on.
	r.Apply(SavedNow(&r.Lineup, jobtest.Start, 0, nil))
	if c := StartsOf(&r.Lineup, nil).Of(0); c != nil || r.Ranks[0].Last != 6 {
		t.Errorf("it goes on from %+v, the last is %d", c, r.Ranks[0].Last)
	}
}

func TestRanksThatStartTogetherGoOnFromOneEpoch(t *testing.T) {
	r := recordOf(jobs.Spec{Min: 3, Max: 3})
	for rank := range 3 {
		r.make(t, rank, saved(1, 10, 3))
	}
	r.make(t, 0, saved(2, 20, 3))
	r.make(t, 1, saved(2, 20, 3))
	r.make(t, 0, saved(3, 30, 3))
	if got := numbers(r.Ranks[0].Checkpoints); !slices.Equal(got, []int{1, 2, 3}) {
		t.Errorf("rank 0 keeps %v", got)
	}
	for rank := range 3 {
		if c := StartsOf(&r.Lineup, nil).Of(rank); c == nil || c.Epoch != 10 {
			t.Errorf("rank %d goes on from %+v", rank, c)
		}
	}
	r.make(t, 2, saved(2, 20, 3))
	if got := numbers(r.Ranks[2].Checkpoints); !slices.Equal(got, []int{2}) {
		t.Errorf("rank 2 keeps %v", got)
	}
	// They start again from 20: what rank 0 made later is made again.
	for rank := range 3 {
		stay, changed := StartsOf(&r.Lineup, nil).Outdated(rank, true)
		if changed != (rank == 0) {
			t.Errorf("rank %d: outdated: %v", rank, changed)
		}
		if rank == 0 && !slices.Equal(numbers(stay), []int{1, 2}) {
			t.Errorf("rank 0 is left with %v", numbers(stay))
		}
	}
	r.Apply(SavedNow(&r.Lineup, jobtest.Start, 1, nil))
	for rank := range 3 {
		if c := StartsOf(&r.Lineup, nil).Of(rank); c != nil {
			t.Errorf("one has none left, and rank %d goes on from %+v", rank, c)
		}
	}
	if stay, changed := StartsOf(&r.Lineup, nil).Outdated(2, true); !changed || len(stay) > 0 {
		t.Errorf("one has none left, and rank 2 keeps %v (%v)", stay, changed)
	}
}

func TestRanksOfAGroupGoOnTogether(t *testing.T) {
	r := recordOf(jobs.Spec{Min: 3, Max: 3, Topology: groups.Topology{Groups: []groups.Group{
		{Name: "a", Min: 2, Max: 2, Restart: groups.RestartGroup}, {Name: "b", Min: 1, Max: 1, Restart: groups.RestartRank}}}})
	r.make(t, 0, saved(1, 5, 2))
	r.make(t, 2, saved(1, 7, 2))
	if a, b := StartsOf(&r.Lineup, nil).Of(0), StartsOf(&r.Lineup, nil).Of(2); a != nil || b == nil {
		t.Errorf("rank 0 goes on from %+v, rank 2 from %+v", a, b)
	}
	r.make(t, 1, saved(1, 5, 2))
	if a := StartsOf(&r.Lineup, nil).Of(0); a == nil || a.Epoch != 5 {
		t.Errorf("rank 0 goes on from %+v", a)
	}
}

// Ranks that can start again without the others have epochs of their own: they keep only their newest checkpoint.
func TestRanksThatStartAloneDoNotHoldBackTheJob(t *testing.T) {
	r := recordOf(jobs.Spec{Min: 3, Max: 3, Topology: groups.Topology{Groups: []groups.Group{
		{Name: "a", Min: 2, Max: 2}, {Name: "b", Min: 1, Max: 1, Restart: groups.RestartRank}}}})
	r.make(t, 0, saved(1, 5, 2))
	r.make(t, 1, saved(1, 5, 2))
	r.make(t, 2, saved(1, 7, 2))
	for rank, epoch := range []int64{5, 5, 7} {
		if c := StartsOf(&r.Lineup, nil).Of(rank); c == nil || c.Epoch != epoch {
			t.Errorf("rank %d goes on from %+v", rank, c)
		}
	}
}

// When all of a job starts again that has groups of a range of sizes, rank numbers may be those of other groups.
func TestCheckpointsGoWithTheSizesOfGroups(t *testing.T) {
	r := recordOf(jobs.Spec{Min: 3, Max: 4, Topology: groups.Topology{Groups: []groups.Group{
		{Name: "a", Min: 1, Max: 2, Restart: groups.RestartRank}, {Name: "b", Min: 2, Max: 2, Restart: groups.RestartGroup}}}})
	r.Apply(Event{Kind: Granted, At: jobtest.Start, Node: jobtest.Node(1), Sizing: Sizing{Sizes: []int{1, 2}},
		Ranks: []jobs.RankAttempt{{Rank: 0, Attempt: 2}, {Rank: 1, Attempt: 2}, {Rank: 2, Attempt: 2}}})
	for rank := range 3 {
		r.make(t, rank, saved(1, 5, 2))
		if _, changed := StartsOf(&r.Lineup, nil).Outdated(rank, false); changed && rank != 1 { // the other of its group has none yet
			t.Errorf("its group starts again, and rank %d loses its checkpoint", rank)
		}
		r.make(t, rank, saved(2, 5, 2))
	}
	for rank := range 3 {
		if stay, changed := StartsOf(&r.Lineup, nil).Outdated(rank, true); !changed || len(stay) > 0 {
			t.Errorf("rank %d keeps %v", rank, stay)
		}
	}
}

// The journal has the newest checkpoint of each rank under a key of its own, which is read when all else is: also those of
// ranks that there are not now, since groups are smaller. Their numbers are not used again.
func TestCheckpointsOfRanksThatThereAreNotNow(t *testing.T) {
	r := newTold(t, islands())
	r.add(granted(1, []int{2, 3}, ra(0, 1), ra(1, 1), ra(2, 1), ra(3, 1), ra(4, 1)))
	r.rec.make(t, 4, saved(7, 5, 2))
	later := SavedNow(&r.rec.Lineup, jobtest.Start, 4, nil)
	r = newTold(t, islands())
	r.add(granted(1, []int{1, 2}, ra(0, 2), ra(1, 2), ra(2, 2)))
	r.add(later)
	if got := r.rec.Largest()[4].Last; got != 7 || len(r.rec.Ranks) != 3 {
		t.Errorf("the last number is %d, of %d ranks", got, len(r.rec.Ranks))
	}
	for _, rank := range []int{-1, 6} {
		if later.Ranks = []jobs.RankAttempt{{Rank: rank, Attempt: 1}}; later.Sound(&r.rec) {
			t.Errorf("a checkpoint of rank %d is sound", rank)
		}
	}
}

func TestCheckpointsOfARankAreBounded(t *testing.T) {
	r := recordOf(jobs.Spec{Min: 2, Max: 2})
	for n := range 2 * jobs.MaxCheckpoints {
		r.make(t, 0, saved(n+1, int64(n+1), 3))
	}
	if got := numbers(r.Ranks[0].Checkpoints); !slices.Equal(got, []int{1, 2, 3, 4, 5, 6, 7, 16}) || r.Ranks[0].Last != 16 {
		t.Errorf("it keeps %v, the last is %d", got, r.Ranks[0].Last)
	}
	for n := range 5 { // the other one comes after it
		r.make(t, 1, saved(n+1, int64(n+1), 3))
		r.make(t, 0, saved(n+17, int64(n+17), 3))
		if c := StartsOf(&r.Lineup, nil).Of(0); c == nil || c.Number != n+1 {
			t.Errorf("both have %d, and it goes on from %+v", n+1, c)
		}
	}
	if got := numbers(r.Ranks[0].Checkpoints); !slices.Equal(got, []int{5, 6, 7, 17, 18, 19, 20, 21}) {
		t.Errorf("it keeps %v", got)
	}
	bad := SavedNow(&r.Lineup, jobtest.Start, 0, make([]jobs.Checkpoint, 1))
	if bad.Sound(r) {
		t.Error("an empty checkpoint is sound")
	}
}

// Of ten thousand ranks that start together each begins with what all have: that is looked for once, not by each of them.
func TestRanksThatStartTogetherAreLookedAtOnce(t *testing.T) {
	const ranks = 1000
	r := recordOf(jobs.Spec{Min: ranks, Max: ranks})
	for rank := range ranks {
		r.Apply(SavedNow(&r.Lineup, jobtest.Start, rank, []jobs.Checkpoint{saved(1, 10, 1), saved(2, 20, 1)}))
	}
	if n := testing.AllocsPerRun(1, func() {
		for rank, starts := 0, StartsOf(&r.Lineup, nil); rank < ranks; rank++ {
			if c := starts.Of(rank); c == nil || c.Epoch != 20 {
				t.Fatalf("rank %d begins with %+v", rank, c)
			}
			if _, changed := starts.Outdated(rank, true); changed {
				t.Fatalf("of rank %d something is outdated", rank)
			}
		}
	}); n > 2*ranks+100 { // a list of what stays for each, and of the ranks once
		t.Errorf("%v objects for %d ranks", n, ranks)
	}
}

func BenchmarkStarts(b *testing.B) {
	const ranks = 10_000
	r := recordOf(jobs.Spec{Min: ranks, Max: ranks})
	for rank := range ranks {
		r.Apply(SavedNow(&r.Lineup, jobtest.Start, rank, []jobs.Checkpoint{saved(1, 10, 1), saved(2, 20, 1)}))
	}
	for b.Loop() {
		for rank, starts := 0, StartsOf(&r.Lineup, nil); rank < ranks; rank++ {
			starts.Of(rank)
		}
	}
}
