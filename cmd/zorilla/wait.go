package main

import (
	"cmp"
	"context"
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"zorilla/jobs"
	"zorilla/jobs/work"
	"zorilla/node/api"
)

func waitCommand(con *console) *cli.Command {
	return clientCommand(cli.Command{
		Name:      "wait",
		Category:  groupJobs,
		Usage:     "wait for the end of jobs and exit with their code",
		UsageText: "zorilla wait [options] JOB[:RANK]...",
		Description: `
With several jobs the highest exit code counts. That of a job is known much longer
than its output is kept, see zorilla rm.

zorilla wait --fetch last
zorilla wait $a $b && zorilla get $a`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "fetch", Usage: "then fetch the output files, as get does"}, intoFlag(), forceFlag(),
			quietFlag(), progressFlag(), jsonFlag(),
		},
		Action: func(c *cli.Context) error {
			if err := con.showProgress(c); err != nil {
				return err
			}
			if !c.Args().Present() {
				return usage(c, whichJob)
			}
			return with(c, func(client *api.Client) error {
				code, all := 0, []waited{}
				for _, arg := range c.Args().Slice() {
					one, err := waitFor(con, c, client, arg)
					if err != nil {
						return err
					}
					code = max(code, one.ExitCode)
					all = append(all, one)
				}
				if c.Bool("json") {
					if err := con.printJSON(all); err != nil {
						return err
					}
				}
				if code == 0 {
					return nil
				}
				return exitCode(code)
			})
		},
	})
}

// waited is what wait --json tells of a job, or of a rank or task of it.
type waited struct {
	jobs.Summary
	Rank *int `json:"rank,omitempty"`
}

func outcome(st jobs.Status, rank, code int) waited {
	w := waited{Summary: st.Summary()}
	if w.ExitCode = code; rank >= 0 {
		w.Rank = &rank
	}
	return w
}

// waitFor waits for the end of JOB or JOB:RANK and returns how it ended.
func waitFor(con *console, c *cli.Context, s api.Service, arg string) (w waited, err error) {
	job, rank, err := splitJob(c, arg)
	if err != nil {
		return w, err
	}
	var st jobs.Status
	if job, err = find(c, s, job); err == nil {
		st, err = s.Job(c.Context, job) // "last" may be another one later
	}
	if err != nil {
		return w, fmt.Errorf("wait for %s: %w", arg, err)
	}
	if err := hasOutput(st, rank); err != nil && st.Gone() == nil {
		return w, err
	}
	quiet := c.Bool("q")
	line := &lifeline{service: s, job: st.ID, tell: func(format string, args ...any) {
		if !quiet {
			con.say(format, args...)
		}
	}}
	ctx, stop := context.WithCancel(c.Context)
	defer stop()
	statuses, lost := watch(ctx, line)
	text, code, ended := "", 0, false
	for st = range statuses {
		if st.Spec.Array != nil && rank >= 0 {
			text, code, ended, err = taskEnded(ctx, line, st, rank)
		} else {
			text, code, ended = ending(st, rank)
		}
		if ended || err != nil {
			break
		}
	}
	if err != nil {
		return w, err
	}
	if !ended {
		return w, fmt.Errorf("wait for %s: %w: 'zorilla attach %s' comes back to it", arg, <-lost, line.job.Short())
	}
	if gone := st.Gone(); gone != nil {
		if c.Bool("fetch") || rank >= 0 {
			return w, gone
		}
		line.tell("%v", gone)
	}
	if c.Bool("fetch") {
		want, err := wantedOf(c, s, &st, rank)
		if err == nil {
			err = fetch(c.Context, con, line, st, want, nil)
		}
		if err != nil {
			return w, err
		}
	}
	if code != 0 {
		line.tell("%s", text)
	}
	return outcome(st, rank, code), nil
}

// ending returns the exit code of the job, or of the rank if it is not -1,
// once that has ended.
func ending(st jobs.Status, rank int) (line string, code int, ended bool) {
	if rank >= 0 {
		for _, w := range st.Workers {
			if w.Rank == rank && w.State == jobs.WorkerEnded && w.Exit != nil && (st.Spec.Replicas <= 1 || w.Won) {
				return fmt.Sprintf("rank %d of job %s %s, exit code %d", rank, st.ID.Short(), w.Exit.Cause, w.Exit.Code), w.Exit.Code, true
			}
		}
	}
	return endLine(st), st.ExitCode, st.State.Final()
}

// taskEnded returns how the task of an array ended, once it has.
func taskEnded(ctx context.Context, l *lifeline, st jobs.Status, task int) (line string, code int, ended bool, err error) {
	numbers := work.NumberTasks(st.Spec.Array.Tasks)
	place, _ := numbers.Place(task)
	var page jobs.TaskPage
	err = l.try(ctx, func() (err error) {
		page, err = l.service.Tasks(ctx, string(st.ID), jobs.TaskQuery{From: place, Limit: 1})
		return err
	})
	switch {
	case err != nil:
		return "", 0, false, err
	case len(page.Tasks) == 1 && page.Tasks[0].Done:
		code = page.Tasks[0].Code
		return fmt.Sprintf("task %d of job %s ended with %d", task, st.ID.Short(), code), code, true, nil
	}
	return fmt.Sprintf("task %d was not done: %s", task, endLine(st)), max(st.ExitCode, 1), st.State.Final(), nil
}

// awaitStart waits until rank 0 of a job runs, or until a signal comes.
func (con *console) awaitStart(ctx context.Context, client *api.Client, job string, signals <-chan os.Signal) error {
	ctx, caught := untilSignal(ctx, signals)
	err := con.started(ctx, client, job)
	if sig := caught(); sig != nil {
		return signalled(sig)
	}
	return err
}

func (con *console) started(ctx context.Context, client *api.Client, job string) error {
	told := ""
	for version := uint64(0); ; {
		st, v, err := client.Await(ctx, job, version)
		switch {
		case err != nil:
			return err
		case st.State.Final():
			con.say("%s", endLine(st))
			return exitCode(cmp.Or(st.ExitCode, exitFailure))
		case len(st.Workers) > 0 && st.Workers[0].State == jobs.WorkerRunning:
			con.say("job %s holds %s", st.ID.Short(), count(len(st.Workers), "rank"))
			return nil
		case st.State == jobs.Pending && st.Reason != told && version > 1:
			told = st.Reason
			con.say("job %s has not started: %s", st.ID.Short(), told)
		}
		version = v
	}
}
