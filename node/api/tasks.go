package api

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"zorilla/jobs"
)

func (h peerHandler) tasks(r *http.Request, job string) (any, error) {
	var q jobs.TaskQuery
	for name, n := range map[string]*int{"from": &q.From, "limit": &q.Limit, "cells": &q.Cells} {
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
	return page, c.getJob(ctx, job, fmt.Sprintf("/tasks?from=%d&limit=%d&failed=%t&cells=%d", q.From, q.Limit, q.Failed, q.Cells), &page)
}

// AllTasks returns the tasks that a query selects, in as many questions as it
// takes, and the place where to go on; 0 = there are no more. A limit of 0 means
// all.
func AllTasks(ctx context.Context, s tasksOnly, job string, q jobs.TaskQuery) (list []jobs.TaskStatus, next int, err error) {
	limit := q.Limit
	for list = []jobs.TaskStatus{}; ; {
		if limit > 0 {
			q.Limit = limit - len(list)
		}
		page, err := s.Tasks(ctx, job, q)
		if err != nil {
			return nil, 0, err
		}
		list = append(list, page.Tasks...)
		if page.Next <= q.From {
			return list, 0, nil
		}
		if limit > 0 && len(list) >= limit {
			return list[:limit], page.Next, nil
		}
		q.From = page.Next
	}
}

// tasksOnly is the part of Service that lists tasks.
type tasksOnly interface {
	Tasks(ctx context.Context, job string, q jobs.TaskQuery) (jobs.TaskPage, error)
}

// taskTeller also tells of the job.
type taskTeller interface {
	tasksOnly
	Job(ctx context.Context, job string) (jobs.Status, error)
}

// Again returns the spec of a job that is run again.
func Again(ctx context.Context, s taskTeller, job string, failed bool) (jobs.Spec, error) {
	st, err := s.Job(ctx, job)
	spec := st.Spec
	switch {
	case err != nil:
		return spec, err
	case st.Gone() != nil:
		return spec, st.Gone()
	case spec.Stdin && st.StdinBytes > 0:
		return spec, fmt.Errorf("job %s read standard input, which is not kept: start it again with 'zorilla run'", st.ID.Short())
	}
	spec.After, spec.Search.Begin, spec.Stdin, spec.Key = nil, time.Time{}, false, ""
	if !failed {
		return spec, nil
	}
	list, _, err := AllTasks(ctx, s, string(st.ID), jobs.TaskQuery{Failed: true})
	if err != nil {
		return spec, err
	}
	if len(list) == 0 || spec.Array == nil {
		return spec, fmt.Errorf("job %s has no failed tasks", st.ID.Short())
	}
	ids := make([]int, len(list))
	for i, t := range list {
		ids[i] = t.ID
	}
	spec.Array = &jobs.Array{Tasks: jobs.TaskRuns(ids), Lines: spec.Array.Lines}
	spec.Max = min(spec.Max, len(ids))
	return spec, nil
}
