package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"zorilla/cmd/zorilla/columns"
	"zorilla/internal/units"
	"zorilla/node"
	"zorilla/node/api"
	"zorilla/transfer"
)

// startNode runs a node until ctx ends, and calls ready once it can be used: for
// the first time if its key was made now.
type startNode func(ctx context.Context, o nodeOptions, ready func(s api.Service, first bool)) error

func nodeCommand(con *console, start startNode) *cli.Command {
	return command(cli.Command{
		Name:      "node",
		Category:  groupNet,
		Usage:     "start a node on this machine",
		UsageText: "zorilla node [options]",
		Description: `
The first start makes an identity and a network; on a terminal it prints the line
that lets another machine join, later 'zorilla invite' does. Machines of one local
network that have the same secret find each other. Stop it with Ctrl-C or SIGTERM: its
workers go on, and the node finds them again when it is started with the same
--state-dir, also by a newer program. 'zorilla drain --exit' lets them finish first.

zorilla node                                  # the first machine
zorilla node --join zor1.AGq...               # the others
zorilla node --secret-file ~/.zorilla-secret  # same secret, same local network
zorilla node --state-dir ~/zorilla-b --listen 127.0.0.2:5444 --web none`,
		Flags:  nodeFlags(),
		Action: func(c *cli.Context) error { return nodeAction(con, start, c) },
	})
}

func nodeFlags() []cli.Flag {
	env := func(name string) []string { return []string{"ZORILLA_" + name} }
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "join", EnvVars: env("JOIN"), Usage: "`TOKEN|HOST:PORT` of the network to join (repeatable, or with commas)"},
		&cli.StringFlag{Name: "secret", EnvVars: env("SECRET"),
			Usage: "network secret: a `PHRASE` of 16 characters or more; other users of this machine may see it: --secret-file hides it"},
		&cli.StringFlag{Name: "secret-file", EnvVars: env("SECRET_FILE"), Usage: "read the network secret from `FILE`"},
		&cli.StringFlag{Name: "name", EnvVars: env("NAME"), DefaultText: "the host name", Usage: "`LABEL` of this node"},
		&cli.StringFlag{Name: "site", EnvVars: env("SITE"), Usage: "free `LABEL` of its place"},
		&cli.StringFlag{Name: "listen", EnvVars: env("LISTEN"), Value: node.DefaultListen, Usage: "`HOST:PORT` for other nodes, TCP and UDP"},
		&cli.StringFlag{Name: "advertise", EnvVars: env("ADVERTISE"), Usage: "`HOST:PORT` that others dial, if it is another"},
		&cli.StringFlag{Name: "web", EnvVars: env("WEB"), DefaultText: node.DefaultWeb + " or the next free port", Usage: "`HOST:PORT` of the page, or none"},
		&cli.BoolFlag{Name: "web-insecure", EnvVars: env("WEB_INSECURE"),
			Usage: "let --web be where others on the network can read along, token and all: the page has no TLS"},
		&cli.IntFlag{Name: "slots", EnvVars: env("SLOTS"), DefaultText: "the number of cores", Usage: "how many `SLOTS` to offer"},
		&cli.StringSliceFlag{Name: "label", EnvVars: env("LABEL"), Usage: "tell others `K=V` of this node, for --where (repeatable, or with commas)"},
		&cli.IntFlag{Name: "gpus", EnvVars: env("GPUS"), DefaultText: "those that can compute", Usage: "how many `GPUS` to offer"},
		&cli.StringFlag{Name: "clock", EnvVars: env("CLOCK"), DefaultText: "as the system reports", Usage: "say `CLOCK` of its processors, such as 2.4GHz"},
		&cli.IntFlag{Name: "power", EnvVars: env("POWER"), DefaultText: "measured once, when the machine is idle",
			Usage: "say `POWER` of a core; 1000 = one of a server with 2.4 GHz"},
		&cli.StringFlag{Name: "bandwidth", EnvVars: env("BANDWIDTH"), DefaultText: "as the interface reports",
			Usage: "say `BANDWIDTH` of its network, such as 1Gbit"},
		&cli.IntFlag{Name: "max-jobs", EnvVars: env("MAX_JOBS"), DefaultText: "no limit",
			Usage: "work for at most `N` jobs at a time; kept, see zorilla owner"},
		&cli.IntFlag{Name: "max-workers-per-job", EnvVars: env("MAX_WORKERS_PER_JOB"), DefaultText: "no limit", Usage: "at most `N` workers of a job; kept"},
		&cli.StringSliceFlag{Name: "allow", EnvVars: env("ALLOW"), Usage: "work only for `ID|NAME|NETWORK` of origins (repeatable, or with commas); kept"},
		&cli.StringSliceFlag{Name: "deny", EnvVars: env("DENY"), Usage: "do not work for `ID|NAME|NETWORK`; kept"},
		&cli.StringFlag{Name: "upload-limit", EnvVars: env("UPLOAD_LIMIT"), DefaultText: "none",
			Usage: "send other nodes at most `SIZE` of files and output in a second, such as 10M; kept"},
		&cli.StringFlag{Name: "max-kept", EnvVars: env("MAX_KEPT"), DefaultText: "10G",
			Usage: "keep at most `SIZE` of checkpoints, of workers here and of other nodes, 0 = none; kept"},
		&cli.StringFlag{Name: "hours", EnvVars: env("HOURS"), DefaultText: "always",
			Usage: "take new work only at these `TIMES`, such as \"mon-fri 19:00-07:00, sat-sun\"; kept, see zorilla owner"},
		&cli.StringFlag{Name: "after-hours", EnvVars: env("AFTER_HOURS"), DefaultText: "finish",
			Usage: "`WHAT` becomes of workers that run when the hours end: finish or end; kept"},
		&cli.StringFlag{Name: "max-walltime", EnvVars: env("MAX_WALLTIME"), DefaultText: "none",
			Usage: "take no jobs with a -t of more than `TIME`, and let those without run so long; kept"},
		&cli.StringFlag{Name: "state-dir", Aliases: []string{"state"}, EnvVars: env("STATE"), DefaultText: "that of your user", Usage: "state directory `DIR`"},
		&cli.StringFlag{Name: "work", EnvVars: env("WORK"), DefaultText: "work in the state directory",
			Usage: "directory `DIR` for the files of running workers, in which this node makes one of its own"},
		&cli.StringFlag{Name: "keep-free", EnvVars: env("KEEP_FREE"), DefaultText: "1 GiB, or 2 % of that disk",
			Usage: "leave `SIZE` free there: below it take no work, and end workers that use most; as much where the state is; 0 = nothing"},
		&cli.StringFlag{Name: "run-as", EnvVars: env("RUN_AS"), DefaultText: "a user of its own for each job",
			Usage: "if started by root, run workers as `USER`, or each job as one of the users FIRST-LAST"},
		&cli.BoolFlag{Name: "pin", EnvVars: env("PIN"), Usage: "give each rank of an MPI program processors of its own; not for several nodes on one machine"},
		&cli.DurationFlag{Name: "node-limit", EnvVars: env("NODE_LIMIT"), Value: time.Hour,
			Usage: "end workers that were without this node for `DURATION`; 0 = they end with it"},
		&cli.StringFlag{Name: "require-sandbox", EnvVars: env("REQUIRE_SANDBOX"), Value: "none",
			Usage: "start only if workers can be confined `SO`: full (namespaces), basic (these or Landlock), none"},
		&cli.DurationFlag{Name: "orphan-limit", EnvVars: env("ORPHAN_LIMIT"), Value: time.Hour,
			Usage: "end workers that were without word of their job's node for `DURATION`"},
		&cli.StringFlag{Name: "keep-for", EnvVars: env("KEEP_FOR"), Value: "7d", Usage: "forget results of jobs submitted here `TIME` after their end"},
		&cli.StringFlag{Name: "keep-outputs", EnvVars: env("KEEP_OUTPUTS"), DefaultText: "a tenth of the disk",
			Usage: "keep at most `SIZE` of them, the oldest go first"},
		&cli.StringFlag{Name: "cache", EnvVars: env("CACHE"), DefaultText: units.Bytes(transfer.DefaultCache),
			Usage: "keep at most `SIZE` of chunks of files that no job needs now, for later ones; see zorilla cache"},
		&cli.StringSliceFlag{Name: "expose", EnvVars: env("EXPOSE"),
			Usage: "show workers `PATH[:ro|:rw]`, to read or to write, too (repeatable, or with commas); kept"},
		&cli.StringFlag{Name: "network", EnvVars: env("NETWORK"), DefaultText: "host",
			Usage: "`WHAT` workers may reach at most: host, job or none (only jobs with such a --net, or less); kept"},
		&cli.StringFlag{Name: "mounts", EnvVars: env("MOUNTS"), DefaultText: "own",
			Usage: "`WHAT` jobs submitted at this node may have by --mount: own, own:rw or exposed; kept"},
		&cli.BoolFlag{Name: "v", Aliases: []string{"verbose"}, EnvVars: env("VERBOSE"), Usage: "log more"},
	}
}

func nodeAction(con *console, start startNode, c *cli.Context) error {
	if err := noArguments(c); err != nil {
		return err
	}
	o, err := optionsOf(c, con.stderr)
	if err != nil {
		return err
	}
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(c.Context, signals...)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends a node that hangs
	forgetSecrets()
	return start(ctx, o, func(s api.Service, first bool) { welcome(ctx, con, s, first && onTerminal(con.stdout)) })
}

// welcome prints what the owner needs next, with the tokens if nobody else can
// see them.
func welcome(ctx context.Context, con *console, s api.Service, tokens bool) {
	switch token, err := s.Invite(ctx); {
	case err != nil:
		con.say("no invitation: %v", err)
	case tokens:
		fmt.Fprintf(con.stdout, "join   zorilla node --join %s\n", columns.Clean(token))
	default:
		fmt.Fprintln(con.stdout, "join   'zorilla invite' prints the token for other machines")
	}
	switch url, err := s.Web(ctx, false); {
	case errors.Is(err, api.ErrUnavailable): // as its owner wants it
	case err != nil:
		con.say("no page: %v", err)
	default:
		fmt.Fprintln(con.stdout, pageLine(url, tokens))
	}
}

// pageLine names the page.
func pageLine(url string, token bool) string {
	if token {
		return "page   " + columns.Clean(url)
	}
	return fmt.Sprintf("page   %s ('zorilla web' prints it with its token)", columns.Clean(withoutToken(url)))
}

func inviteCommand(con *console) *cli.Command {
	return clientCommand(cli.Command{
		Name:      "invite",
		Category:  groupNet,
		Usage:     "print the token that lets another machine join",
		UsageText: "zorilla invite [options]",
		Description: `
Who has the token can join: hand it over in private.

zorilla node --join "$(ssh other zorilla invite)"`,
		Flags: []cli.Flag{jsonFlag()},
		Action: askNode(func(c *cli.Context, client *api.Client) error {
			token, err := client.Invite(c.Context)
			if err != nil {
				return err
			}
			if c.Bool("json") {
				return con.printJSON(map[string]string{"token": token})
			}
			_, err = fmt.Fprintln(con.stdout, columns.Clean(token))
			return err
		}),
	})
}
