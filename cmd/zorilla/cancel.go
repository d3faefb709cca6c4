package main

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"
)

func (sh *shell) cancelCommand() *cli.Command {
	return clientCommand(cli.Command{
		Name:      "cancel",
		Category:  groupJobs,
		Usage:     "end jobs",
		UsageText: "zorilla cancel [options] JOB...",
		Description: `
A job that has ended already is no error.

zorilla cancel last`,
		Action: func(c *cli.Context) error {
			if !c.Args().Present() {
				return usage(c, "which job? name it by its ID, the first characters of it, or last")
			}
			var names []string
			for _, arg := range c.Args().Slice() {
				job, rank, err := splitJob(c, arg)
				if err != nil {
					return err
				}
				if rank >= 0 {
					return usage(c, "cancel is about whole jobs: leave out :%d", rank)
				}
				names = append(names, job)
			}
			client, err := sh.client(c)
			if err != nil {
				return err
			}
			defer client.Close()
			var all error
			for _, job := range names {
				if err := client.Cancel(c.Context, job); err != nil {
					all = errors.Join(all, fmt.Errorf("cancel: %w", err))
				}
			}
			return all
		},
	})
}
