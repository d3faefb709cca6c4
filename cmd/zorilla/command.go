package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"zorilla/cmd/zorilla/cells"
	"zorilla/cmd/zorilla/config"
	"zorilla/cmd/zorilla/hint"
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

// Columns of the help of an option: where its text begins, and where a line ends.
const (
	helpFrom = 28
	helpTo   = 100
)

// inColumns has the help of an option fit for a terminal: its names, then its text in lines that
// begin in one column, the first beside the names if there is room.
func inColumns(plain cli.FlagStringFunc) cli.FlagStringFunc {
	return func(f cli.Flag) string {
		const first, others = 3, 6 // the columns that the help puts before these lines
		names, text, _ := strings.Cut(plain(f), "\t")
		names, _, _ = strings.Cut(names, " [ ") // once more, as it is repeatable: the text says so
		lines := wrapped(text, helpTo-helpFrom)
		margin := strings.Repeat(" ", helpFrom-others)
		for i := range lines[1:] {
			lines[i+1] = margin + lines[i+1]
		}
		if room := helpFrom - first; len(names)+2 <= room {
			lines[0] = fmt.Sprintf("%-*s%s", room, names, lines[0])
		} else {
			lines = slices.Insert(lines, 0, names)
			lines[1] = margin + lines[1]
		}
		return strings.Join(lines, "\n")
	}
}

// wrapped breaks a text into lines, one at least.
func wrapped(text string, width int) []string {
	lines := []string{""}
	for _, word := range strings.Fields(text) {
		switch last := &lines[len(lines)-1]; {
		case *last == "":
			*last = word
		case cells.Width(*last)+1+cells.Width(word) > width:
			lines = append(lines, word)
		default:
			*last += " " + word
		}
	}
	return lines
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
		return "option " + hint.Dashes(name) + " needs a value"
	}
	if m := regexp.MustCompile(`^invalid (?:boolean )?value (".*") for (?:flag )?-([a-z-]+): `).FindStringSubmatch(text); m != nil {
		return fmt.Sprintf("%s %s: want %s", hint.Dashes(m[2]), m[1], config.Kind(c.Command, m[2]))
	}
	name, ok := strings.CutPrefix(text, "flag provided but not defined: -")
	switch {
	case !ok:
		return text
	case root:
		return "unknown option " + hint.Dashes(name) + " before a command: options follow it, as in 'zorilla ps --all'"
	}
	return hint.UnknownOption(name, optionNames(c.Command))
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
	if meant := hint.Meant(name, names, hint.Commands); meant != "" {
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
