package main

import (
	"strings"

	"github.com/urfave/cli/v2"

	"zorilla/cmd/zorilla/jobfile"
	"zorilla/cmd/zorilla/suggest"
	"zorilla/node/api"
)

func runCommand(con *console) *cli.Command {
	return clientCommand(cli.Command{
		Name:      "run",
		Category:  groupJobs,
		Usage:     "run a program on many machines, as if it ran here",
		UsageText: "zorilla run [options] [--] COMMAND [ARGUMENT...]\nzorilla run [options] FILE.toml [options] [-- ARGUMENT...]",
		Description: `
Streams output, waits, fetches the output files and ends with the job's exit code.
The command is sent along if it is a relative path with a slash; a bare name or an
absolute path is looked up on the worker's machine. In a shell loop that reads its
own standard input, add --stdin none. A script may have options of its own, in lines
that begin with #ZORILLA: see zorilla submit. FILE.toml is a job file, which has options,
the command, and groups of workers with links between them; what is typed wins.

zorilla run -n 6 -i data.txt -o 'part-*' -t 10m --mem 200M -- ./prog data.txt
zorilla run -l -n 4 hostname
zorilla run -n 2..16 -o log --into 'out/%r' -- ./prog
zorilla run -a 1-100 -o log --into 'out/%t' -- ./prog    # $ZORILLA_TASK_ID

Ctrl-C shows the state; twice within 2 s cancels (130), as once does while the job is
being submitted. Ctrl-\ detaches, and 'zorilla attach JOB' comes back. If the node is
stopped it is waited for, for two minutes: the job goes on without it.
Exit codes: 124 walltime, 125 no workers or a lost node, 126/127 the command
cannot be executed/found, 128+signal.`,
		Flags: append(append(jobFlags(), arrayFlags()...),
			followFlags()...),
		Action: func(c *cli.Context) error { return runAction(con, c) },
	})
}

func runAction(con *console, c *cli.Context) error {
	if err := con.showProgress(c); err != nil {
		return err
	}
	r, err := requestOf(c, c.Args().Slice(), con.stdin)
	if err != nil {
		return err
	}
	defer r.close()
	want := wanted(c, -1)
	if err := want.Check(&r.spec); err != nil {
		return usage(c, "%v", err)
	}
	if err := hindered(c, &r.spec); err != nil {
		return err
	}
	if err := followable(c, &r.spec); err != nil {
		return err
	}
	if c.Bool(jobfile.PrintOption) {
		return printFile(c, r)
	}
	from := c.String("stdin")
	if r.spec.Array != nil {
		from = "none"
	}
	stdin, err := openStdin(con.stdin, from)
	if err != nil {
		return usage(c, "%v", err)
	}
	r.spec.Stdin = stdin != nil
	return with(c, func(client *api.Client) error {
		signals, stop := catchFatal()
		defer stop()
		r.hint(con, false)
		if !want.Force && !strings.Contains(want.Into, "%") {
			for _, text := range suggest.InTheWay(r.typed, want.Into) {
				con.say("warning: %s", text)
			}
		}
		id, err := submit(c.Context, con, client, r.spec, r.inputs, signals, followed)
		if err != nil {
			return err
		}
		f := newFollower(con, client, id)
		f.stdin, f.typed = stdin, &r.typed
		return f.follow(c, want, signals)
	})
}
