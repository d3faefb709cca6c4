package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"zorilla/jobs"
	"zorilla/node/api"
	"zorilla/vicinity"
)

func (sh *shell) ownerCommand() *cli.Command {
	return clientCommand(cli.Command{
		Name:      "owner",
		Category:  groupNet,
		Usage:     "show or set what this machine does for others",
		UsageText: "zorilla owner [options] [set NAME=VALUE...]",
		Description: `
  max-jobs=N              work for at most N jobs at a time
  max-workers-per-job=N   at most N workers of one job
  deny=WHO,...            do not work for jobs that these nodes submit
  allow=WHO,...           work only for these
  paused=yes|no           as zorilla pause and resume do
none takes a limit or list away; deny+=WHO and deny-=WHO change a list. WHO is a
node's ID (its first 5 characters or more), a node's name, or a network such as
10.1.0.0/16. IDs are proven; names and addresses are what nodes say of
themselves. All of it counts at once and is kept; workers that run go on. The
node's own jobs are not subject to allow and deny.

zorilla owner set max-jobs=2 deny+=noisy,10.1.0.0/16
zorilla owner set max-jobs=none allow=none`,
		Flags: []cli.Flag{jsonFlag()},
		Action: func(c *cli.Context) error {
			changes := c.Args().Slice()
			switch {
			case len(changes) == 0:
				return sh.withLimits(c, func(client *api.Client) (jobs.Limits, error) { return client.Limits(c.Context) })
			case changes[0] != "set":
				return usage(c, "unexpected argument %q: want set NAME=VALUE...", changes[0])
			case len(changes) == 1:
				return usage(c, "nothing to set: want NAME=VALUE, as in max-jobs=2")
			}
			return sh.setLimits(c, changes[1:]...)
		},
	})
}

func (sh *shell) pauseCommand() *cli.Command {
	return clientCommand(cli.Command{
		Name:      "pause",
		Category:  groupNet,
		Usage:     "let no new work in, until resume",
		UsageText: "zorilla pause [options]",
		Description: `
Workers that are here go on; jobs that are submitted here run elsewhere. It lasts
over restarts of the node. 'zorilla drain --now' ends the workers, too.`,
		Flags:  []cli.Flag{jsonFlag()},
		Action: func(c *cli.Context) error { return sh.setPaused(c, "yes") },
	})
}

func (sh *shell) resumeCommand() *cli.Command {
	return clientCommand(cli.Command{
		Name:        "resume",
		Category:    groupNet,
		Usage:       "let new work in again after pause",
		UsageText:   "zorilla resume [options]",
		Description: "Jobs that wait are offered the room at once.",
		Flags:       []cli.Flag{jsonFlag()},
		Action:      func(c *cli.Context) error { return sh.setPaused(c, "no") },
	})
}

func (sh *shell) setPaused(c *cli.Context, yes string) error {
	if err := noArguments(c); err != nil {
		return err
	}
	return sh.setLimits(c, "paused="+yes)
}

// setLimits makes changes and shows what is allowed then.
func (sh *shell) setLimits(c *cli.Context, changes ...string) error {
	var check jobs.Limits
	for _, change := range changes {
		// What is taken out of a list may be in it at the node only.
		if err := check.Change(change); err != nil && !strings.Contains(change, "-=") {
			return usage(c, "%v", err)
		}
	}
	return sh.withLimits(c, func(client *api.Client) (jobs.Limits, error) { return client.SetLimits(c.Context, changes) })
}

// withLimits asks the node and shows what is allowed then.
func (sh *shell) withLimits(c *cli.Context, ask func(*api.Client) (jobs.Limits, error)) error {
	client, err := sh.client(c)
	if err != nil {
		return err
	}
	defer client.Close()
	l, err := ask(client)
	if err != nil {
		return err
	}
	return sh.printLimits(c, l)
}

func (sh *shell) printLimits(c *cli.Context, l jobs.Limits) error {
	if c.Bool("json") {
		l.Allow, l.Deny = append([]string{}, l.Allow...), append([]string{}, l.Deny...)
		return sh.printJSON(l)
	}
	number := func(n int) string {
		if n == 0 {
			return "none"
		}
		return strconv.Itoa(n)
	}
	list := func(entries []string) string {
		if len(entries) == 0 {
			return "none"
		}
		return strings.Join(entries, ",")
	}
	paused := "no"
	if l.Paused {
		paused = "yes"
	}
	return sh.printTable([][]string{
		{"paused", paused}, {"max-jobs", number(l.MaxJobs)}, {"max-workers-per-job", number(l.MaxWorkersPerJob)},
		{"allow", list(l.Allow)}, {"deny", list(l.Deny)},
	})
}

// ownerOptions reads what the owner says of a node when it is started.
func ownerOptions(c *cli.Context, o *nodeOptions) error {
	o.Labels = map[string]string{}
	for _, l := range commas(c.StringSlice("label")) {
		k, v, found := strings.Cut(l, "=")
		if !found {
			return usage(c, "--label %s: want NAME=VALUE", l)
		}
		o.Labels[k] = v
	}
	if err := vicinity.CheckLabels(o.Labels); err != nil {
		return usage(c, "--label: %v", err)
	}
	if c.IsSet("gpus") {
		if o.GPUs = c.Int("gpus"); o.GPUs < 0 || o.GPUs > jobs.MaxGPUs {
			return usage(c, "--gpus %d: want 0 to %d", o.GPUs, jobs.MaxGPUs)
		}
		if o.GPUs == 0 {
			o.GPUs = -1 // the node's word for none
		}
	}
	var check jobs.Limits
	for _, name := range []string{"max-jobs", "max-workers-per-job", "allow", "deny"} {
		if !c.IsSet(name) {
			continue
		}
		value := strings.Join(commas(c.StringSlice(name)), ",")
		if n := c.Int(name); name == "max-jobs" || name == "max-workers-per-job" {
			if value = strconv.Itoa(n); n == 0 {
				value = "none"
			}
		}
		change := name + "=" + value
		if err := check.Change(change); err != nil {
			return usage(c, "--%s: %v", name, errors.Unwrap(err))
		}
		o.Changes = append(o.Changes, change)
	}
	return nil
}

// labels writes labels in the order of their names.
func labels(l map[string]string) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(l)) {
		parts = append(parts, fmt.Sprintf("%s=%s", k, l[k]))
	}
	return strings.Join(parts, ",")
}
