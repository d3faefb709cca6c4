package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"zorilla/cmd/zorilla/config"
	"zorilla/cmd/zorilla/suggest"
	"zorilla/jobs"
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
	if act := c.Action; act != nil {
		c.Action = func(c *cli.Context) error {
			if err := noneEmpty(c); err != nil {
				return err
			}
			return act(c)
		}
	}
	return &c
}

// noneEmpty refuses an option whose value was typed and is empty, as of a variable of the shell
// that is not set: that is not what is meant by leaving the option out.
func noneEmpty(c *cli.Context) error {
	for _, f := range c.Command.Flags {
		s, ok := f.(*cli.StringFlag)
		if !ok || !c.IsSet(s.Name) || c.String(s.Name) != "" {
			continue
		}
		byEnvironment := slices.ContainsFunc(s.EnvVars, func(name string) bool { _, set := os.LookupEnv(name); return set })
		if !byEnvironment {
			return usage(c, "%s '': the value is empty: leave the option out, or look whether a variable of your shell is set", suggest.Dashes(s.Name))
		}
	}
	return nil
}

func onUsageError(c *cli.Context, err error, _ bool) error {
	name := "zorilla"
	if c.Command != nil && c.Command.HelpName != "" {
		name = c.Command.HelpName
	}
	return &usageError{name, parserText(c, err.Error(), name == "zorilla")}
}

// parserText says what is wrong as the parser of options does, in the words of a user.
func parserText(c *cli.Context, text string, root bool) string {
	if name, ok := strings.CutPrefix(text, "flag needs an argument: -"); ok {
		return "option " + suggest.Dashes(name) + " needs a value"
	}
	if m := regexp.MustCompile(`^invalid (?:boolean )?value (".*") for (?:flag )?-([a-z-]+): `).FindStringSubmatch(text); m != nil {
		return fmt.Sprintf("%s %s: want %s", suggest.Dashes(m[2]), m[1], config.Kind(c.Command, m[2]))
	}
	name, ok := strings.CutPrefix(text, "flag provided but not defined: -")
	switch {
	case !ok:
		return text
	case root:
		return "unknown option " + suggest.Dashes(name) + " before a command: options follow it, as in 'zorilla ps --all'"
	}
	return suggest.UnknownOption(name, optionNames(c.Command))
}

// optionNames are the options that the help of a command shows.
func optionNames(c *cli.Command) (names []string) {
	for _, f := range c.VisibleFlags() {
		names = append(names, f.Names()...)
	}
	return names
}

// unknownCommand says what is wrong with a command that does not exist.
func unknownCommand(c *cli.Context, name string) error {
	var names []string
	for _, cmd := range c.App.Commands {
		if !cmd.Hidden {
			names = append(names, cmd.Name)
		}
	}
	if meant := suggest.Meant(name, names, suggest.Commands); meant != "" {
		return &usageError{"zorilla", fmt.Sprintf("unknown command %s: did you mean %s? 'zorilla help' lists all", name, meant)}
	}
	return &usageError{"zorilla", "unknown command " + name + ": 'zorilla help' lists them"}
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

// exitUsage and exitFailure are the exit codes that are not a job's.
const (
	exitUsage   = 2
	exitFailure = jobs.CodeZorilla
)

// exitCode is an error that has been told already.
type exitCode int

// Error implements error.
func (c exitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// codedError is an error with an exit code of its own.
type codedError struct {
	error
	code int
}

// usageError is a mistake in the command line.
type usageError struct {
	command string // whose help tells more
	text    string
}

// Error implements error.
func (e *usageError) Error() string { return e.text }

func usage(c *cli.Context, format string, args ...any) error {
	return &usageError{c.Command.HelpName, fmt.Sprintf(format, args...)}
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return s
}
