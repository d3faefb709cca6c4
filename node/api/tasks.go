package api

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"zorilla/jobs"
)

func (h handler) tasks(r *http.Request, job string) (any, error) {
	var q jobs.TaskQuery
	for name, n := range map[string]*int{"from": &q.From, "limit": &q.Limit} {
		var err error
		if *n, err = strconv.Atoi(or(r.FormValue(name), "0")); err != nil || *n < 0 {
			return nil, fmt.Errorf("%w: %s=%.40q: want a number from 0", ErrInvalid, name, r.FormValue(name))
		}
	}
	var err error
	if q.Failed, err = boolean(r, "failed"); err != nil {
		return nil, err
	}
	return h.Tasks(r.Context(), job, q)
}

// Tasks implements Service.
func (c *Client) Tasks(ctx context.Context, job string, q jobs.TaskQuery) (page jobs.TaskPage, err error) {
	return page, c.getJob(ctx, job, fmt.Sprintf("/tasks?from=%d&limit=%d&failed=%t", q.From, q.Limit, q.Failed), &page)
}

// AllTasks returns all tasks that a query selects, in as many questions as it
// takes.
func AllTasks(ctx context.Context, s Service, job string, failed bool) ([]jobs.TaskStatus, error) {
	all := []jobs.TaskStatus{}
	for q := (jobs.TaskQuery{Failed: failed}); ; {
		page, err := s.Tasks(ctx, job, q)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Tasks...)
		if page.Next <= q.From {
			return all, nil
		}
		q.From = page.Next
	}
}
