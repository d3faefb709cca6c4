package main

import (
	"errors"
	"math"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"zorilla/jobs"
	"zorilla/jobs/work"
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
zorilla logs --stderr --tail 20 last
zorilla logs --task 17 last
zorilla logs --attempt 1 k7f3q:2
zorilla logs k7f3q:0 2>/dev/null
zorilla logs -t --since 10m last

Times are those at which lines came to the node where the job was submitted, by its
clock, to a tenth of a second. What waited while that node was away came afterwards.`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "f", Aliases: []string{"follow"}, Usage: "go on until the job has ended"},
			&cli.BoolFlag{Name: "l", Aliases: []string{"label"}, Usage: "begin each line with its rank, or its task"},
			&cli.BoolFlag{Name: "stdout", Usage: "only standard output"},
			&cli.BoolFlag{Name: "stderr", Usage: "only standard error"},
			&cli.BoolFlag{Name: "timestamps", Aliases: []string{"t"}, Usage: "begin each line with the time at which it came; - where that is not known"},
			&cli.StringFlag{Name: "since", Usage: "only lines that came within `TIME`, such as 10m, or since then, as in '2006-01-02 15:04'"},
			&cli.IntFlag{Name: "tail", DefaultText: "all", Usage: "the last `N` lines of each rank, or task; with -f also what comes then"},
			&cli.IntFlag{Name: "attempt", DefaultText: "the one that counts",
				Usage: "attempt `N` of each rank, or try N of each task, from 1 (--retries, lost nodes)"},
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
			_, stop := catchPipe() // logs | head ends quietly
			defer stop()
			err = con.printLogs(c, client, st.ID, rank)
			if errors.Is(err, syscall.EPIPE) {
				return exitCode(128 + int(syscall.SIGPIPE))
			}
			return err
		}),
	})
}

// printLogs prints the output of a job as the options of logs say.
func (con *console) printLogs(c *cli.Context, client *api.Client, job jobs.ID, rank int) error {
	out := newPrinter(con.stdout, con.stderr, c.Bool("l"))
	if c.Bool("stdout") != c.Bool("stderr") {
		out.only(map[bool]work.Stream{true: work.Stdout, false: work.Stderr}[c.Bool("stdout")])
	}
	out.times = c.Bool("timestamps")
	q := api.OutputQuery{Rank: rank, Times: out.times}
	if text := c.String("since"); text != "" {
		from, err := since("--since", text, time.Now())
		if err != nil {
			return usage(c, "%v", err)
		}
		q.Since = max(from.UnixMilli(), 1)
	}
	follow := c.Bool("f")
	if c.IsSet("attempt") {
		switch q.Attempt = c.Int("attempt"); {
		case q.Attempt < 1 || q.Attempt > math.MaxInt32:
			return usage(c, "--attempt %d: want 1 or more", q.Attempt)
		case follow:
			return usage(c, "--attempt prints what there is of an attempt: without -f")
		}
	}
	var err error
	if c.IsSet("tail") {
		if out.tail = c.Int("tail"); out.tail < 1 {
			return usage(c, "--tail %d: want 1 or more", out.tail)
		}
		err = client.Output(c.Context, string(job), q, out.print)
		if err == nil || errors.Is(err, jobs.ErrDamaged) {
			err = errors.Join(out.release(), err)
		}
		follow = follow && err == nil
	} else if !follow {
		err = client.Output(c.Context, string(job), q, out.print)
	}
	if follow {
		q.Follow = true
		line := &lifeline{service: client, job: job, tell: con.say}
		err = line.output(c.Context, q, out)
	}
	if err == nil || errors.Is(err, jobs.ErrDamaged) { // which comes after all that is left
		err = errors.Join(out.finish(), err)
	}
	return err
}
