package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v2"

	"zorilla/jobs"
	"zorilla/node/api"
)

func rerunCommand(con *console) *cli.Command {
	return clientCommand(cli.Command{
		Name:      "rerun",
		Category:  groupJobs,
		Usage:     "submit a job again, or the failed tasks of an array, and print the new ID",
		UsageText: "zorilla rerun [options] JOB",
		Description: `
The new job has the options and the inputs of the old one, as they were then. What
came on standard input is not kept: a job that read some cannot be submitted again.

zorilla rerun --failed last`,
		Flags: []cli.Flag{&cli.BoolFlag{Name: "failed", Usage: "only the tasks that have failed"}, jsonFlag()},
		Action: askJob(func(c *cli.Context, client *api.Client, job string) error {
			spec, err := again(c.Context, client, job, c.Bool("failed"))
			if err != nil {
				return err
			}
			return submitOnly(c, con, client, spec, nil)
		}),
	})
}

// again returns the spec of a job that is run again.
func again(ctx context.Context, s api.Service, job string, failed bool) (jobs.Spec, error) {
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
	spec.After, spec.Stdin, spec.Key = nil, false, ""
	if !failed {
		return spec, nil
	}
	list, _, err := api.AllTasks(ctx, s, string(st.ID), jobs.TaskQuery{Failed: true})
	if err != nil {
		return spec, err
	}
	if len(list) == 0 {
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
