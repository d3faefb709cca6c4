package agent

import (
	"fmt"
	"slices"
	"strings"

	"zorilla/jobs"
)

// Find returns the full ID of a job that this node originates or works for,
// named by its ID, a unique prefix of it, or "last".
func (s *Service) Find(ref string) (jobs.ID, error) {
	if ref == "last" {
		var last jobs.ID
		switch running := s.loop.Call(func() { last = s.last }); {
		case !running:
			return "", jobs.ErrStopped
		case last == "":
			return "", fmt.Errorf("last job %w: none was submitted at this node", jobs.ErrNotFound)
		}
		return last, nil
	}
	found := s.Matching(ref)
	switch {
	case len(found) > 0:
	case s.loop.Stopped.Err() != nil:
		return "", jobs.ErrStopped
	default:
		return "", fmt.Errorf("job %.40q %w: 'zorilla ps --all' lists all jobs", ref, jobs.ErrNotFound)
	}
	return jobs.Only(ref, found)
}

// Matching returns the jobs that this node originates or works for whose IDs
// begin with the prefix; none if it is empty.
func (s *Service) Matching(prefix string) []jobs.ID {
	var found []jobs.ID
	if prefix == "" {
		return nil
	}
	s.loop.Call(func() {
		for id := range s.jobs {
			if strings.HasPrefix(string(id), prefix) {
				found = append(found, id)
			}
		}
		for id := range s.archive.all {
			if s.jobs[id] == nil && strings.HasPrefix(string(id), prefix) {
				found = append(found, id)
			}
		}
		for id := range s.core.Part.Works {
			if strings.HasPrefix(string(id), prefix) && !slices.Contains(found, id) {
				found = append(found, id)
			}
		}
	})
	return found
}

// knows reports whether the job originates here; it runs in the loop.
func (s *Service) knows(id jobs.ID) bool { return s.jobs[id] != nil || s.archive.all[id] != nil }

// inJob calls f in the loop with a job of this origin, which is read again if it
// is not in memory any more. Of a job whose results are forgotten the error is a
// ForgottenError.
func (s *Service) inJob(id jobs.ID, f func(*job)) error {
	var old *job
	for {
		var err error
		again := false
		ok := s.loop.Call(func() {
			p, j := s.archive.all[id], s.jobs[id]
			if j == nil && p != nil && p.Forgotten == 0 {
				j = old
			}
			switch {
			case j != nil:
				f(j)
			case p == nil:
				err = fmt.Errorf("job %s %w", id.Short(), jobs.ErrNotFound)
			case p.Forgotten != 0:
				err = &jobs.ForgottenError{St: p.Status(s.self.ID)}
			default:
				again = true
			}
		})
		if !ok {
			return jobs.ErrStopped
		}
		if !again {
			return err
		}
		if old, err = s.recall(id); err != nil {
			return err
		}
	}
}

// Owns reports whether this node is the job's origin and remembers it. One that is
// stopping says so of any job: what is asked next is told that it stops.
func (s *Service) Owns(id jobs.ID) (owns bool) {
	return !s.loop.Call(func() { owns = s.knows(id) }) || owns
}

// List returns the jobs that this node originates or works for, in the order of
// InOrder: of those that originate here and have ended at most so many as asked
// for, the youngest; negative = all.
func (s *Service) List(ended int) []jobs.Status {
	var list []jobs.Status
	s.loop.Call(func() {
		list = s.listOwn(ended)
		own := len(list)
		for id, w := range s.core.Part.Works {
			if !slices.ContainsFunc(list[:own], func(st jobs.Status) bool { return st.ID == id }) {
				list = append(list, w.Status(s.self, s.exec.Written))
			}
		}
	})
	slices.SortFunc(list, jobs.InOrder)
	return list
}

// listOwn lists jobs of this origin, in no order.
func (s *Service) listOwn(ended int) (list []jobs.Status) {
	order := s.archive.order
	if ended >= 0 {
		order = order[max(0, len(order)-ended):]
	}
	for _, p := range order {
		if j := s.jobs[p.ID]; j == nil {
			list = append(list, p.Status(s.self.ID))
		} else {
			st, _ := s.view(j)
			list = append(list, st)
		}
	}
	for id, j := range s.jobs {
		if s.archive.all[id] == nil {
			st, _ := s.view(j)
			list = append(list, st)
		}
	}
	return list
}

// Results tells how much is kept of jobs that have ended.
func (s *Service) Results() (r jobs.Results) {
	s.loop.Call(func() { r = s.archive.results() })
	return r
}

// Read notes that somebody who uses this node has asked for the results of a job:
// waited for its end, read all of its output or fetched files.
func (s *Service) Read(id jobs.ID) { s.loop.Post(func() { s.archive.sawRead(s.loop.Now(), id) }) }
