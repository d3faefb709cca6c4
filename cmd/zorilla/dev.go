package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/urfave/cli/v2"

	"zorilla/cmd/zorilla/config"
)

func devCommand(con *console) *cli.Command {
	return command(cli.Command{
		Name:      "dev",
		Category:  groupNet,
		Usage:     "start a network of nodes on this machine for trying things",
		UsageText: "zorilla dev [options] [--] [COMMAND [ARGUMENT...]]",
		Description: `
Real node processes on 127.0.0.1, 127.0.0.2, ... in the foreground. Ctrl-C stops
them and removes their state. With a COMMAND the network lasts as long as that
does: its clients find the first node by themselves, and its exit code is ours.

zorilla dev -n 3
zorilla dev -n 3 -- zorilla run -l -n 3 hostname
zorilla dev --expose $PWD:rw -- snakemake --profile …/examples/snakemake/profile`,
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "n", Value: 3, Usage: "how many `NODES`"},
			&cli.IntFlag{Name: "port", DefaultText: "free ones", Usage: "`PORT` of all nodes, each on an address of its own"},
			&cli.IntFlag{Name: "slots", DefaultText: "the number of cores", Usage: "`SLOTS` of each node"},
			&cli.StringSliceFlag{Name: "expose", Usage: "show workers `PATH[:ro|:rw]`, to read or to write, too (repeatable, or with commas)"},
			&cli.BoolFlag{Name: "v", Aliases: []string{"verbose"}, Usage: "show what the nodes log"},
		},
		Action: func(c *cli.Context) error { return devAction(con, c) },
	})
}

func devAction(con *console, c *cli.Context) error {
	n := c.Int("n")
	if n < 1 || n > maxDevNodes {
		return usage(c, "-n %d: want 1 to %d nodes", n, maxDevNodes)
	}
	ctx, stop := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	// The nodes are told to end when the thread that started them is gone.
	// This goroutine keeps it until the end of the process.
	runtime.LockOSThread()

	dir, err := os.MkdirTemp("", "zorilla-dev-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	// Workers of another user pass through; what is private is 0600.
	if err := os.Chmod(dir, 0o711); err != nil {
		return err
	}
	d := &devNetwork{con: con, dir: dir, port: c.Int("port"), slots: c.Int("slots"), expose: c.StringSlice("expose"), verbose: c.Bool("v")}
	defer d.stop()
	err = d.start(ctx, n)
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return err
	case c.Args().Present():
		return d.command(ctx, c.Args().Slice())
	}
	if err := d.welcome(ctx); err != nil {
		return err
	}
	return d.watch(ctx)
}

// command runs a command whose clients find the first node.
func (d *devNetwork) command(ctx context.Context, args []string) error {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = d.con.stdin, d.con.stdout, d.con.stderr
	cmd.Env = append(cleanEnvironment(), "ZORILLA_STATE="+d.nodes[0].state,
		config.Variable+"="+os.Getenv(config.Variable)) // its defaults for jobs are the user's
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopGrace
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return exitCode(128 + int(status.Signal()))
		}
		return exitCode(exit.ExitCode())
	}
	if errors.Is(err, exec.ErrNotFound) {
		return &codedError{err, 127}
	}
	return err
}

// welcome prints how to use the network.
func (d *devNetwork) welcome(ctx context.Context) error {
	page := "page   none"
	if url, err := d.nodes[0].client.Web(ctx, false); err == nil {
		page = pageLine(url, onTerminal(d.con.stdout))
	}
	_, err := fmt.Fprintf(d.con.stdout, `%s, each with a state directory of its own below %s. In another terminal:

  export ZORILLA_STATE=%s
  zorilla nodes
  zorilla run -l -n %d hostname

%s
Ctrl-C stops the network.
`, count(len(d.nodes), "node"), d.dir, d.nodes[0].state, len(d.nodes), page)
	return err
}

// watch returns when the user has had enough, or when no node is left.
func (d *devNetwork) watch(ctx context.Context) error {
	for _, n := range d.nodes {
		select {
		case <-n.done:
		case <-ctx.Done():
			return nil
		}
	}
	return fmt.Errorf("all nodes have ended: the last one said: %s", d.nodes[len(d.nodes)-1].lastLine())
}
