package main

import (
	"strings"

	"github.com/urfave/cli/v2"
)

// Groups of commands in the help.
const (
	groupJobs = "Jobs"
	groupNet  = "Network"
)

func (sh *shell) app() *cli.App {
	return &cli.App{
		Name:      "zorilla",
		HelpName:  "zorilla",
		Usage:     "run parallel programs on the machines around you, without a head node",
		UsageText: "zorilla COMMAND [options] [arguments]",
		Description: `zorilla node                      starts a node and prints how others join
zorilla run -n 8 -- ./prog data   runs from any of them
'zorilla COMMAND --help' has examples.`,
		Version:                   release(),
		Reader:                    sh.stdin,
		Writer:                    sh.stdout,
		ErrWriter:                 sh.stderr,
		DisableSliceFlagSeparator: true, // commas are part of patterns and values
		ExitErrHandler:            func(*cli.Context, error) {},
		OnUsageError:              onUsageError,
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return &usageError{"zorilla", "unknown command " + c.Args().First() + ": 'zorilla help' lists them"}
			}
			return cli.ShowAppHelp(c)
		},
		Commands: []*cli.Command{
			sh.runCommand(), sh.submitCommand(), sh.psCommand(), sh.statusCommand(), sh.logsCommand(), sh.waitCommand(),
			sh.getCommand(), sh.cancelCommand(), sh.explainCommand(),
			sh.nodeCommand(), sh.nodesCommand(), sh.inviteCommand(), sh.webCommand(), sh.devCommand(),
			sh.versionCommand(),
		},
	}
}

// command fills in what all commands have in common.
func command(c cli.Command) *cli.Command {
	c.HideHelpCommand = true // "help" may be the name of a program
	c.OnUsageError = onUsageError
	c.Description = strings.Trim(c.Description, "\n")
	return &c
}

// clientCommand is a command that talks to a node.
func clientCommand(c cli.Command) *cli.Command {
	c.Flags = append(c.Flags, clientFlags()...)
	return command(c)
}

func onUsageError(c *cli.Context, err error, _ bool) error {
	text := err.Error()
	if name, ok := strings.CutPrefix(text, "flag provided but not defined: "); ok {
		text = "unknown option " + name
	}
	name := "zorilla"
	if c.Command != nil && c.Command.HelpName != "" {
		name = c.Command.HelpName
	}
	return &usageError{name, text}
}
