package api

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"zorilla/jobs"
	"zorilla/transfer"
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

// taskTeller also returns the job and its own node.
type taskTeller interface {
	tasksOnly
	Node(ctx context.Context) (NodeInfo, error)
	Job(ctx context.Context, job string) (jobs.Status, error)
}

// Rerun says how a job is run again.
type Rerun struct {
	Failed      bool // only the tasks that have failed
	AsSubmitted bool // with what is left out of a job of another node
}

// Again returns the spec of a job that is run again. It becomes a job of this node, which grants
// more to its own user: left lists, as options, what was left out of a job of another node.
func Again(ctx context.Context, s taskTeller, job string, how Rerun) (spec jobs.Spec, left []string, err error) {
	st, err := s.Job(ctx, job)
	spec = st.AsSubmitted()
	switch {
	case err != nil:
		return spec, nil, err
	case st.Gone() != nil:
		return spec, nil, st.Gone()
	case spec.Stdin && st.StdinBytes > 0:
		return spec, nil, fmt.Errorf("job %s read standard input, which is not kept: start it again with 'zorilla run'", st.ID.Short())
	}
	self, err := s.Node(ctx)
	if err != nil {
		return spec, nil, err
	}
	spec.After, spec.Search.Begin, spec.Stdin, spec.Key = nil, time.Time{}, false, ""
	if st.ID.Origin() != self.ID {
		left = modest(&spec, how.AsSubmitted)
	}
	if !how.Failed {
		return spec, left, nil
	}
	list, _, err := AllTasks(ctx, s, string(st.ID), jobs.TaskQuery{Failed: true})
	if err != nil {
		return spec, nil, err
	}
	if len(list) == 0 || spec.Array == nil {
		return spec, nil, fmt.Errorf("job %s has no failed tasks", st.ID.Short())
	}
	ids := make([]int, len(list))
	for i, t := range list {
		ids[i] = t.ID
	}
	spec.Array = &jobs.Array{Tasks: jobs.TaskRuns(ids), Lines: spec.Array.Lines}
	spec.Max = min(spec.Max, len(ids))
	return spec, left, nil
}

// modest removes from a job of another node what this node grants only to its own user: files of
// this machine, and hidden names of output files, which the user may wish for. The command for its
// end is always removed, and so is access to a network that not every job has.
func modest(spec *jobs.Spec, wished bool) (left []string) {
	spec.OnEnd = ""
	if spec.Net != jobs.NetNone && spec.Net != jobs.NetJob {
		spec.Net = ""
	}
	if wished {
		return nil
	}
	for _, m := range spec.Mounts {
		left = append(left, "--mount "+m)
	}
	spec.Mounts = nil
	var plain []string
	for _, glob := range spec.Outputs {
		if transfer.NamesHidden(glob) {
			left = append(left, "-o "+glob)
		} else {
			plain = append(plain, glob)
		}
	}
	spec.Outputs = plain
	return left
}
