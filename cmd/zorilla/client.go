package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"zorilla/cmd/zorilla/selector"
	"zorilla/jobs"
	"zorilla/jobs/session/workerapi"
	"zorilla/node"
	"zorilla/node/api"
)

// clientCommand is a command that talks to a node.
func clientCommand(c cli.Command) *cli.Command {
	return clientCommandAt("state-dir", c, "state")
}

// clientCommandAt is clientCommand with other names of the option for the state
// directory. The variables of its options are read by connect, because a
// --state-dir that was typed has to win over a $ZORILLA_NODE.
func clientCommandAt(state string, c cli.Command, aliases ...string) *cli.Command {
	c.Flags = append(c.Flags,
		&cli.StringFlag{Name: "node", Usage: "talk to the node at `SOCKET|URL` [$ZORILLA_NODE]"},
		&cli.StringFlag{Name: state, Aliases: aliases, Usage: "talk to the node of this machine with the state directory `DIR` [$ZORILLA_STATE]"})
	return command(c)
}

// askNode is the action of a command without arguments.
func askNode(do func(*cli.Context, *api.Client) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		if err := noArguments(c); err != nil {
			return err
		}
		return with(c, func(client *api.Client) error { return do(c, client) })
	}
}

// askRank is the action of a command about JOB[:RANK]; rank is -1 for all of it.
func askRank(do func(c *cli.Context, client *api.Client, job string, rank int) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		job, rank, err := oneJob(c)
		if err != nil {
			return err
		}
		return withJob(c, job, func(client *api.Client, job string) error { return do(c, client, job, rank) })
	}
}

// askJob is the action of a command about one job that knows no ranks.
func askJob(do func(c *cli.Context, client *api.Client, job string) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		job, rank, err := oneJob(c)
		if err == nil {
			err = noRank(c, rank)
		}
		if err != nil {
			return err
		}
		return withJob(c, job, func(client *api.Client, job string) error { return do(c, client, job) })
	}
}

// withJob calls do with the node that the command is about, and a job by a name
// that this node understands.
func withJob(c *cli.Context, job string, do func(client *api.Client, job string) error) error {
	return with(c, func(client *api.Client) error {
		job, err := find(c, client, job)
		if err != nil {
			return err
		}
		return do(client, job)
	})
}

// find returns what the node calls a job, and says which of several is meant. None of those
// that have ended is to be forgotten for another.
func find(c *cli.Context, s selector.Service, name string) (job string, err error) {
	job, note, err := selector.Find(c.Context, s, name)
	switch {
	case note != "" && c.Command.Name == "rm":
		return "", fmt.Errorf("%s: %w: write its ID", note, api.ErrAmbiguous)
	case note != "" && !c.Bool("q"):
		_, _ = fmt.Fprintf(c.App.ErrWriter, "zorilla: %s\n", note)
	}
	return job, err
}

// askEachJob is the action of a command that does the same to each of several
// jobs, and knows no ranks. After that it calls then, which may be nil.
func askEachJob(do func(*api.Client, context.Context, string) error, then func(*api.Client, context.Context)) cli.ActionFunc {
	return func(c *cli.Context) error {
		names, err := wholeJobs(c)
		if err != nil {
			return err
		}
		return with(c, func(client *api.Client) error {
			var all error
			for _, job := range names {
				job, err := find(c, client, job)
				if err == nil {
					err = do(client, c.Context, job)
				}
				if err != nil {
					all = errors.Join(all, fmt.Errorf("%s: %w", c.Command.Name, err))
				}
			}
			if then != nil {
				then(client, c.Context)
			}
			return all
		})
	}
}

// with calls do with the node that the command is about.
func with(c *cli.Context, do func(*api.Client) error) error {
	client, err := connect(c)
	if err != nil {
		return err
	}
	defer client.Close()
	if err = do(client); os.Getenv("ZORILLA_JOB_ID") == "" || c.IsSet("node") || c.IsSet("state-dir") {
		return err
	}
	if !errors.Is(err, api.ErrNoNode) && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return errInside()
}

// errInside explains to a process of a job why it finds no node.
func errInside() error {
	work := "only exec, rsh and resize of the job itself work here"
	if os.Getenv(workerapi.Variable) == "" {
		work = "no command that needs one works in tasks of arrays, or at nodes without namespaces"
	}
	return fmt.Errorf("%w here, inside a job: %s; submit jobs, list them and wait for them where you submitted this one", api.ErrNoNode, work)
}

// connect returns the node that the command is about.
func connect(c *cli.Context) (*api.Client, error) {
	return nodeAt(c.String("node"), c.String("state-dir"))
}

// nodeAt returns the node at an address, or with a state directory, or, if both are empty,
// the one that the environment means.
func nodeAt(address, state string) (*api.Client, error) {
	for _, address := range []string{address, socketOf(state), os.Getenv("ZORILLA_NODE"), socketOf(os.Getenv("ZORILLA_STATE"))} {
		if address != "" {
			return api.Dial(address)
		}
	}
	usual, err := node.DefaultState()
	if err != nil {
		return nil, err
	}
	return api.Dial(socketOf(usual))
}

func socketOf(state string) string {
	if state == "" {
		return ""
	}
	return node.Socket(state)
}

// whichJob is said where a job is missing.
const whichJob = "which job? name it by its ID, the first characters of it, its name, or last"

// oneJob returns the only argument, JOB[:RANK]; rank is -1 for all of it.
func oneJob(c *cli.Context) (job string, rank int, err error) {
	switch {
	case c.NArg() == 0:
		return "", 0, usage(c, whichJob)
	case c.NArg() > 1:
		return "", 0, usage(c, "unexpected argument %q: want one job", c.Args().Get(1))
	}
	return splitJob(c, c.Args().First())
}

// noRank refuses JOB:RANK where only whole jobs make sense.
func noRank(c *cli.Context, rank int) error {
	if rank >= 0 {
		return usage(c, "%s is about whole jobs: leave out :%d", c.Command.Name, rank)
	}
	return nil
}

// wholeJobs returns the arguments of commands that take several jobs and know no
// ranks.
func wholeJobs(c *cli.Context) (names []string, err error) {
	if !c.Args().Present() {
		return nil, usage(c, whichJob)
	}
	for _, arg := range c.Args().Slice() {
		job, rank, err := splitJob(c, arg)
		if err == nil {
			err = noRank(c, rank)
		}
		if err != nil {
			return nil, err
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

// splitRanks is splitJob for commands that take ranges of ranks, as in JOB:0-3,5; there are none if only the job is named.
func splitRanks(c *cli.Context, arg string) (job string, ranks []int, err error) {
	job, text, found := strings.Cut(arg, ":")
	if !found {
		return job, nil, nil
	}
	if ranks, err = parseRanks(text); err != nil {
		return "", nil, usage(c, "%.60s: %v", arg, err)
	}
	return job, ranks, nil
}

func noArguments(c *cli.Context) error {
	if c.Args().Present() {
		return usage(c, "unexpected argument %q", c.Args().First())
	}
	return nil
}
