package node

import (
	"context"
	"errors"
	"slices"
	"sync"

	"zorilla/jobs"
	"zorilla/jobs/agent"
	"zorilla/node/api"
	"zorilla/vicinity"
)

// listing is how jobs are listed as values of one type.
type listing[T any] struct {
	own   func(s *agent.Service) []T
	ask   func(ctx context.Context, p api.Peer) ([]T, error)
	of    func(jobs.Status) T
	job   func(T) (id jobs.ID, lastKnown bool)
	order func(a, b T) int
}

// Jobs lists jobs, with all those of every member. Other origins are asked how
// the jobs are that this node works for.
func (s *jobService) Jobs(ctx context.Context, all bool) ([]jobs.Status, error) {
	return listing[jobs.Status]{
		own:   func(s *agent.Service) []jobs.Status { return s.List(jobs.ListEnded) },
		ask:   askStatuses,
		of:    func(st jobs.Status) jobs.Status { return st },
		job:   func(st jobs.Status) (jobs.ID, bool) { return st.ID, st.LastKnown },
		order: jobs.InOrder,
	}.list(ctx, s, all), nil
}

// Summaries lists jobs as Jobs does.
func (s *jobService) Summaries(ctx context.Context, all bool) ([]jobs.Summary, error) {
	return listing[jobs.Summary]{
		own:   func(s *agent.Service) []jobs.Summary { return s.Summaries(jobs.ListEnded) },
		ask:   askSummaries,
		of:    func(st jobs.Status) jobs.Summary { return st.Summary() },
		job:   func(m jobs.Summary) (jobs.ID, bool) { return m.ID, m.LastKnown },
		order: jobs.SummariesInOrder,
	}.list(ctx, s, all), nil
}

// Select lists some of the jobs of Summaries, and of those that have ended however many
// there are. Other origins are asked how those are that seem to be active.
func (s *jobService) Select(ctx context.Context, q jobs.Selection) (jobs.Selected, error) {
	d := s.jobs.Select(q)
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var guesses []int
	for i := range d.Active {
		if d.Active[i].LastKnown {
			guesses = append(guesses, i)
		}
	}
	inParallel(guesses, func(i *int) {
		if now, err := s.Job(ctx, string(d.Active[*i].ID)); err == nil {
			d.Active[*i] = now.Summary()
		}
	})
	// An origin may have told of an end that its participants are told of in a moment.
	d.Active = slices.DeleteFunc(d.Active, func(m jobs.Summary) bool {
		over := m.State.Final()
		if over && q.Skip == 0 {
			d.Ended = append(d.Ended, m)
		}
		return over
	})
	d.Sort()
	return d, nil
}

// askStatuses asks a member for its jobs. Commands for this node are not believed of it.
func askStatuses(ctx context.Context, p api.Peer) ([]jobs.Status, error) {
	list, err := p.Jobs(ctx, false)
	for i := range list {
		list[i] = list[i].Discreet()
	}
	return list, err
}

// askSummaries asks a member for its summaries, or, if its program is one that has
// none, for whole statuses.
func askSummaries(ctx context.Context, p api.Peer) (short []jobs.Summary, err error) {
	if short, err = p.Summaries(ctx, false); !errors.Is(err, api.ErrRefused) {
		return short, err
	}
	list, err := askStatuses(ctx, p)
	for i := range list {
		short = append(short, list[i].Summary())
	}
	return short, err
}

func (l listing[T]) list(ctx context.Context, s *jobService, all bool) []T {
	list := l.own(s.jobs)
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if !all {
		var guesses []int
		for i, e := range list {
			if _, lastKnown := l.job(e); lastKnown {
				guesses = append(guesses, i)
			}
		}
		inParallel(guesses, func(i *int) {
			id, _ := l.job(list[*i])
			if now, err := s.Job(ctx, string(id)); err == nil {
				list[*i] = l.of(now)
			}
		})
		slices.SortFunc(list, l.order) // an origin may have told of an end
		return list
	}
	var mu sync.Mutex
	inParallel(s.net.overlay.Members(), func(m *vicinity.Member) {
		more, err := l.ask(ctx, s.net.at(m.ID))
		if err != nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		list = append(list, more...)
	})
	return l.merge(list)
}

// merge keeps one of each job, its origin's where there is one, in order.
func (l listing[T]) merge(list []T) []T {
	best := map[jobs.ID]T{}
	for _, e := range list {
		id, lastKnown := l.job(e)
		old, ok := best[id]
		if _, guess := l.job(old); !ok || guess && !lastKnown {
			best[id] = e
		}
	}
	out := make([]T, 0, len(best))
	for _, e := range best {
		out = append(out, e)
	}
	slices.SortFunc(out, l.order)
	return out
}
