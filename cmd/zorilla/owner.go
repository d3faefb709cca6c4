package main

import (
	"cmp"
	"math"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"zorilla/internal/units"
	"zorilla/jobs"
	"zorilla/node/api"
)

func ownerCommand(con *console) *cli.Command {
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
  expose=PATH[:ro|:rw],...  show workers these paths, to read or to write, too
  mounts=own|own:rw|exposed  what jobs that are submitted at this node may have
                          by --mount: any path to read, also to write, or only
                          what is exposed to all
  network=host|job|none   the most that workers may reach: with job only jobs
                          with --net job or none run here, with none only those
                          with --net none
  upload-limit=SIZE       send other nodes at most SIZE of files and output in a
                          second, all together; 64K is the least
  max-kept=SIZE           keep at most SIZE of checkpoints, of workers here and of
                          other nodes: 10G by itself, 0 = none
  hours=TIMES             take new work only then, by the clock of this machine:
                          days, daily, and from when until when, with commas
  after-hours=finish|end  let workers go on that run when the hours end, or end
                          them in time, with the notice that they want: up to 5m
  max-walltime=TIME       take no jobs with a longer -t; those without -t have
                          so long
none takes a limit or list away; deny+=WHO and deny-=WHO change a list. WHO is a
node's ID (its first 5 characters or more), a node's name, or a network such as
10.1.0.0/16. IDs are proven; names and addresses are what nodes say of
themselves. All of it counts at once and is kept; workers that run go on. The
node's own jobs are not subject to allow and deny.

zorilla owner set max-jobs=2 deny+=noisy,10.1.0.0/16
zorilla owner set max-jobs=none allow=none
zorilla owner set expose+=/data:ro,/scratch:rw
zorilla owner set upload-limit=10M
zorilla owner set "hours=mon-fri 19:00-07:00, sat-sun" after-hours=end`,
		Flags: []cli.Flag{jsonFlag()},
		Action: func(c *cli.Context) error {
			changes := c.Args().Slice()
			switch {
			case len(changes) == 0:
				return withLimits(con, c, func(client *api.Client) (jobs.Limits, error) { return client.Limits(c.Context) })
			case changes[0] != "set":
				return usage(c, "unexpected argument %q: want set NAME=VALUE...", changes[0])
			case len(changes) == 1:
				return usage(c, "nothing to set: want NAME=VALUE, as in max-jobs=2")
			}
			return setLimits(con, c, changes[1:]...)
		},
	})
}

func pauseCommand(con *console) *cli.Command {
	return clientCommand(cli.Command{
		Name:      "pause",
		Category:  groupNet,
		Usage:     "let no new work in, until resume",
		UsageText: "zorilla pause [options]",
		Description: `
Workers that are here go on; jobs that are submitted here run elsewhere. It lasts
over restarts of the node. 'zorilla drain --now' ends the workers, too.`,
		Flags:  []cli.Flag{jsonFlag()},
		Action: func(c *cli.Context) error { return setPaused(con, c, "yes") },
	})
}

func resumeCommand(con *console) *cli.Command {
	return clientCommand(cli.Command{
		Name:        "resume",
		Category:    groupNet,
		Usage:       "let new work in again after pause",
		UsageText:   "zorilla resume [options]",
		Description: "Jobs that wait are offered the room at once.",
		Flags:       []cli.Flag{jsonFlag()},
		Action:      func(c *cli.Context) error { return setPaused(con, c, "no") },
	})
}

func setPaused(con *console, c *cli.Context, yes string) error {
	if err := noArguments(c); err != nil {
		return err
	}
	return setLimits(con, c, "paused="+yes)
}

// setLimits makes changes and shows what is allowed then.
func setLimits(con *console, c *cli.Context, changes ...string) error {
	var check jobs.Limits
	for _, change := range changes {
		// What is taken out of a list may be in it at the node only.
		if err := check.Change(change); err != nil && !strings.Contains(change, "-=") {
			return usage(c, "%v", err)
		}
	}
	return withLimits(con, c, func(client *api.Client) (jobs.Limits, error) { return client.SetLimits(c.Context, changes) })
}

// withLimits asks the node and shows what is allowed then.
func withLimits(con *console, c *cli.Context, ask func(*api.Client) (jobs.Limits, error)) error {
	return with(c, func(client *api.Client) error {
		l, err := ask(client)
		if err != nil {
			return err
		}
		return printLimits(con, c, l)
	})
}

func printLimits(con *console, c *cli.Context, l jobs.Limits) error {
	if c.Bool("json") {
		l.Allow, l.Deny, l.Expose = append([]string{}, l.Allow...), append([]string{}, l.Deny...), append([]string{}, l.Expose...)
		l.Mounts, l.Network = cmp.Or(l.Mounts, jobs.MountsOwn), cmp.Or(l.Network, jobs.NetHost)
		l.AfterHours = cmp.Or(l.AfterHours, jobs.HoursFinish)
		return con.printJSON(l)
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
	upload := "none"
	if l.UploadLimit > 0 {
		upload = units.Bytes(l.UploadLimit) + "/s"
	}
	kept := units.Bytes(l.KeptBytes())
	if l.KeptBytes() == math.MaxInt64 {
		kept = "none"
	}
	walltime := "none"
	if l.MaxWalltime > 0 {
		walltime = l.MaxWalltime.String()
	}
	return con.printTable([][]string{
		{"paused", paused}, {"max-jobs", number(l.MaxJobs)}, {"max-workers-per-job", number(l.MaxWorkersPerJob)},
		{"allow", list(l.Allow)}, {"deny", list(l.Deny)},
		{"expose", list(l.Expose)}, {"mounts", cmp.Or(l.Mounts, jobs.MountsOwn)},
		{"network", cmp.Or(l.Network, jobs.NetHost)}, {"upload-limit", upload}, {"max-kept", kept},
		{"hours", cmp.Or(l.Hours.String(), "none")}, {"after-hours", cmp.Or(l.AfterHours, jobs.HoursFinish)}, {"max-walltime", walltime},
	})
}

func cacheCommand(con *console) *cli.Command {
	return clientCommand(cli.Command{
		Name:      "cache",
		Category:  groupNet,
		Usage:     "show, verify or prune the chunks of files that the node keeps",
		UsageText: "zorilla cache [options]",
		Description: `
Chunks of input and output files stay for later jobs: those that jobs and their
results need, and of others as many as the limit allows ('zorilla node --cache SIZE'),
those that were not used for longest go first. What is damaged is never used, it is
only found earlier with --verify: what a job needs of it is fetched again.

zorilla cache
zorilla cache --verify
zorilla cache --prune     # the disk is needed: only what is needed stays`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "verify", Usage: "read all chunks, and remove those that are damaged"},
			&cli.BoolFlag{Name: "prune", Usage: "remove the chunks that no job needs"},
			jsonFlag(),
		},
		Action: askNode(func(c *cli.Context, client *api.Client) error {
			told, err := client.Cache(c.Context, api.CacheOp{Verify: c.Bool("verify"), Prune: c.Bool("prune")})
			if err != nil {
				return err
			}
			if c.Bool("json") {
				return con.printJSON(told)
			}
			return con.printCache(told)
		}),
	})
}

func (con *console) printCache(told api.Cache) error {
	if v := told.Verified; v != nil {
		con.say("whole: %s of %s; damaged, and removed: %d", count(v.Blobs, "chunk"), units.Bytes(v.Bytes), len(v.Damaged))
	}
	if p := told.Pruned; p != nil {
		con.say("removed %s of %s", count(p.Blobs, "chunk"), units.Bytes(p.Bytes))
	}
	err := con.printTable([][]string{
		{"chunks", strconv.Itoa(told.Blobs)},
		{"bytes", units.Bytes(told.Bytes)},
		{"needed", units.Bytes(told.Pinned)},
		{"others", units.Bytes(told.Bytes - told.Pinned)},
		{"limit", units.Bytes(told.Limit) + " of others"},
	})
	if err != nil || len(told.Needs) == 0 {
		return err
	}
	rows := [][]string{{"NEEDED BY", "CHUNKS", "BYTES"}}
	for _, n := range told.Needs {
		rows = append(rows, []string{n.Owner, strconv.Itoa(n.Blobs), units.Bytes(n.Bytes)})
	}
	return con.section(rows)
}
