package main

import (
	"github.com/urfave/cli/v2"

	"zorilla/node/api"
)

func cancelCommand(con *console) *cli.Command {
	return clientCommand(cli.Command{
		Name:      "cancel",
		Category:  groupJobs,
		Usage:     "end jobs",
		UsageText: "zorilla cancel [options] JOB...",
		Description: `
A job that has ended already is no error.

zorilla cancel last`,
		Action: askEachJob((*api.Client).Cancel),
	})
}
