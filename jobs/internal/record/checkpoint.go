package record

import (
	"slices"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/groups"
)

// Saved is the checkpoints of a rank that are needed, whatever attempt made them.
type Saved struct {
	Checkpoints []jobs.Checkpoint `json:"checkpoints,omitempty"` // by number, the newest last
	Last        int               `json:"last,omitempty"`        // the largest number so far
}

func (s *Saved) sound() bool {
	return len(s.Checkpoints) <= jobs.MaxCheckpoints && s.Last >= 0 &&
		!slices.ContainsFunc(s.Checkpoints, func(c jobs.Checkpoint) bool { return c.Check() != nil || c.Number > s.Last })
}

// SavedNow is what is needed of a rank's checkpoints.
func SavedNow(l *Lineup, at time.Time, rank int, list []jobs.Checkpoint) Event {
	k := &l.Ranks[rank]
	s := Saved{Checkpoints: list, Last: k.Last}
	for _, c := range list {
		s.Last = max(s.Last, c.Number)
	}
	return Event{Kind: Checkpointed, At: at, Ranks: []jobs.RankAttempt{{Rank: rank, Attempt: max(1, k.Attempt)}}, Saved: s}
}

// save takes what is needed of a rank's checkpoints.
func save(l *Lineup, ev Event) {
	for _, ra := range ev.Ranks {
		l.Largest()[ra.Rank].Saved = ev.Saved
	}
	l.saves = true
}

// What starts again with a rank: only it, all of its group, which has the group's number, or the job.
const (
	alone    = -2
	ofTheJob = -1
)

// gangOf says what starts again with a rank. Ranks that can also start again without the others, of a job that does
// so as a whole, are alone.
func gangOf(l *Lineup, rank int) int {
	switch l.Spec.Restarts(rank) {
	case groups.RestartJob:
		return ofTheJob
	case groups.RestartGroup:
		group, _ := l.Spec.GroupOf(rank)
		return group
	}
	return alone
}

// together lists the ranks that start again with one, itself included: they begin with checkpoints of
// the same epoch.
func together(l *Lineup, rank int) (ranks []int) {
	gang := gangOf(l, rank)
	if gang == alone {
		return []int{rank}
	}
	for i := range l.Ranks {
		if gangOf(l, i) == gang {
			ranks = append(ranks, i)
		}
	}
	return ranks
}

// common returns the newest epoch of which all ranks have a checkpoint; 0 = there is none.
func common(l *Lineup, ranks []int) int64 {
	for _, c := range slices.Backward(l.Ranks[ranks[0]].Checkpoints) {
		if !slices.ContainsFunc(ranks, func(rank int) bool { return l.Ranks[rank].at(c.Epoch) == nil }) {
			return c.Epoch
		}
	}
	return 0
}

// at returns the checkpoint of an epoch, or nil.
func (k *Rank) at(epoch int64) *jobs.Checkpoint {
	for i := range slices.Backward(k.Checkpoints) {
		if k.Checkpoints[i].Epoch == epoch {
			return &k.Checkpoints[i]
		}
	}
	return nil
}

// Starts is what ranks begin with that are granted now, or start again. Those that do so together are looked at once,
// however many of them are asked about: there may be ten thousand.
type Starts struct {
	l     Lineup
	gangs map[int]gang
}

// gang is what ranks begin with that start together.
type gang struct {
	ranks int
	all   *jobs.Checkpoint // the newest one that is of all of them, or nil
	epoch int64            // else the newest of which each has one; 0 = there is none
}

// StartsOf is about the ranks that there are when groups have these sizes; nil = as they are.
func StartsOf(l *Lineup, sizes []int) *Starts {
	s := &Starts{l: *l, gangs: map[int]gang{}}
	s.l.choose(sizes)
	return s
}

// gang returns that of a rank.
func (s *Starts) gang(rank int) gang {
	number := gangOf(&s.l, rank)
	if number == alone {
		return gang{ranks: 1}
	}
	g, known := s.gangs[number]
	if !known {
		ranks := together(&s.l, rank)
		g = gang{ranks: len(ranks), all: ofAll(&s.l, ranks), epoch: common(&s.l, ranks)}
		s.gangs[number] = g
	}
	return g
}

// Of returns the checkpoint that an attempt of a rank begins with, or nil: its newest one, or the newest of those
// that all ranks have which start with it.
func (s *Starts) Of(rank int) *jobs.Checkpoint {
	if !s.l.saves {
		return nil
	}
	k := &s.l.Ranks[rank]
	switch g := s.gang(rank); {
	case g.ranks == 1 && len(k.Checkpoints) == 0:
		return nil
	case g.ranks == 1:
		return &k.Checkpoints[len(k.Checkpoints)-1]
	case g.all != nil:
		return g.all
	default:
		return k.at(g.epoch)
	}
}

// ofAll returns the newest checkpoint that is of all ranks, or nil.
func ofAll(l *Lineup, ranks []int) (newest *jobs.Checkpoint) {
	for _, rank := range ranks {
		list := l.Ranks[rank].Checkpoints
		for i := range list {
			if c := &list[i]; c.All && (newest == nil || c.At.After(newest.At)) {
				newest = c
			}
		}
	}
	return newest
}

// With returns whose checkpoint it is with which a rank begins.
func With(l *Lineup, rank int) int {
	c := StartsOf(l, nil).Of(rank)
	for _, other := range together(l, rank) {
		list := l.Ranks[other].Checkpoints
		for i := range list {
			if &list[i] == c {
				return other
			}
		}
	}
	return rank
}

// Keeping returns which checkpoints of a rank are needed once another one is kept. Of a rank that starts again alone
// that is the new one, and those before it until one is at another node than the rank, and so it is of one that is of all ranks; else
// all from the newest epoch on that all have.
func Keeping(l *Lineup, rank int, c jobs.Checkpoint) []jobs.Checkpoint {
	list := append(slices.Clone(l.Ranks[rank].Checkpoints), c)
	if ranks := together(l, rank); len(ranks) > 1 && !c.All {
		before := l.Ranks[rank].Checkpoints
		l.Ranks[rank].Checkpoints = list
		epoch := common(l, ranks)
		l.Ranks[rank].Checkpoints = before
		list = slices.DeleteFunc(list, func(c jobs.Checkpoint) bool { return c.Epoch < epoch })
	} else if len(c.Holders) > 1 {
		list = list[len(list)-1:]
	}
	for n := len(list); n > jobs.MaxCheckpoints; n-- {
		list = slices.Delete(list, n-2, n-1) // the oldest is the one that all have, and others come to the next ones first
	}
	return list
}

// Outdated returns which checkpoints of a rank stay when it and others start again together, perhaps with all
// of the job: none of an epoch that one of them lacks, since it will be made again, and none at all if the
// numbers of ranks may be other ones then.
func (s *Starts) Outdated(rank int, whole bool) (stay []jobs.Checkpoint, changed bool) {
	list := s.l.Ranks[rank].Checkpoints
	if len(list) == 0 {
		return nil, false
	}
	if whole && s.l.wish != nil && slices.ContainsFunc(s.l.wish.Groups, func(g groups.Group) bool { return g.Min < g.Max }) {
		return nil, true
	}
	g := s.gang(rank)
	if g.ranks == 1 || g.all != nil {
		return nil, false
	}
	stay = slices.DeleteFunc(slices.Clone(list), func(c jobs.Checkpoint) bool { return c.Epoch > g.epoch })
	return stay, len(stay) != len(list)
}

// Newest returns the newest checkpoint of a rank, or nil. It is a copy.
func (k *Rank) Newest() *jobs.Checkpoint {
	if len(k.Checkpoints) == 0 {
		return nil
	}
	c := k.Checkpoints[len(k.Checkpoints)-1]
	return &c
}
