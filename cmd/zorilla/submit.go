package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"zorilla/cmd/zorilla/columns"
	"zorilla/cmd/zorilla/jobfile"
	"zorilla/jobs"
	"zorilla/node/api"
	"zorilla/transfer"
)

func submitCommand(con *console) *cli.Command {
	return clientCommand(cli.Command{
		Name:      "submit",
		Category:  groupJobs,
		Usage:     "start a program on many machines and print the job's ID",
		UsageText: "zorilla submit [options] [--] COMMAND [ARGUMENT...]\nzorilla submit [options] FILE.toml [options] [-- ARGUMENT...]",
		Description: `
Takes the options of run, stages the inputs, prints the ID alone and returns. If
the connection to the node breaks it tries again for two minutes, and the job is
not run twice; nor is it if you submit it again with the same --key. Ctrl-C before the
ID is printed leaves no job; of one with your --key it says that it goes on.

A script may have options of its own, in lines before its first command:

#!/bin/sh
#ZORILLA -n 6 --mem 2G
#ZORILLA -o 'out-*'

It is sent along then, however it is named, and need not be executable. What is typed
wins over what it says; options that only run has are for run. Options that give it rights
of yours, such as --on-end, --mount, --into, or -i of a file elsewhere, are refused unless
you type --trust-script before it.

FILE.toml is a job file, which has the same and more, groups of workers among it, and is
trusted as little; 'zorilla check FILE.toml' only looks at it.

id=$(zorilla submit -n 2..16 -o 'out-*' -- ./prog data)
zorilla wait $id && zorilla get $id
zorilla submit -t 1h job.sh
zorilla submit job.toml -t 1h`,
		Flags: append(append(jobFlags(), arrayFlags()...),
			progressFlag(), jsonFlag(), &cli.BoolFlag{Name: "parsable", Hidden: true}), // what submit does anyway
		Action: func(c *cli.Context) error {
			if err := con.showProgress(c); err != nil {
				return err
			}
			if s := c.String("stdin"); s != "" && s != "none" {
				return usage(c, "--stdin %s: submit does not stay to send it: use run, or make it an input with -i %s", s, s)
			}
			r, err := requestOf(c, c.Args().Slice(), con.stdin)
			if err != nil {
				return err
			}
			defer r.close()
			if c.Bool(jobfile.PrintOption) {
				return printFile(c, r)
			}
			return with(c, func(client *api.Client) error {
				r.hint(con, true)
				return submitOnly(c, con, client, r.spec, r.inputs)
			})
		},
	})
}

// submitOnly submits a job and prints its ID: with --json the whole one. A job whose ID could
// not be told is cancelled, or it is told in the error.
func submitOnly(c *cli.Context, con *console, s api.Service, spec jobs.Spec, inputs []transfer.Input) error {
	signals, stop := catchFatal()
	defer stop()
	id, err := submit(c.Context, con, s, spec, inputs, signals, left)
	if err != nil {
		return err
	}
	if c.Bool("json") {
		err = con.printJSON(map[string]jobs.ID{"id": id})
	} else {
		_, err = fmt.Fprintln(con.stdout, id.Short())
	}
	if err != nil {
		return fmt.Errorf("job %s was submitted, but its ID cannot be printed: %w", id.Short(), err)
	}
	return nil
}

func rerunCommand(con *console) *cli.Command {
	return clientCommand(cli.Command{
		Name:      "rerun",
		Category:  groupJobs,
		Usage:     "submit a job again, or the failed tasks of an array, and print the new ID",
		UsageText: "zorilla rerun [options] JOB",
		Description: `
The new job has the options and the inputs of the old one, as they were then. What
came on standard input is not kept: a job that read some cannot be submitted again.
Of a job that was submitted at another node --mount is left out, and hidden names of -o:
they would count as yours. What was left out is named. Its --on-end never comes along.

zorilla rerun --failed last`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "failed", Usage: "only the tasks that have failed"},
			&cli.BoolFlag{Name: "as-submitted", Usage: "of a job of another node: keep what would be left out, as if you had typed it"}, jsonFlag(),
		},
		Action: askJob(func(c *cli.Context, client *api.Client, job string) error {
			spec, left, err := api.Again(c.Context, client, job, api.Rerun{Failed: c.Bool("failed"), AsSubmitted: c.Bool("as-submitted")})
			if err != nil {
				return err
			}
			if len(left) > 0 {
				con.say("job %s was submitted at another node: left out %s: 'zorilla rerun --as-submitted' keeps that",
					jobs.ID(job).Short(), columns.Clean(strings.Join(left, ", ")))
			}
			return submitOnly(c, con, client, spec, nil)
		}),
	})
}
