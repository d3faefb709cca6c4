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

func jsonFlag() cli.Flag { return &cli.BoolFlag{Name: "json", Usage: "print one JSON document"} }

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

// orHelp shows the help of a command that reads its options itself.
func orHelp(do cli.ActionFunc) cli.ActionFunc {
	return func(c *cli.Context) error {
		if c.Args().First() == "--help" || c.Command.Hidden && !c.Args().Present() {
			return cli.ShowSubcommandHelp(c)
		}
		return do(c)
	}
}
