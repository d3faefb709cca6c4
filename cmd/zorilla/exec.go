package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"zorilla/jobs"
	"zorilla/jobs/sandbox"
	"zorilla/jobs/session"
	"zorilla/jobs/session/client"
	"zorilla/jobs/session/mpilaunch"
	"zorilla/jobs/session/workerapi"
	"zorilla/node/api"
)

func execCommand(con *console) *cli.Command {
	return clientCommand(cli.Command{
		Name:      "exec",
		Category:  groupJobs,
		Usage:     "run one more command beside a rank of a job that runs",
		UsageText: "zorilla exec [options] JOB[:RANK] [--] [COMMAND [ARGUMENT...]]",
		Description: `
The command sees what the rank sees (rank 0, if none is named): its directory, its
environment, its processes; it counts with it, and ends with it. A rank that is being
started is waited for, up to 30 s. Standard input, output
and error are those of exec, and so is the exit code. Ctrl-C and other signals are
passed on; twice within 2 s gives up, which ends the command, as the end of exec does.
With --pty and without a command it is a shell. Inside of a job :RANK is enough.

zorilla exec last ls -l
zorilla exec k7f3q:3 -- tail -n 3 log
zorilla exec --pty last

Exit codes: the command's; 126/127 it cannot be executed/found; 125 the rank does not
run, or the command was lost; 130 given up.`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "pty", Aliases: []string{"t"}, Usage: "give it a terminal, of the size of yours"},
			&cli.StringSliceFlag{Name: "e", Aliases: []string{"env"}, Usage: "set `K=V` in its environment, or copy K from yours (repeatable)"},
			&cli.StringFlag{Name: "stdin", DefaultText: "its own", Usage: "standard input of the command: `FILE`, or none"},
		},
		Action: func(c *cli.Context) error { return execAction(con, c) },
	})
}

// loginShell is the command that is meant if there is none.
var loginShell = []string{"/bin/sh", "-c", `exec "$(command -v bash || command -v sh)"`}

func execAction(con *console, c *cli.Context) error {
	err := runBeside(con, c)
	if usage := (*usageError)(nil); err != nil && !errors.As(err, &usage) && !errors.As(err, new(exitCode)) {
		return fmt.Errorf("exec: %w", err)
	}
	return err
}

func runBeside(con *console, c *cli.Context) error {
	args := c.Args().Slice()
	if len(args) == 0 {
		return usage(c, whichJob)
	}
	job, rank, err := splitJob(c, args[0])
	if err != nil {
		return err
	}
	if args = args[1:]; len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 && c.Bool("pty") {
		args = loginShell
	}
	if len(args) == 0 {
		return usage(c, "no command: put it after the job, as in '%s last ls', or ask for a shell with --pty", c.Command.HelpName)
	}
	env, err := environment(c.StringSlice("e"), os.LookupEnv)
	if err != nil {
		return usage(c, "%v", err)
	}
	stdin, err := openStdin(con.stdin, c.String("stdin"))
	if err != nil {
		return usage(c, "%v", err)
	}
	start := session.Start{Args: args, Env: pairs(env)}
	if job == "" && (os.Getenv(workerapi.Variable) != "" || os.Getenv("ZORILLA_JOB_ID") != "") { // of the job that this process is in
		return con.session(c.Context, nil, inside(workerapi.Ask{Rank: max(rank, 0)}), start, stdin, c.Bool("pty"))
	}
	return withJob(c, job, func(client *api.Client, job string) error {
		open := func(ctx context.Context, in io.Reader, out io.Writer) error {
			return client.Enter(ctx, job, max(rank, 0), in, out)
		}
		return con.session(c.Context, nil, open, start, stdin, c.Bool("pty"))
	})
}

// pairs lists an environment.
func pairs(env map[string]string) (list []string) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	return list
}

// session runs a command elsewhere, with what this process has for standard input, output
// and error, and the signals that come, in a channel of its own if there is none. The error is
// nil or the exit code of the command, or why there is none.
func (con *console) session(ctx context.Context, signals chan os.Signal, open func(context.Context, io.Reader, io.Writer) error,
	start session.Start, stdin io.Reader, pty bool) error {
	s := &client.Session{Open: open, Start: start, Stdin: stdin, Stdout: con.stdout, Stderr: con.stderr}
	if signals == nil {
		own, stop := catchFatal()
		defer stop()
		signals = own
	}
	signal.Notify(signals, syscall.SIGUSR1, syscall.SIGUSR2)
	s.Signals = signals
	if pty {
		s.Start.Terminal = &session.Size{}
		s.Start.Env = append([]string{"TERM=" + cmp.Or(os.Getenv("TERM"), "dumb")}, s.Start.Env...)
		if f, ok := con.stdin.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
			s.Terminal, s.Start.Terminal = f, client.Size(f)
			signal.Notify(signals, syscall.SIGWINCH, syscall.SIGCONT)
		}
	}
	exit, err := s.Run(ctx)
	switch {
	case errors.Is(err, client.ErrGivenUp):
		con.say("gave up: the command is ended")
		return exitCode(130)
	case errors.Is(err, client.ErrOutput) && errors.Is(err, syscall.EPIPE):
		return exitCode(128 + int(syscall.SIGPIPE))
	case err != nil:
		return err
	}
	if exit.Text != "" {
		con.say("%s", exit.Text)
	}
	if exit.Code == 0 {
		return nil
	}
	return exitCode(exit.Code)
}

func rshCommand(con *console) *cli.Command {
	return command(cli.Command{
		Name:            "rsh",
		Category:        groupJobs,
		Usage:           "inside a job: run a command at another of its hosts, in place of ssh",
		UsageText:       "zorilla rsh [options] [USER@]HOST [options] [--] WORD...",
		SkipFlagParsing: true,
		Description: `
For mpirun, GNU parallel, rsync and the like, in place of ssh, and without keys: what
they call is zorilla-rsh, which is in the PATH of every rank. HOST is an address of the
job's host file ($ZORILLA_HOSTFILE), the name of its node, which no other host of the job
may have, or localhost. The words are joined by blanks, for a shell that begins in the
work directory of the first rank that runs there, with its environment and limits.
Options of ssh are accepted, and mean nothing.

parallel --ssh zorilla-rsh -S 2/10.0.0.7,2/10.0.0.8 cmd {} ::: ...
rsync -a -e zorilla-rsh results/ 10.0.0.7:results/

Exit codes: the command's; 255 it could not be run, or was lost.`,
		Action: orHelp(func(c *cli.Context) error { return rshAction(con, c.Args().Slice()) }),
	})
}

// atWork has a host be ready for what a launcher starts there. Mostly it is: the ranks that
// wait there have done so.
const atWork = `ln -sn "$HOME" ` + mpilaunch.Work + ` 2>/dev/null
[ -e ` + mpilaunch.Finish + ` ] || ` + sandbox.ProgramDir + "/zorilla " + leadName + " " + mpilaunch.Prepare + "\n"

// exitShell is the exit code of a remote shell's own faults.
const exitShell = 255

func rshAction(con *console, args []string) error {
	call, err := parseShell(args)
	if err != nil {
		return &codedError{fmt.Errorf("rsh: %w", err), exitShell}
	}
	stdin, err := openStdin(con.stdin, call.stdin)
	if err == nil {
		start := session.Start{Args: []string{"/bin/sh", "-c", call.words}}
		if os.Getenv(mpilaunch.Variable) != "" {
			start.Args[2] = atWork + call.words
		}
		if call.words == "" {
			start.Args = loginShell
		}
		err = con.session(context.Background(), nil, inside(workerapi.Ask{Host: call.host}), start, stdin, call.words == "" && onTerminal(con.stdout))
	}
	if code := exitCode(0); err == nil || errors.As(err, &code) {
		return err
	}
	return &codedError{fmt.Errorf("rsh: %w", err), exitShell}
}

const noSocket = "this is not a process of a job whose node lets it ask for others: $" + workerapi.Variable + " is not set; " +
	"it is not in tasks of arrays, and at nodes without namespaces (zorilla nodes --json, enforces)"

// inside passes a session on to another worker of the job that this process is in.
func inside(a workerapi.Ask) func(context.Context, io.Reader, io.Writer) error {
	return func(ctx context.Context, in io.Reader, out io.Writer) error {
		path := os.Getenv(workerapi.Variable)
		if path == "" {
			return errors.New(noSocket)
		}
		return workerapi.Enter(ctx, path, a, in, out)
	}
}

// shellCall is a call of a remote shell.
type shellCall struct {
	host, words string
	stdin       string // "none", or "": what there is
}

// valued are the options of ssh and rsh that have a value.
const valued = "bceilmopBDEFIJLOPQRSWw"

// parseShell reads the words of a call as ssh does: options stand before and behind the host,
// and end with the first word of the command, or with "--".
func parseShell(args []string) (call shellCall, err error) {
	for len(args) > 0 {
		arg := args[0]
		if arg == "--" {
			if args = args[1:]; call.host != "" {
				break
			}
			if len(args) > 0 {
				call.host, args = args[0], args[1:]
			}
			break
		}
		if len(arg) < 2 || arg[0] != '-' {
			if call.host != "" {
				break
			}
			call.host, args = arg, args[1:]
			continue
		}
		args = args[1:]
		for i, option := range arg[1:] {
			if option == 'n' {
				call.stdin = "none"
			}
			if !strings.ContainsRune(valued, option) {
				continue
			}
			if i+2 == len(arg) { // its value is the next word
				if len(args) == 0 {
					return call, fmt.Errorf("option -%c without a value", option)
				}
				args = args[1:]
			}
			break
		}
	}
	if _, host, found := strings.Cut(call.host, "@"); found {
		call.host = host
	}
	if call.words = strings.Join(args, " "); call.host == "" {
		return call, errors.New("no host: want [options] [USER@]HOST [options] [--] WORD")
	}
	return call, nil
}

// leadName is the command that the ranks of a job with a launcher run.
const leadName = "lead"

func leadCommand() *cli.Command {
	return command(cli.Command{
		Name: leadName, Hidden: true, SkipFlagParsing: true,
		Usage: "what a rank of a job with --launcher runs",
		Action: orHelp(func(c *cli.Context) error {
			code, err := mpilaunch.Run(filepath.Join(sandbox.ProgramDir, shellName), c.Args().Slice())
			switch {
			case err != nil:
				return &codedError{fmt.Errorf("launcher: %w", err), cmp.Or(code, exitFailure)}
			case code != 0:
				return exitCode(code)
			}
			return nil
		}),
	})
}

// launch has the first rank of a job run its command, and the others wait for its end.
func launch(spec *jobs.Spec, launcher string) error {
	switch {
	case launcher == "":
		return nil
	case !slices.Contains([]string{"mpirun", "mpiexec", "parallel"}, launcher):
		return fmt.Errorf("%q: want mpirun, mpiexec or parallel", launcher)
	case len(spec.Groups) > 0:
		return fmt.Errorf("%s: groups run commands of their own, which it does not start", launcher)
	case spec.Array != nil || spec.Replicas > 1 || spec.Min != spec.Max:
		return fmt.Errorf("%s: is for jobs of a fixed number of ranks (-n N), without copies", launcher)
	case spec.MPI:
		return fmt.Errorf("%s: starts the ranks of an MPI program itself: leave --mpi out, or leave %s and --launcher out", launcher, launcher)
	case spec.KillOnBadExit != nil && !*spec.KillOnBadExit:
		return fmt.Errorf("%s: the other ranks wait for the end of the first one, so that --kill-on-bad-exit=false would leave them waiting", launcher)
	}
	const needs = `"namespaces" in enforces && version >= 5` // older ones have no worker API
	if spec.Where == "" {
		spec.Where = needs
	} else {
		spec.Where = "(" + spec.Where + ") && " + needs
	}
	spec.Args = append([]string{filepath.Join(sandbox.ProgramDir, "zorilla"), leadName}, spec.Args...)
	return nil
}

func allocCommand(con *console) *cli.Command {
	return clientCommand(cli.Command{
		Name:      "alloc",
		Category:  groupJobs,
		Usage:     "hold the ranks of a job, and run a shell or a command in the first of them",
		UsageText: "zorilla alloc [options] [--] [COMMAND [ARGUMENT...]]",
		Description: `
Submits a job whose ranks do nothing, waits for its start, and runs the command, else a
shell, beside rank 0, with all that launchers look for: mpirun, mpiexec and parallel use
the hosts of the job, zorilla exec :RANK and zorilla-rsh HOST reach them. When the command
ends so does the job, and its exit code is that of alloc. -t bounds it in any case.

zorilla alloc -n 6 -t 1h
zorilla alloc -n 6 -i prog -- mpirun ./prog`,
		Flags:  jobFlags(),
		Action: func(c *cli.Context) error { return allocAction(con, c) },
	})
}

func allocAction(con *console, c *cli.Context) error {
	if c.IsSet("launcher") || c.IsSet("stdin") {
		return usage(c, "--launcher and --stdin are for jobs that run a command of their own")
	}
	r, err := requestOf(c, []string{mpilaunch.Hold}, con.stdin)
	if err == nil {
		err = launch(&r.spec, "mpirun")
	}
	if err != nil {
		return err
	}
	defer r.close()
	args, pty := c.Args().Slice(), false
	if len(args) == 0 {
		args, pty = loginShell, onTerminal(con.stdout)
	}
	stdin, err := openStdin(con.stdin, "")
	if err != nil {
		return err
	}
	return with(c, func(client *api.Client) error {
		signals, stop := catchFatal() // until the job has ended: nobody else would end it
		defer stop()
		id, err := submit(c.Context, con, client, r.spec, r.inputs, signals, held)
		if err != nil {
			return err
		}
		job := string(id)
		defer abandon(context.Background(), con, client, id)
		if err := con.awaitStart(c.Context, client, job, signals); err != nil {
			return err
		}
		run := func(ctx context.Context, signals chan os.Signal, stdin io.Reader, pty bool, words ...string) error {
			open := func(ctx context.Context, in io.Reader, out io.Writer) error {
				return client.Enter(ctx, job, 0, in, out)
			}
			return con.session(ctx, signals, open, session.Start{Args: append([]string{r.spec.Args[0], leadName}, words...)}, stdin, pty)
		}
		err = run(c.Context, signals, stdin, pty, append([]string{mpilaunch.Within}, args...)...)
		ctx, caught := untilSignal(c.Context, signals)
		defer caught()
		ctx, late := context.WithTimeout(ctx, endsWithin)
		defer late()
		if run(ctx, nil, nil, false, mpilaunch.Release) == nil {
			for st, v := (jobs.Status{}), uint64(0); !st.State.Final(); { // so that it has ended by itself
				var lost error
				if st, v, lost = client.Await(ctx, job, v); lost != nil {
					break
				}
			}
		}
		return err
	})
}

// endsWithin is how long the ranks of an alloc have to end by themselves.
const endsWithin = 30 * time.Second
