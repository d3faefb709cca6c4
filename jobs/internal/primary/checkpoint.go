package primary

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// keepers are the nodes that keep checkpoints of the job, or have kept some.
type keepers struct {
	of    map[vicinity.ID]bool
	renew time.Time // when they hear again what is needed; zero = there are none
}

// found takes note of the nodes that keep what a record has. They hear at a time what is needed.
func (k *keepers) found(r *record.Record, hear time.Time) {
	for i := range r.Ranks {
		for _, c := range r.Ranks[i].Checkpoints {
			for _, id := range c.Holders {
				if len(k.of) == 0 {
					k.of, k.renew = map[vicinity.ID]bool{}, hear
				}
				k.of[id] = true
			}
		}
	}
}

// reported notes what a report tells of the checkpoints of a worker that counts.
func (k *keepers) reported(l *ledger, now time.Time, w wire.WorkerReport) {
	if w.Checkpoint == nil {
		return
	}
	if n := w.Checkpoint.Missing; n > 0 {
		k.missing(l, now, w.Rank, n)
	}
	c := w.Checkpoint.Made
	if c == nil || c.Number <= l.Rec.Ranks[w.Rank].Last {
		return
	}
	made := *c
	made.At = now
	k.save(l, now, w.Rank, record.Keeping(&l.Rec.Lineup, w.Rank, made))
	k.found(&l.Rec, now.Add(wire.RenewKeep))
}

// save makes a list that of the checkpoints which are needed of a rank. It informs the nodes that keep nothing of the
// rank any more, or something that an earlier node of the rank asked for; the node of the rank informs the others.
func (k *keepers) save(l *ledger, now time.Time, rank int, list []jobs.Checkpoint) {
	before, still := l.Rec.Ranks[rank].Checkpoints, holders(list)
	l.emit(record.SavedNow(&l.Rec.Lineup, now, rank, list))
	left := map[vicinity.ID]bool{}
	for _, c := range before {
		if slices.ContainsFunc(list, func(other jobs.Checkpoint) bool { return other.Number == c.Number }) {
			continue
		}
		elsewhere := len(list) == 0 || list[len(list)-1].Node() != c.Node()
		for _, id := range c.Holders {
			if elsewhere || !still[id] {
				left[id] = true
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(left)) {
		m, _ := needed(&l.Rec, id)
		l.Do(DoKeep{id, m})
	}
}

func holders(list []jobs.Checkpoint) map[vicinity.ID]bool {
	of := map[vicinity.ID]bool{}
	for _, c := range list {
		for _, id := range c.Holders {
			of[id] = true
		}
	}
	return of
}

// missing handles a checkpoint that a rank was to begin with, and that no node has given it.
func (k *keepers) missing(l *ledger, now time.Time, rank, number int) {
	rank = record.With(&l.Rec.Lineup, rank)
	list := l.Rec.Ranks[rank].Checkpoints
	i := slices.IndexFunc(list, func(c jobs.Checkpoint) bool { return c.Number == number })
	if i < 0 {
		return
	}
	l.Warn(now, fmt.Sprintf("%s: none of the nodes that kept its checkpoint %d has given it", l.Rec.Spec.Who(rank), number))
	k.save(l, now, rank, slices.Delete(slices.Clone(list), i, i+1))
}

// outdate drops checkpoints of ranks that start again together which are newer than what they
// begin with; whole: these are all ranks of the job.
func (k *keepers) outdate(l *ledger, now time.Time, ranks []jobs.RankAttempt, whole bool) {
	starts := record.StartsOf(&l.Rec.Lineup, nil)
	for _, ra := range ranks {
		if stay, changed := starts.Outdated(ra.Rank, whole); changed {
			k.save(l, now, ra.Rank, stay)
		}
	}
}

// resumes says what ranks begin with that have made checkpoints, and the numbers of these in the order of the ranks; nil = none
// begins with one.
func resumes(r *record.Record, starts *record.Starts, ranks []jobs.RankAttempt) (list []wire.Resume, numbers []int) {
	for i, ra := range ranks {
		m := wire.Resume{Rank: ra.Rank, Last: r.Ranks[ra.Rank].Last}
		if c := starts.Of(ra.Rank); c != nil {
			from := *c
			m.From = &from
			if numbers == nil {
				numbers = make([]int, len(ranks))
			}
			numbers[i] = c.Number
		}
		if m.From != nil || m.Last > 0 {
			list = append(list, m)
		}
	}
	return list, numbers
}

// checkpointAck answers what a report tells of the checkpoints of a worker.
func checkpointAck(k *record.Rank, told *wire.CheckpointReport) *wire.CheckpointAck {
	if told == nil || told.Made == nil {
		return nil
	}
	a := &wire.CheckpointAck{Known: k.Last}
	if len(k.Checkpoints) > 0 {
		a.Oldest = k.Checkpoints[0].Number
	}
	return a
}

// labels names the nodes that keep the newest checkpoint of a rank, those that are members by their names, too.
func labels(k *record.Rank, self vicinity.Member, member func(vicinity.ID) (vicinity.Member, bool)) (list []string) {
	if len(k.Checkpoints) == 0 {
		return nil
	}
	for _, id := range k.Checkpoints[len(k.Checkpoints)-1].Holders {
		about, _ := member(id)
		switch id {
		case self.ID:
			about = self
		case k.Node:
			about.Name = k.Name
		}
		list = append(list, jobs.Label(about.Name, id))
	}
	return list
}

// needed lists what a node is to keep, and whether that is anything that the job has. What has not been heard of
// here stays there: it may be what its rank begins with by the time that the node hears this.
func needed(r *record.Record, id vicinity.ID) (m wire.Keep, has bool) {
	m.Job = r.ID
	for i := range r.Ranks {
		k := &r.Ranks[i]
		switch {
		case k.Last == 0:
		case slices.ContainsFunc(k.Checkpoints, func(c jobs.Checkpoint) bool { return slices.Contains(c.Holders, id) }):
			m.Needed, has = append(m.Needed, wire.Needed{Rank: i, Oldest: k.Checkpoints[0].Number}), true
		default:
			m.Needed = append(m.Needed, wire.Needed{Rank: i, Oldest: k.Last + 1})
		}
	}
	return m, has
}

// tell tells all keepers, now and then, what is needed.
func (k *keepers) tell(l *ledger, now time.Time) {
	if k.renew.IsZero() || now.Before(k.renew) {
		return
	}
	k.renew = now.Add(wire.RenewKeep)
	for _, id := range slices.Sorted(maps.Keys(k.of)) {
		m, has := needed(&l.Rec, id)
		if len(m.Needed) > 0 { // else its ranks are not among those of smaller groups
			l.Do(DoKeep{id, m})
		}
		if !has {
			delete(k.of, id)
		}
	}
}

// letGo lets the checkpoints of a job go that has ended.
func (k *keepers) letGo(l *ledger) {
	for _, id := range slices.Sorted(maps.Keys(k.of)) {
		l.Do(DoKeep{id, wire.Keep{Job: l.Rec.ID, All: true}})
	}
	*k = keepers{}
}
