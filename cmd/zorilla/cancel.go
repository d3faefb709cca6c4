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

func rmCommand(con *console) *cli.Command {
	return clientCommand(cli.Command{
		Name:      "rm",
		Category:  groupJobs,
		Usage:     "forget jobs that have ended, with their output and files",
		UsageText: "zorilla rm [options] JOB...",
		Description: `
Only at the node where the job was submitted. It keeps results by itself for a week
('zorilla node --keep-for') and as long as there is room (--keep-outputs), those
that nobody has asked for at least a day; ID, state and exit code ten times as long.

zorilla rm last`,
		Action: askEachJob((*api.Client).Remove),
	})
}
