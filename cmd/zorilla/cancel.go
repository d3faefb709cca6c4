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
			names, err := wholeJobs(c)
			if err != nil {
				return err
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
