package main

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/urfave/cli/v2"
)

func (sh *shell) attachCommand() *cli.Command {
	return clientCommand(cli.Command{
		Name:      "attach",
		Category:  groupJobs,
		Usage:     "stay with a job from now on, as run does",
		UsageText: "zorilla attach [options] JOB",
		Description: `
Streams all of the output, from its beginning, waits, fetches the output files
and ends with the job's exit code, also if the job has ended already. Ctrl-C and
Ctrl-\ do what they do in run. Output files come to the directory where attach is
called, or to --into.

zorilla attach last
zorilla attach --into results k7f3q`,
		Flags: followFlags(),
		Action: func(c *cli.Context) error {
			job, err := wholeJob(c)
			if err != nil {
				return err
			}
			client, err := sh.client(c)
			if err != nil {
				return err
			}
			defer client.Close()
			st, err := client.Job(c.Context, job)
			if err == nil {
				err = st.Gone()
			}
			if err != nil {
				return err
			}
			signals := make(chan os.Signal, 4)
			signal.Notify(signals, syscall.SIGPIPE) // or a closed standard output would end us silently
			defer signal.Stop(signals)
			return newFollower(sh, client, st.ID).follow(c, signals)
		},
	})
}
