package main

import (
	"github.com/urfave/cli/v2"

	"zorilla/node/api"
)

func attachCommand(con *console) *cli.Command {
	return clientCommand(cli.Command{
		Name:      "attach",
		Category:  groupJobs,
		Usage:     "stay with a job from now on, as run does",
		UsageText: "zorilla attach [options] JOB",
		Description: `
Streams all of the output, from its beginning, waits, fetches the output files
and ends with the job's exit code, also if the job has ended already. Ctrl-C and
Ctrl-\ do what they do in run. Output files come to the directory where attach is
called, or to --into; those of a job that was submitted at another node to a directory
of their own there, NAME-ID.

zorilla attach last
zorilla attach --into results k7f3q`,
		Flags: followFlags(),
		Action: askJob(func(c *cli.Context, client *api.Client, job string) error {
			if err := con.showProgress(c); err != nil {
				return err
			}
			st, err := client.Job(c.Context, job)
			if err == nil {
				err = st.Gone()
			}
			if err != nil {
				return err
			}
			if err := followable(c, &st.Spec); err != nil {
				return err
			}
			want, err := wantedOf(c, client, &st, -1)
			if err != nil {
				return err
			}
			signals, stop := catchFatal()
			defer stop()
			return newFollower(con, client, st.ID).follow(c, want, signals)
		}),
	})
}
