package jobs

import (
	"maps"
	"slices"
	"time"

	"zorilla/internal/codec"
	"zorilla/vicinity"
)

// ledger is the record of a job, and what its changes leave for the shell.
type ledger struct {
	rec     record
	version uint64 // counts what a client may see; 0 is what a client says that knows nothing
	out     step
}

// emit applies an event and hands it to the journal.
func (l *ledger) emit(ev event) {
	l.rec.apply(ev)
	l.out.events = append(l.out.events, ev)
	l.version++
}

// warn tells the user something that matters even if the job ends well, once.
func (l *ledger) warn(now time.Time, text string) {
	if !slices.Contains(l.rec.warnings, text) {
		l.emit(event{Kind: evWarned, At: now, Warn: []string{text}})
	}
}

func (l *ledger) do(e effect) { l.out.effects = append(l.out.effects, e) }

// release lets nodes go, or stops ranks of theirs.
func (l *ledger) release(ranks map[vicinity.ID][]RankAttempt, stop bool) {
	for _, id := range slices.Sorted(maps.Keys(ranks)) {
		l.do(doRelease{to: id, release: Release{Job: l.rec.id, Ranks: ranks[id], Stop: stop}})
	}
}

// yield gives offers back.
func (l *ledger) yield(nodes []vicinity.ID, forget bool) {
	for _, id := range nodes {
		l.do(doYield{to: id, job: l.rec.id, forget: forget})
	}
}

// take returns and clears what has been left to do.
func (l *ledger) take() step {
	s := l.out
	l.out = step{}
	return s
}

// owned tells which of a participant's workers still count.
func (l *ledger) owned(from vicinity.ID, ra RankAttempt) bool { return l.rec.owned(from, ra) }

// ownedOf returns those of a participant's workers that still count.
func (l *ledger) ownedOf(from vicinity.ID, ranks []RankAttempt) []RankAttempt {
	return slices.DeleteFunc(slices.Clone(ranks), func(ra RankAttempt) bool { return !l.owned(from, ra) })
}

// advertisement asks for the workers of a round; answers go to addrs.
func (l *ledger) advertisement(now time.Time, r Round, addrs []string) Advertisement {
	spec := &l.rec.spec
	life := min(time.Duration(r.Wait)+10*time.Second, maxLife)
	return Advertisement{
		Job: l.rec.id, Addrs: addrs, Round: r.Number, Wanted: r.Wanted,
		Slots: spec.Slots, Memory: spec.Memory, Disk: spec.Disk, GPUs: spec.GPUs, Where: spec.Where,
		Priority: spec.Priority, Stamp: l.rec.stamp, Near: spec.pairwise(),
		Life: life.Milliseconds(), Signed: now.UnixMilli(),
	}
}

// exited is the event of a worker's end. A copy that is not needed leaves
// nothing; one that failed while others go on leaves a warning.
func (l *ledger) exited(now time.Time, w WorkerReport) event {
	ev := event{Kind: evExited, At: now, Ranks: []RankAttempt{w.RankAttempt}, Exit: w.Exit, Wrote: &wrote{w.Stdout, w.Stderr}, Output: w.Output, Warn: w.Warn}
	switch {
	case !l.rec.replicated():
	case l.rec.spare(w.Rank):
		ev.Output, ev.Warn = nil, nil
	case badExit(w.Exit):
		ev.Output = nil
		rank, _ := l.rec.spec.RankOf(w.Rank)
		others := false
		l.rec.copiesOf(rank, func(worker int, k *rankRecord) {
			others = others || worker != w.Rank && (k.state == WorkerRunning || k.state == WorkerEnded && succeeded(k.exit))
		})
		if k := l.rec.ranks[w.Rank]; others {
			k.exit = w.Exit
			ev.Warn = append(slices.Clone(w.Warn), l.rec.exitReason(w.Rank, &k)+": another copy goes on")
		}
	}
	return ev
}

// taskPage lists tasks.
func (l *ledger) taskPage(q TaskQuery) TaskPage {
	page := TaskPage{Tasks: []TaskStatus{}}
	t := l.rec.tasks
	if t == nil {
		return page
	}
	page.Picture = t.picture(q.Cells)
	limit := q.Limit
	if limit <= 0 || limit > maxTaskPage {
		limit = maxTaskPage
	}
	for place := max(0, q.From); place < len(t.tasks); place++ {
		k := &t.tasks[place]
		if q.Failed && (!k.done || k.code == 0) {
			continue
		}
		if len(page.Tasks) == limit {
			page.Next = place
			break
		}
		st := TaskStatus{ID: t.numbers.ID(place), Code: -1, Rank: -1, Tries: t.tries[place]}
		if k.done {
			st.Done, st.Code, st.Rank, st.Took = true, int(k.code), int(k.rank), codec.Duration(k.took)
			st.Stdout, st.Stderr, st.Tries = k.wrote.stdout, k.wrote.stderr, st.Tries+1
			st.Files = k.files
			if r := &l.rec.ranks[k.rank]; r.attempt == int(k.try) {
				st.Node = r.node
			}
		}
		page.Tasks = append(page.Tasks, st)
	}
	return page
}
