package main

import (
	"errors"
	"syscall"

	"github.com/urfave/cli/v2"

	"zorilla/jobs"
	"zorilla/node/api"
)

func logsCommand(con *console) *cli.Command {
	return clientCommand(cli.Command{
		Name:      "logs",
		Category:  groupJobs,
		Usage:     "print the output of a job or of one rank",
		UsageText: "zorilla logs [options] JOB[:RANK]",
		Description: `
Standard output goes to standard output, standard error to standard error.

Of an array: tasks as they ended, each as a whole; JOB:N is its task N.

zorilla logs -f -l last
zorilla logs --task 17 last
zorilla logs k7f3q:0 2>/dev/null`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "f", Aliases: []string{"follow"}, Usage: "go on until the job has ended"},
			&cli.BoolFlag{Name: "l", Aliases: []string{"label"}, Usage: "begin each line with its rank, or its task"},
			&cli.IntFlag{Name: "task", Value: -1, DefaultText: "all", Usage: "of an array: only task `N`"},
		},
		Action: askRank(func(c *cli.Context, client *api.Client, job string, rank int) error {
			if c.IsSet("task") {
				rank = c.Int("task")
			}
			st, err := client.Job(c.Context, job)
			if err == nil {
				err = st.Gone()
			}
			if err == nil && rank >= 0 { // it may be a rank that is still to come
				err = hasOutput(st, rank)
			}
			if err != nil {
				return err
			}
			out := newPrinter(con.stdout, con.stderr, c.Bool("l"))
			_, stop := catchPipe() // logs | head ends quietly
			defer stop()
			if c.Bool("f") {
				line := &lifeline{service: client, job: st.ID, tell: con.say}
				err = line.output(c.Context, api.OutputQuery{Rank: rank, Follow: true}, out)
			} else {
				err = client.Output(c.Context, string(st.ID), api.OutputQuery{Rank: rank}, out.print)
			}
			if err == nil || errors.Is(err, jobs.ErrDamaged) { // which comes after all that is left
				err = errors.Join(out.finish(), err)
			}
			if errors.Is(err, syscall.EPIPE) {
				return exitCode(128 + int(syscall.SIGPIPE))
			}
			return err
		}),
	})
}
