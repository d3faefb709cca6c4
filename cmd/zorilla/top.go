package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"zorilla/cmd/zorilla/top"
	"zorilla/jobs"
	"zorilla/node/api"
)

func topCommand(con *console) *cli.Command {
	return clientCommand(cli.Command{
		Name:      "top",
		Category:  groupNet,
		Usage:     "show jobs and nodes as they change, on the whole terminal",
		UsageText: "zorilla top [options]",
		Description: `
Jobs, those that have not ended first, and nodes, with how busy they are; the line below
the list is about what is selected.

tab         jobs or nodes          enter  the status of a job, or all of a node
up, down    select (also j, k)     l      follow the output of a job
/           only what has a text   c      end a job, after a question
a           all jobs that ended    r      ask at once
q           back, or quit

In a pipe 'zorilla ps' and 'zorilla nodes' tell the same once. With NO_COLOR in the
environment it has no colours.`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "members", Usage: "show the jobs of every member of the network"},
			&cli.StringFlag{Name: "every", Value: "2s", DefaultText: "2s", Usage: "ask the node every `TIME`, 500ms or more"},
		},
		Action: askNode(func(c *cli.Context, client *api.Client) error { return topAction(con, c, client) }),
	})
}

func topAction(con *console, c *cli.Context, client *api.Client) error {
	every, err := parseTime("--every", c.String("every"))
	if err != nil {
		return usage(c, "%v", err)
	}
	if every < 500*time.Millisecond || every > time.Hour {
		return usage(c, "--every %s: want 500ms to 1h", c.String("every"))
	}
	in, isFile := con.stdin.(*os.File)
	out, isTerminal := con.stdout.(*os.File)
	if !isFile || !isTerminal || !term.IsTerminal(int(in.Fd())) || !onTerminal(out) || os.Getenv("TERM") == "dumb" {
		return usage(c, "top needs a terminal: 'zorilla ps' and 'zorilla nodes' print the same once")
	}
	signals, stop := catchFatal()
	defer stop()
	ctx, caught := untilSignal(c.Context, signals) // Ctrl-C and Ctrl-\ are keys
	err = top.Run(ctx, top.Options{
		Service: client, Follow: follows(client), Every: every, Members: c.Bool("members"), Colour: colours(out), In: in, Out: out,
		Status: statusText,
	})
	if sig := caught(); sig != nil {
		return signalled(sig)
	}
	return err
}

// follows gives the output of a job as it comes, also while its node is started again.
func follows(service api.Service) top.Follow {
	return func(ctx context.Context, job jobs.ID, give func(jobs.Output) error, say func(format string, args ...any)) error {
		line := &lifeline{service: service, job: job, tell: say}
		return line.pieces(ctx, api.OutputQuery{Rank: -1, Follow: true}, give)
	}
}

// statusText is what status prints of a job.
func statusText(st jobs.Status) string {
	var b bytes.Buffer
	if err := (&console{stdout: &b}).printStatus(st, time.Now(), false); err != nil {
		return fmt.Sprint(err)
	}
	return b.String()
}
