package main

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"zorilla/jobs"
)

func (sh *shell) runCommand() *cli.Command {
	return clientCommand(cli.Command{
		Name:      "run",
		Category:  groupJobs,
		Usage:     "run a program on many machines, as if it ran here",
		UsageText: "zorilla run [options] [--] COMMAND [ARGUMENT...]",
		Description: `
Streams output, waits, fetches the output files and ends with the job's exit code.
The command is sent along if it is a relative path with a slash; a bare name or an
absolute path is looked up on the worker's machine. In a shell loop that reads its
own standard input, add --stdin none.

zorilla run -n 6 -i data.txt -o 'part-*' -t 10m --mem 200M -- ./prog data.txt
zorilla run -l -n 4 hostname
zorilla run -n 2..16 -o log --into 'out/%r' -- ./prog
zorilla run -a 1-100 -o log --into 'out/%t' -- ./prog    # $ZORILLA_TASK_ID

Ctrl-C shows the state; twice within 2 s cancels (130). Ctrl-\ detaches, and
'zorilla attach JOB' comes back. If the node is stopped it is waited for, for two
minutes: the job goes on without it.
Exit codes: 124 walltime, 125 no workers or a lost node, 126/127 the command
cannot be executed/found, 128+signal.`,
		Flags: append(append(jobFlags(), arrayFlags()...),
			followFlags()...),
		Action: sh.runAction,
	})
}

func (sh *shell) runAction(c *cli.Context) error {
	spec, inputs, err := sh.specOf(c)
	if err != nil {
		return err
	}
	want := wanted(c, -1)
	if err := want.Check(&spec); err != nil {
		return usage(c, "%v", err)
	}
	if err := hindered(c, &spec); err != nil {
		return err
	}
	from := c.String("stdin")
	if spec.Array != nil {
		from = "none"
	}
	stdin, err := sh.openStdin(from)
	if err != nil {
		return err
	}
	spec.Stdin = stdin != nil
	client, err := sh.client(c)
	if err != nil {
		return err
	}
	defer client.Close()

	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGPIPE) // or a closed standard output would end us silently
	defer signal.Stop(signals)
	sh.hintCommand(spec.Args[0])
	id, err := sh.submit(c.Context, client, spec, inputs)
	if err != nil {
		return err
	}
	f := newFollower(sh, client, id)
	f.stdin = stdin
	return f.follow(c, signals)
}

// follow stays with the job as the options of a command say.
func (f *follower) follow(c *cli.Context, signals chan os.Signal) error {
	signal.Notify(signals, fatalSignals...)
	f.quiet, f.want, f.signals = c.Bool("q"), wanted(c, -1), signals
	f.out = newPrinter(f.sh.stdout, f.sh.stderr, c.Bool("l"))
	return f.run(c.Context)
}

// fatalSignals would end the process at once.
var fatalSignals = []os.Signal{os.Interrupt, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP}

// patience is how long run waits before it says what for.
const patience = time.Second

// cancelWindow is the time between two Ctrl-C that cancel.
const cancelWindow = 2 * time.Second

// running tells how many workers run.
func running(st jobs.Status) int {
	n := 0
	for _, w := range st.Workers {
		if w.State == jobs.WorkerRunning {
			n++
		}
	}
	return n
}
