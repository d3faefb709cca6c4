package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"zorilla/jobs"
	"zorilla/node"
	"zorilla/node/api"
)

// clientFlags name the node to talk to. Their variables are read by client,
// because a --state that was typed has to win over a $ZORILLA_NODE.
func clientFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "node", Usage: "talk to the node at `SOCKET|URL` [$ZORILLA_NODE]"},
		&cli.StringFlag{Name: "state", Usage: "talk to the node of this machine with the state directory `DIR` [$ZORILLA_STATE]"},
	}
}

func jsonFlag() cli.Flag { return &cli.BoolFlag{Name: "json", Usage: "print one JSON document"} }

// ask is the action of a command without arguments that asks the node.
func (sh *shell) ask(f func(*cli.Context, *api.Client) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		if err := noArguments(c); err != nil {
			return err
		}
		return sh.with(c, func(client *api.Client) error { return f(c, client) })
	}
}

// with calls f with the node that the command is about.
func (sh *shell) with(c *cli.Context, f func(*api.Client) error) error {
	client, err := sh.client(c)
	if err != nil {
		return err
	}
	defer client.Close()
	return f(client)
}

// ofJobs is the action of a command that does the same to each of several jobs.
func (sh *shell) ofJobs(do func(*api.Client, context.Context, string) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		names, err := wholeJobs(c)
		if err != nil {
			return err
		}
		return sh.with(c, func(client *api.Client) error {
			var all error
			for _, job := range names {
				if err := do(client, c.Context, job); err != nil {
					all = errors.Join(all, fmt.Errorf("%s: %w", c.Command.Name, err))
				}
			}
			return all
		})
	}
}

// client returns the node that the command is about.
func (sh *shell) client(c *cli.Context) (*api.Client, error) {
	for _, address := range []string{c.String("node"), socketOf(c.String("state")), os.Getenv("ZORILLA_NODE"), socketOf(os.Getenv("ZORILLA_STATE"))} {
		if address != "" {
			return api.Dial(address)
		}
	}
	state, err := node.DefaultState()
	if err != nil {
		return nil, err
	}
	return api.Dial(socketOf(state))
}

func socketOf(state string) string {
	if state == "" {
		return ""
	}
	return node.Socket(state)
}

// oneJob returns the only argument, JOB[:RANK]; rank is -1 for all of it.
func oneJob(c *cli.Context) (job string, rank int, err error) {
	switch {
	case c.NArg() == 0:
		return "", 0, usage(c, "which job? name it by its ID, the first characters of it, or last")
	case c.NArg() > 1:
		return "", 0, usage(c, "unexpected argument %q: want one job", c.Args().Get(1))
	}
	return splitJob(c, c.Args().First())
}

// wholeJob is oneJob for commands that know no ranks.
func wholeJob(c *cli.Context) (string, error) {
	job, rank, err := oneJob(c)
	if err == nil && rank >= 0 {
		err = usage(c, "%s is about whole jobs: leave out :%d", c.Command.Name, rank)
	}
	return job, err
}

// wholeJobs returns the arguments of commands that take several jobs and know no
// ranks.
func wholeJobs(c *cli.Context) (names []string, err error) {
	if !c.Args().Present() {
		return nil, usage(c, "which job? name it by its ID, the first characters of it, or last")
	}
	for _, arg := range c.Args().Slice() {
		job, rank, err := splitJob(c, arg)
		if err != nil {
			return nil, err
		}
		if rank >= 0 {
			return nil, usage(c, "%s is about whole jobs: leave out :%d", c.Command.Name, rank)
		}
		names = append(names, job)
	}
	return names, nil
}

func splitJob(c *cli.Context, arg string) (job string, rank int, err error) {
	job, text, found := strings.Cut(arg, ":")
	if !found {
		return job, -1, nil
	}
	rank, err = strconv.Atoi(text)
	if err != nil || rank < 0 || rank > jobs.MaxTaskID {
		return "", 0, usage(c, "%s: want JOB, JOB:RANK, or JOB:TASK of an array", arg)
	}
	return job, rank, nil
}

func noArguments(c *cli.Context) error {
	if c.Args().Present() {
		return usage(c, "unexpected argument %q", c.Args().First())
	}
	return nil
}
