package main

import (
	"slices"
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
			sh.runCommand(), sh.submitCommand(), sh.attachCommand(), sh.psCommand(), sh.statusCommand(), sh.logsCommand(), sh.waitCommand(),
			sh.getCommand(), sh.cancelCommand(), sh.rmCommand(), sh.explainCommand(), sh.tasksCommand(), sh.rerunCommand(),
			sh.nodeCommand(), sh.nodesCommand(), sh.rttCommand(), sh.drainCommand(), sh.inviteCommand(), sh.webCommand(), sh.devCommand(),
			sh.ownerCommand(), sh.pauseCommand(), sh.resumeCommand(), sh.versionCommand(),
		},
	}
}

// optionsFirst moves options that follow a job to the front, where the parser
// wants them: people add --json at the end of a line. Commands that take
// another command as their argument are left alone: its options are not ours.
func optionsFirst(app *cli.App, args []string) []string {
	if len(args) < 3 || slices.Contains([]string{"run", "submit", "dev"}, args[1]) {
		return args
	}
	cmd := app.Command(args[1])
	if cmd == nil {
		return args
	}
	valued := map[string]bool{}
	for _, f := range cmd.Flags {
		_, isBool := f.(*cli.BoolFlag)
		for _, name := range f.Names() {
			valued[name] = !isBool
		}
	}
	var options, rest []string
	for i := 2; i < len(args); i++ {
		switch arg := args[i]; {
		case arg == "--":
			rest = append(rest, args[i:]...)
			i = len(args)
		case len(arg) < 2 || arg[0] != '-':
			rest = append(rest, arg)
		default:
			options = append(options, arg)
			if valued[strings.TrimLeft(arg, "-")] && i+1 < len(args) {
				i++
				options = append(options, args[i])
			}
		}
	}
	return slices.Concat(args[:2], options, rest)
}

// command fills in what all commands have in common.
func command(c cli.Command) *cli.Command {
	c.HideHelpCommand = true // "help" may be the name of a program
	c.OnUsageError = onUsageError
	c.Description = strings.Trim(c.Description, "\n")
	for _, f := range c.Flags {
		if b, ok := f.(*cli.BoolFlag); ok && b.DefaultText == "" {
			b.DisableDefaultText = true // what is not asked for is not done
		}
	}
	return &c
}

// clientCommand is a command that talks to a node.
func clientCommand(c cli.Command) *cli.Command {
	c.Flags = append(c.Flags, clientFlags()...)
	return command(c)
}

func onUsageError(c *cli.Context, err error, _ bool) error {
	text := err.Error()
	name := "zorilla"
	if c.Command != nil && c.Command.HelpName != "" {
		name = c.Command.HelpName
	}
	if option, ok := strings.CutPrefix(text, "flag provided but not defined: "); ok {
		text = "unknown option " + option
		if name == "zorilla" {
			text += " before a command: options follow it, as in 'zorilla ps --all'"
		}
	}
	return &usageError{name, text}
}
