package primary

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/internal/search"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/work"
	"zorilla/vicinity"
)

const (
	// resizeBurst and resizeEvery bound how often the number of workers changes: each time
	// it is written down, and nodes are looked for or workers ended.
	resizeBurst = 10
	resizeEvery = 5 * time.Second
)

// throttle bounds what may happen again and again.
type throttle struct {
	spent int       // of the burst
	since time.Time // when it began to come back
}

// allows reports whether it may happen once more, and counts that it does.
func (t *throttle) allows(now time.Time) bool {
	if back := int(now.Sub(t.since) / resizeEvery); t.spent == 0 || back >= t.spent || back < 0 {
		t.spent, t.since = 0, now
	} else {
		t.spent, t.since = t.spent-back, t.since.Add(time.Duration(back)*resizeEvery)
	}
	if t.spent == resizeBurst {
		return false
	}
	t.spent++
	return true
}

// Resize makes another number of workers the one that is wanted, or has some go on elsewhere, and returns
// what is in force then. Errors wrap jobs.ErrRange, ErrRefused or ErrNotRunning.
func (p *Primary) Resize(now time.Time, from vicinity.ID, m *wire.Resize) (jobs.Size, error) {
	if len(m.Move) > 0 {
		return p.move(now, m.Move)
	}
	if err := p.mayResize(from, m.By); err != nil {
		return jobs.Size{}, err
	}
	want, ranks, err := p.sizeAfter(&m.Resize)
	if err != nil {
		return jobs.Size{}, err
	}
	size := p.size()
	if want == size.Wanted && len(ranks) == 0 {
		return size, nil
	}
	if !p.resizes.allows(now) {
		return jobs.Size{}, fmt.Errorf("%w: job %s was given another number of workers too often (%d times at once, then every %v): try again",
			jobs.ErrRefused, p.Rec.ID.Short(), resizeBurst, resizeEvery)
	}
	running, idle := map[vicinity.ID][]jobs.RankAttempt{}, map[vicinity.ID][]jobs.RankAttempt{}
	for _, ra := range ranks {
		switch k := &p.Rec.Ranks[ra.Rank]; k.State {
		case jobs.WorkerRunning:
			running[k.Node] = append(running[k.Node], ra)
		case jobs.WorkerPreparing, jobs.WorkerReady:
			idle[k.Node] = append(idle[k.Node], ra)
		}
	}
	p.emit(record.Event{Kind: record.Resized, At: now, Sizing: record.Sizing{Size: want}, Ranks: ranks,
		Reason: fmt.Sprintf("it was given back when %d workers were asked for", want)})
	p.release(running, wire.Release{Stop: true, Notice: true})
	p.release(idle, wire.Release{})
	p.Search.Again(now)
	p.Tick(now)
	return p.size(), nil
}

// size is how many workers the job has, and is to have.
func (l *ledger) size() jobs.Size {
	s := jobs.Size{Wanted: l.Rec.Asked, Have: l.Rec.Ranks.Serving(), Min: l.Rec.Spec.Min, Max: l.Rec.Spec.Max}
	if s.Wanted == 0 {
		s.Wanted = s.Max
	}
	return s
}

// mayResize says why the job's workers are as many as they are, or why who asks has no
// say in that.
func (l *ledger) mayResize(from vicinity.ID, by jobs.RankAttempt) error {
	spec, job := &l.Rec.Spec, l.Rec.ID.Short()
	switch {
	case l.Rec.State.Final():
		return fmt.Errorf("%w: job %s has ended (%s)", jobs.ErrNotRunning, job, l.Rec.State)
	case by.Attempt > 0 && (!l.Rec.Owned(from, by) || l.Rec.Ranks[by.Rank].State != jobs.WorkerRunning || l.Rec.Ranks[by.Rank].GivenBack):
		return fmt.Errorf("%w: rank %d (attempt %d) is no worker of job %s any more", jobs.ErrRefused, by.Rank, by.Attempt, job)
	case spec.Array != nil:
		return fmt.Errorf("%w: job %s is an array: it has as many workers as there is room and work for", jobs.ErrRefused, job)
	case spec.FixedSize():
		return fmt.Errorf("%w: job %s has %d workers, no more and no fewer: only one with -n MIN..MAX gets others while it runs",
			jobs.ErrRefused, job, spec.Workers())
	case l.Rec.Closing():
		return fmt.Errorf("%w: job %s is ending", jobs.ErrRefused, job)
	}
	return nil
}

// sizeAfter returns how many workers a request wants, and which ranks go.
func (l *ledger) sizeAfter(q *jobs.Resize) (want int, ranks []jobs.RankAttempt, err error) {
	spec, have := &l.Rec.Spec, l.Rec.Ranks.Serving()
	var order []int // of going
	named := map[int]bool{}
	for _, rank := range q.Release {
		if rank < 0 || rank >= spec.Max {
			return 0, nil, fmt.Errorf("%w: rank %d: job %s has ranks 0 to %d", jobs.ErrRange, rank, l.Rec.ID.Short(), spec.Max-1)
		}
		if l.Rec.Ranks[rank].Serves() && !named[rank] {
			order = append(order, rank)
		}
		named[rank] = true
	}
	switch want = q.Workers; {
	case want > 0:
	case len(order) == 0:
		return l.size().Wanted, nil, nil
	default:
		want = have - len(order)
	}
	if want < spec.Min || want > spec.Max {
		return 0, nil, fmt.Errorf("%w: %d workers: job %s has %d to %d (-n)", jobs.ErrRange, want, l.Rec.ID.Short(), spec.Min, spec.Max)
	}
	if want > have && !l.Rec.Grows() && want != l.size().Wanted {
		return 0, nil, fmt.Errorf("%w: job %s gets no more workers: a first one has ended with its work", jobs.ErrRefused, l.Rec.ID.Short())
	}
	for rank := range slices.Backward(l.Rec.Ranks) {
		if l.Rec.Ranks[rank].Serves() && !named[rank] {
			order = append(order, rank)
		}
	}
	for _, rank := range order[:max(0, have-want)] {
		ranks = append(ranks, jobs.RankAttempt{Rank: rank, Attempt: l.Rec.Ranks[rank].Attempt})
	}
	return want, ranks, nil
}

// move has ranks go on at other nodes: all that are named, or none if one cannot.
func (p *Primary) move(now time.Time, list []jobs.Move) (jobs.Size, error) {
	maps.DeleteFunc(p.moves, func(ra jobs.RankAttempt, _ vicinity.ID) bool {
		return !p.Rec.Owns(ra) || p.Rec.Ranks[ra.Rank].State != jobs.WorkerRunning
	})
	to := moves{}
	for _, m := range list {
		under, err := mayMove(&p.Rec, m)
		if err == nil && m.To != "" && !under {
			about, member := p.self, true
			if m.To != p.self.ID {
				about, member = p.Member(m.To)
			}
			err = mayMoveTo(&p.Rec, m, about, member)
		}
		if err != nil {
			return jobs.Size{}, err
		}
		if !under {
			to[jobs.RankAttempt{Rank: m.Rank, Attempt: p.Rec.Ranks[m.Rank].Attempt}] = m.To
		}
	}
	news := func(ra jobs.RankAttempt) bool {
		before, known := p.moves[ra]
		return !known || to[ra] != "" && to[ra] != before
	}
	ranks := to.ranks()
	if slices.ContainsFunc(ranks, news) && !p.resizes.allows(now) {
		return jobs.Size{}, fmt.Errorf("%w: job %s was changed too often (%d times at once, then every %v): try again",
			jobs.ErrRefused, p.Rec.ID.Short(), resizeBurst, resizeEvery)
	}
	leave := map[vicinity.ID][]jobs.RankAttempt{}
	for _, ra := range ranks {
		k := &p.Rec.Ranks[ra.Rank]
		if k.State == jobs.WorkerWanted {
			p.goOn(now, ra, to[ra], k.Retried)
			continue
		}
		leave[k.Node] = append(leave[k.Node], ra)
		if news(ra) {
			p.moves[ra] = to[ra]
			p.Version++
		}
	}
	p.release(leave, wire.Release{Stop: true, Notice: true})
	p.Tick(now)
	size := p.size()
	size.Moving = len(list)
	return size, nil
}

// moved has a rank that was stopped go on elsewhere, and reports whether it does. One that was stopped for
// no reason which is known was to be moved before this node was started again.
func (p *Primary) moved(now time.Time, from vicinity.ID, w *wire.WorkerReport) bool {
	k := &p.Rec.Ranks[w.Rank]
	to, asked := p.moves[w.RankAttempt]
	stopped := w.Exit != nil && w.Exit.Cause == work.Stopped || w.State == jobs.WorkerLost && asked
	if !stopped || k.State != jobs.WorkerRunning || k.GivenBack || p.Rec.Closing() || !p.Rec.Spec.Movable(w.Rank) {
		return false
	}
	delete(p.moves, w.RankAttempt)
	p.Search.Lost(now, from, search.MovedAway)
	p.goOn(now, w.RankAttempt, to, "moved from "+jobs.Label(k.Name, from))
	return true
}

// goOn has a rank that has ended looked for elsewhere.
func (p *lifecycle) goOn(now time.Time, ra jobs.RankAttempt, to vicinity.ID, why string) {
	p.emit(record.Event{Kind: record.Moved, At: now, Node: to, Ranks: []jobs.RankAttempt{ra}, Reason: why})
	p.Search.Readmit(to)
	p.Search.Again(now)
}

// elsewhere warns of ranks that a node gets which were to go to another one.
func (p *Primary) elsewhere(now time.Time, ranks []jobs.RankAttempt) {
	for _, ra := range ranks {
		k := &p.Rec.Ranks[ra.Rank]
		if k.Left == "" || k.Former == k.Left || k.Former == k.Node {
			continue
		}
		to, _ := p.Member(k.Former)
		p.Warn(now, fmt.Sprintf("%s: no room was offered by %s, where it was to go: it goes to %s",
			p.Rec.Spec.Who(ra.Rank), jobs.Label(to.Name, k.Former), jobs.Label(k.Name, k.Node)))
	}
}
