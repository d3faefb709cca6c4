package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v2"

	"zorilla/jobs"
)

func (sh *shell) waitCommand() *cli.Command {
	return clientCommand(cli.Command{
		Name:      "wait",
		Category:  groupJobs,
		Usage:     "wait for the end of jobs and exit with their code",
		UsageText: "zorilla wait [options] JOB[:RANK]...",
		Description: `
With several jobs the highest exit code counts.

zorilla wait last && zorilla get last`,
		Flags: []cli.Flag{&cli.BoolFlag{Name: "q", Aliases: []string{"quiet"}, Usage: "no messages but errors"}},
		Action: func(c *cli.Context) error {
			if !c.Args().Present() {
				return usage(c, "which job? name it by its ID, the first characters of it, or last")
			}
			client, err := sh.client(c)
			if err != nil {
				return err
			}
			defer client.Close()
			code := 0
			for _, arg := range c.Args().Slice() {
				job, rank, err := splitJob(c, arg)
				if err != nil {
					return err
				}
				ctx, stop := context.WithCancel(c.Context)
				statuses, lost := watch(ctx, client, job)
				line, one, ended := "", 0, false
				missing := error(nil)
				for st := range statuses {
					if missing = hasOutput(st, rank); missing != nil {
						break
					}
					if st.Spec.Array != nil && rank >= 0 {
						line, one, ended, missing = taskEnded(ctx, client, st, rank)
					} else {
						line, one, ended = ending(st, rank)
					}
					if ended || missing != nil {
						break
					}
				}
				stop()
				if missing != nil {
					return missing
				}
				if !ended {
					return fmt.Errorf("wait for %s: %w", arg, <-lost)
				}
				if one != 0 && !c.Bool("q") {
					sh.say("%s", line)
				}
				code = max(code, one)
			}
			if code == 0 {
				return nil
			}
			return exitCode(code)
		},
	})
}

// hasRank returns an error if the job will never have the rank.
func hasRank(st jobs.Status, rank int) error {
	if rank >= st.Spec.Max {
		return fmt.Errorf("job %s has no rank %d", st.ID.Short(), rank)
	}
	return nil
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
