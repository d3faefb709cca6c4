package record

import (
	"slices"

	"zorilla/jobs"
	"zorilla/jobs/groups"
	"zorilla/vicinity"
)

// How many ranks each group of a job has is chosen with its nodes. From the first grant of a choice on
// the job is one of fixed groups, until all of it is looked for again.

// Lineup is what a job wants and the ranks that it has for that.
type Lineup struct {
	Spec  jobs.Spec
	Ranks RankList   // by worker, Spec.Workers() of them
	wish  *jobs.Spec // of a job with groups, as submitted; nil = no sizes are chosen, Spec is what was submitted
	most  RankList   // ranks of the largest groups
	saves bool       // some have made checkpoints
}

// SizesOpen reports whether the sizes of a job's groups are to be chosen.
func (l *Lineup) SizesOpen() bool { return len(l.Spec.Groups) > 0 && l.wish == nil }

// AsSubmitted is the job as its user wants it.
func (l *Lineup) AsSubmitted() *jobs.Spec {
	if l.wish != nil {
		return l.wish
	}
	return &l.Spec
}

// Largest has the ranks of the largest groups, of which the first ones are those that there are.
func (l *Lineup) Largest() RankList {
	if l.most != nil {
		return l.most
	}
	return l.Ranks
}

// choose gives each group its size.
func (l *Lineup) choose(sizes []int) {
	if !l.SizesOpen() || len(sizes) == 0 {
		return
	}
	wish := l.Spec
	l.Spec = wish.Sized(sizes)
	l.wish, l.most, l.Ranks = &wish, l.Ranks, l.Ranks[:l.Spec.Workers()]
}

// reopen has the sizes of a job that has not started chosen anew if no rank has a node.
func (r *Record) reopen() {
	if r.wish == nil || !r.Started.IsZero() || slices.ContainsFunc(r.Ranks, func(k Rank) bool { return k.State != jobs.WorkerWanted }) {
		return
	}
	r.Lineup = Lineup{Spec: *r.wish, Ranks: r.most, saves: r.saves}
}

// sound reports whether sizes that came from disk are such that the groups of the job can have, and how many
// ranks it has with them.
func (l *Lineup) sound(ev *Event) (ranks int, ok bool) {
	open := l.SizesOpen()
	switch {
	case ev.Kind == Checkpointed: // perhaps when groups were larger
		return len(l.Largest()), len(ev.Sizes) == 0
	case len(ev.Sizes) == 0:
		return len(l.Ranks), !open || ev.Kind != Granted
	}
	list := l.AsSubmitted().Groups
	if len(ev.Sizes) != len(list) {
		return 0, false
	}
	for i, n := range ev.Sizes {
		if n < list[i].Min || n > list[i].Max {
			return 0, false
		}
		ranks += n
	}
	if !open { // it has been chosen, which is not done again
		ranks = len(l.Ranks)
	}
	return ranks, true
}

// GroupsWanted returns how many workers each group still looks for, at least and at most, and how many
// each node has of each.
func (r *Record) GroupsWanted() (least, most []int, has map[vicinity.ID][]int) {
	n := len(r.Spec.Groups)
	least, most, has = make([]int, n), make([]int, n), map[vicinity.ID][]int{}
	if r.SizesOpen() {
		for i, g := range r.Spec.Groups {
			least[i], most[i] = g.Min, g.Max
		}
		return least, most, has
	}
	for _, rank := range r.WantedRanks(r.Spec.Workers()) {
		g, _ := r.Spec.GroupOf(rank)
		least[g]++
	}
	for rank := range r.Ranks {
		switch k := &r.Ranks[rank]; k.State {
		case jobs.WorkerPreparing, jobs.WorkerReady, jobs.WorkerRunning:
			if has[k.Node] == nil {
				has[k.Node] = make([]int, n)
			}
			g, _ := r.Spec.GroupOf(rank)
			has[k.Node][g]++
		}
	}
	return least, least, has
}

// OfGroups lists some ranks, and those that were ever granted of the groups of these that start again as a whole.
func (l *Lineup) OfGroups(ranks []jobs.RankAttempt) (all []jobs.RankAttempt) {
	whole := map[int]bool{}
	for _, ra := range ranks {
		if g, _ := l.Spec.GroupOf(ra.Rank); l.Spec.Restarts(ra.Rank) == groups.RestartGroup {
			whole[g] = true
		}
	}
	for rank := range l.Ranks {
		ra := jobs.RankAttempt{Rank: rank, Attempt: l.Ranks[rank].Attempt}
		if g, _ := l.Spec.GroupOf(rank); ra.Attempt > 0 && (whole[g] || slices.Contains(ranks, ra)) {
			all = append(all, ra)
		}
	}
	return all
}

// Awaits reports whether a rank of a job that has started waits for others of its group, which starts
// again as a whole.
func (l *Lineup) Awaits(rank int) bool {
	if l.Spec.Restarts(rank) != groups.RestartGroup {
		return false
	}
	group, _ := l.Spec.GroupOf(rank)
	for i := range l.Ranks {
		if g, _ := l.Spec.GroupOf(i); g == group {
			switch l.Ranks[i].State {
			case jobs.WorkerWanted, jobs.WorkerPreparing, jobs.WorkerLost:
				return true
			}
		}
	}
	return false
}
