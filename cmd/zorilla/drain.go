package main

import (
	"context"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"zorilla/jobs"
	"zorilla/node/api"
)

func drainCommand(con *console) *cli.Command {
	return clientCommand(cli.Command{
		Name:      "drain",
		Category:  groupNet,
		Usage:     "make the node of this machine take no new work",
		UsageText: "zorilla drain [options]",
		Description: `
Workers that the node has go on to their end, unless --now is given: then they
are ended, malleable jobs get them replaced elsewhere, and rigid ones fail or
are retried. Programs get SIGTERM, and SIGKILL 5 s later; those that want notice
of their end (--signal of their jobs) have it for up to 10 minutes before, or
not, with --discard. It lasts until --undo, or until the node is started again.
Jobs that were submitted here go on elsewhere as long as the node runs.

zorilla drain             # before work on the machine
zorilla drain --exit      # stop the node when the last worker has finished
zorilla drain --now       # the machine is needed at once
zorilla drain --undo`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "now", Usage: "end the workers instead of letting them finish"},
			&cli.BoolFlag{Name: "discard", Usage: "with --now: programs have no notice of their end, also those that have some now"},
			&cli.BoolFlag{Name: "exit", Usage: "stop the node when no worker is left, and wait for that"},
			&cli.BoolFlag{Name: "undo", Usage: "take work again"},
			jsonFlag(),
		},
		Action: askNode(func(c *cli.Context, client *api.Client) error {
			d := api.Drain{Now: c.Bool("now"), Discard: c.Bool("discard"), Exit: c.Bool("exit"), Undo: c.Bool("undo")}
			switch {
			case d.Discard && !d.Now:
				return usage(c, "--discard is about workers that are ended: want --now with it")
			case d.Check() != nil:
				return usage(c, "--undo goes with neither --now nor --exit")
			}
			told, err := client.Drain(c.Context, d)
			if err != nil {
				return fmt.Errorf("drain: %w", err)
			}
			if c.Bool("json") {
				if err := con.printJSON(told); err != nil {
					return err
				}
			} else {
				con.say("%s", drainText(d, told))
			}
			if d.Exit {
				return awaitExit(c.Context, client)
			}
			return nil
		}),
	})
}

// drainText says what happens now.
func drainText(d api.Drain, told jobs.Drained) string {
	text := "no new work is taken"
	switch {
	case !told.Draining:
		return "work is taken again"
	case told.Workers == 0:
		text += ", and no worker is here"
	case d.Now:
		text += "; " + count(told.Workers, "worker") + " are ended"
	default:
		text += "; " + count(told.Workers, "worker") + " may finish"
	}
	if d.Exit && told.Jobs > 0 {
		text += "; of " + count(told.Jobs, "job") + " submitted here that have not ended nothing is heard until the node is started again"
	}
	return text
}

// exitPoll is how often awaitExit asks.
const exitPoll = 20 * time.Millisecond

// awaitExit returns when the node does not answer any more.
func awaitExit(ctx context.Context, client *api.Client) error {
	for {
		if _, err := client.Node(ctx); err != nil {
			return ctx.Err()
		}
		select {
		case <-time.After(exitPoll):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
