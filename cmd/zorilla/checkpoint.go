package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"zorilla/cmd/zorilla/columns"
	"zorilla/cmd/zorilla/rerun"
	"zorilla/internal/units"
	"zorilla/jobs"
	"zorilla/jobs/session/workerapi"
)

func checkpointCommand(con *console) *cli.Command {
	return clientCommand(cli.Command{
		Name:      "checkpoint",
		Category:  groupJobs,
		Usage:     "inside a job: say that a directory has a state that is whole",
		UsageText: "zorilla checkpoint [options] [DIR]\n   zorilla checkpoint --exit-code CODE [options] DIR [--] COMMAND [ARG...]",
		Description: `
A program calls this when it has written its state into DIR, below its work
directory (without DIR: the directory that it is in). Two nodes near by keep a
copy. If the rank is lost, or is tried again, its next attempt finds DIR as it
was, and in $ZORILLA_RESTART the number of the checkpoint: the newest one that a
node has whole. Ranks that start again together (-n N) begin with the newest
--epoch of which all have one. Files in DIR must not change until the command
returns, which is when the nodes have it, and the job's node knows. Of a program
that ends when it has written its state, with an exit code of its own, COMMAND is
run, and again each time that it ends with CODE.

zorilla checkpoint state
zorilla checkpoint --epoch $STEP state
zorilla checkpoint --wait=false state    returns when DIR was read
zorilla checkpoint --exit-code 85 state python3 simulate.py`,
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "epoch", DefaultText: "the checkpoint's number", Usage: "`NUMBER` of the state, the same in all ranks"},
			&cli.BoolFlag{Name: "all-ranks", Usage: "it is the state of all ranks that start again together: each begins with DIR"},
			&cli.BoolFlag{Name: "wait", Value: true, Usage: "wait until the nodes have it"},
			&cli.IntFlag{Name: "exit-code", Usage: "run COMMAND, and again when it ends with `CODE` and DIR is kept"},
			jsonFlag(),
		},
		Action: func(c *cli.Context) error {
			path, again := os.Getenv(workerapi.Variable), c.IsSet("exit-code")
			switch {
			case !again && c.NArg() > 1:
				return usage(c, "unexpected argument %q: want one directory", c.Args().Get(1))
			case c.IsSet("epoch") && c.Int("epoch") < 1:
				return usage(c, "--epoch %d: want a number from 1", c.Int("epoch"))
			case path == "":
				return fmt.Errorf("checkpoint: %s", noSocket)
			}
			dir, err := belowWork(filepath.Join(filepath.Dir(filepath.Dir(path)), "work"), c.Args().First())
			if err != nil {
				return fmt.Errorf("checkpoint: %w", err)
			}
			ask := workerapi.Checkpoint{Dir: dir, Epoch: int64(c.Int("epoch")), All: c.Bool("all-ranks"), Wait: c.Bool("wait")}
			if again {
				return runAgain(c, ask, rerun.Command{Code: c.Int("exit-code"), Stdin: con.stdin, Stdout: con.stdout, Stderr: con.stderr})
			}
			var a jobs.CheckpointAnswer
			if err := ask.Make(c.Context, path, &a); err != nil {
				return fmt.Errorf("checkpoint: %w", err)
			}
			if c.Bool("json") {
				if err := con.printJSON(a); err != nil {
					return err
				}
				return printCheckpoint(io.Discard, con.stderr, &a, ask.Wait)
			}
			return printCheckpoint(con.stdout, con.stderr, &a, ask.Wait)
		},
	})
}

// runAgain runs a command again whenever it ends with the code that asks for a checkpoint.
func runAgain(c *cli.Context, ask workerapi.Checkpoint, cmd rerun.Command) error {
	cmd.Args = c.Args().Tail()
	if len(cmd.Args) > 0 && cmd.Args[0] == "--" {
		cmd.Args = cmd.Args[1:]
	}
	switch err := rerun.CheckCode(cmd.Code); {
	case err != nil:
		return usage(c, "--exit-code %d: %v", cmd.Code, err)
	case len(cmd.Args) == 0:
		return usage(c, "--exit-code: want a directory and a command: zorilla checkpoint --exit-code %d DIR COMMAND", cmd.Code)
	case c.IsSet("epoch") || c.Bool("json"):
		return usage(c, "--epoch and --json are about one checkpoint: --exit-code makes many")
	}
	cmd.Keep = func(ctx context.Context) (int, error) {
		var a jobs.CheckpointAnswer
		if err := ask.Make(ctx, os.Getenv(workerapi.Variable), &a); err != nil {
			return 0, fmt.Errorf("checkpoint: %w", err)
		}
		if err := printCheckpoint(io.Discard, cmd.Stderr, &a, ask.Wait); err != nil {
			_, _ = fmt.Fprintf(cmd.Stderr, "zorilla: warning: %v\n", err)
		}
		return a.Number, nil
	}
	code, err := cmd.Run(c.Context)
	switch {
	case errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist):
		return &codedError{err, 127}
	case err != nil:
		return err
	case code != 0:
		return exitCode(code)
	}
	return nil
}

// printCheckpoint prints what became of a checkpoint. One that is not safe is an error.
func printCheckpoint(out, warnings io.Writer, a *jobs.CheckpointAnswer, waited bool) error {
	text := "is copied"
	switch {
	case len(a.Keepers) > 0:
		text = "at " + columns.Clean(strings.Join(a.Keepers, ", "))
	case waited:
		text = "at this node alone"
	}
	size := fmt.Sprintf("%s in %s", units.Bytes(a.Bytes), units.Count(a.Files, "file", "files"))
	if _, err := fmt.Fprintf(out, "checkpoint %d: %s, %s\n", a.Number, size, text); err != nil {
		return err
	}
	if a.LeftOut != "" {
		_, _ = fmt.Fprintf(warnings, "zorilla: warning: checkpoint %d: %s\n", a.Number, columns.Clean(a.LeftOut))
	}
	switch {
	case waited && !a.Safe:
		return fmt.Errorf("checkpoint %d is not safe: %s", a.Number, columns.Clean(a.Short))
	case a.Short != "" && !a.Told: // a program that makes one each minute would fill its output with it
		_, _ = fmt.Fprintf(warnings, "zorilla: warning: checkpoint %d: %s\n", a.Number, columns.Clean(a.Short))
	}
	return nil
}

// belowWork returns a directory as it is called below the work directory of a worker.
func belowWork(work, dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for _, root := range []string{work, os.Getenv("HOME")} { // workers that share a directory have it elsewhere, and hear that from the node
		if rel, err := filepath.Rel(root, abs); err == nil && filepath.IsLocal(rel) {
			return filepath.ToSlash(rel), nil
		}
	}
	return "", errors.New(abs + " is not below the work directory: only what is there can be kept")
}
