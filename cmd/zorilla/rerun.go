package main

import (
	"github.com/urfave/cli/v2"

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
			spec, err := api.Again(c.Context, client, job, c.Bool("failed"))
			if err != nil {
				return err
			}
			return submitOnly(c, con, client, spec, nil)
		}),
	})
}
