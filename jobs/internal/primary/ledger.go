package primary

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// ledger is the record of a job, and what its changes leave for the shell.
type ledger struct {
	Rec     record.Record
	Version uint64 // counts what a client may see; 0 is what a client says that knows nothing
	Out     step
}

// emit applies an event and hands it to the journal.
func (l *ledger) emit(ev record.Event) {
	l.Rec.Apply(ev)
	l.Out.Events = append(l.Out.Events, ev)
	l.Version++
}

// Warn notes something for the user that matters even if the job ends well, once.
func (l *ledger) Warn(now time.Time, text string) {
	if !slices.Contains(l.Rec.Warnings, text) {
		l.emit(record.Event{Kind: record.Warned, At: now, Warn: []string{text}})
	}
}

// Do leaves an effect to be done.
func (l *ledger) Do(e Effect) { l.Out.Effects = append(l.Out.Effects, e) }

// release lets ranks go, how.
func (l *ledger) release(ranks map[vicinity.ID][]jobs.RankAttempt, how wire.Release) {
	how.Job = l.Rec.ID
	for _, id := range slices.Sorted(maps.Keys(ranks)) {
		how.Ranks = ranks[id]
		l.Do(DoRelease{To: id, Release: how})
	}
}

// Take returns and clears what has been left to do.
func (l *ledger) Take() step {
	s := l.Out
	l.Out = step{}
	return s
}

// ownedOf returns those of a participant's workers that still count.
func (l *ledger) ownedOf(from vicinity.ID, ranks []jobs.RankAttempt) []jobs.RankAttempt {
	return slices.DeleteFunc(slices.Clone(ranks), func(ra jobs.RankAttempt) bool { return !l.Rec.Owned(from, ra) })
}

// advertisement asks under a name for the workers of a round, of which so many are for other
// jobs; answers go to addrs.
func (l *ledger) advertisement(now time.Time, name jobs.ID, r jobs.Round, others int, addrs []string) wire.Advertisement {
	spec := &l.Rec.Spec
	life := min(time.Duration(r.Wait)+10*time.Second, wire.MaxLife)
	ad := wire.Advertisement{
		Job: name, Addrs: addrs, Round: r.Number, Wanted: r.Wanted, Others: others,
		Priority: spec.Priority, Stamp: l.Rec.Stamp, Near: spec.Pairwise() || spec.Mapped() || spec.Replaces(),
		Life: life.Milliseconds(), Signed: now.UnixMilli(),
	}
	ad.AskFor(spec)
	return ad
}

// exited is the event of a worker's end. A copy that is not needed leaves
// nothing; one that failed while others go on leaves a warning.
func (l *ledger) exited(now time.Time, w wire.WorkerReport) record.Event {
	ev := record.Event{Kind: record.Exited, At: now, Ranks: []jobs.RankAttempt{w.RankAttempt}, Exit: w.Exit,
		Wrote: &wire.Written{Stdout: w.Stdout, Stderr: w.Stderr}, Output: w.Output, Warn: w.Warn}
	switch {
	case !l.Rec.Replicated():
	case l.Rec.Surplus(w.Rank):
		ev.Output, ev.Warn = nil, nil
	case record.BadExit(w.Exit):
		ev.Output = nil
		rank, _ := l.Rec.Spec.RankOf(w.Rank)
		others := false
		l.Rec.CopiesOf(rank, func(worker int, k *record.Rank) {
			others = others || worker != w.Rank && (k.State == jobs.WorkerRunning || k.State == jobs.WorkerEnded && record.Succeeded(k.Exit))
		})
		if k := l.Rec.Ranks[w.Rank]; others {
			k.Exit = w.Exit
			ev.Warn = append(slices.Clone(w.Warn), l.Rec.ExitReason(w.Rank, &k)+": another copy goes on")
		}
	}
	return ev
}

// sizeReason reports how many workers a job has, and how many more are looked for.
func (l *ledger) sizeReason(more int) string {
	have, asked := l.Rec.Ranks.Kept(jobs.WorkerRunning, jobs.WorkerEnded), ""
	if l.Rec.Asked > 0 {
		asked = fmt.Sprintf("; %d were asked for", l.Rec.Asked)
	}
	switch {
	case l.Rec.Spec.FixedSize() || more == 0 && asked == "":
		return ""
	case more == 0:
		return fmt.Sprintf("runs with %d workers%s", have, asked)
	}
	return fmt.Sprintf("runs with %d workers, up to %d more are welcome%s", have, more, asked)
}

// TaskPage lists tasks.
func (l *ledger) TaskPage(q jobs.TaskQuery) jobs.TaskPage {
	page := jobs.TaskPage{Tasks: []jobs.TaskStatus{}}
	t := l.Rec.Tasks
	if t == nil {
		return page
	}
	page.Picture = t.Picture(q.Cells)
	limit := q.Limit
	if limit <= 0 || limit > jobs.MaxTaskPage {
		limit = jobs.MaxTaskPage
	}
	state := t.States()
	for place := max(0, q.From); place < len(t.Tasks); place++ {
		k := &t.Tasks[place]
		if q.Failed && (!k.Done || k.Code == 0) {
			continue
		}
		if len(page.Tasks) == limit {
			page.Next = place
			break
		}
		st := jobs.TaskStatus{ID: t.Numbers.ID(place), State: state(place), Code: -1, Rank: -1, Tries: t.Tries[place]}
		if !k.Done && l.Rec.State.Final() {
			st.State = jobs.TaskNotDone
		}
		if k.Done {
			st.Done, st.Code, st.Rank, st.Took = true, int(k.Code), int(k.Rank), codec.Duration(k.Took)
			st.Stdout, st.Stderr, st.Tries = k.Wrote.Stdout, k.Wrote.Stderr, st.Tries+1
			st.Files = k.Files
			if r := &l.Rec.Ranks[k.Rank]; r.Attempt == int(k.Try) {
				st.Node = r.Node
			}
		}
		page.Tasks = append(page.Tasks, st)
	}
	return page
}
