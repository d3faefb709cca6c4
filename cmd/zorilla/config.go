package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"zorilla/cmd/zorilla/columns"
	"zorilla/cmd/zorilla/config"
)

// config returns what files with options say. They are read once.
func (con *console) config(app *cli.App) (*config.Config, error) {
	if con.files == nil && con.broken == nil {
		con.files, con.broken = config.Read(con.places, app)
	}
	return con.files, con.broken
}

// withFiles has a command take options that were not typed from files.
func (con *console) withFiles(cmd *cli.Command) {
	if !config.Takes(cmd) || con.places == (config.Places{}) {
		return
	}
	do := cmd.Action
	cmd.Action = func(c *cli.Context) error {
		files, err := con.config(c.App)
		if err != nil && c.Command.Name == doctorName { // which tells of it
			return do(c)
		}
		var used *config.Used
		if err == nil {
			used, err = files.Apply(c)
		}
		if err != nil {
			return &usageError{"zorilla config", err.Error()}
		}
		return blame(used, do(c))
	}
}

// blame says of an option that is wrong where it stands, if it was not typed.
func blame(used *config.Used, err error) error {
	if err == nil {
		return nil
	}
	text := used.Blame(err.Error())
	switch u := (*usageError)(nil); {
	case text == err.Error():
		return err
	case errors.As(err, &u):
		return &usageError{u.command, text}
	}
	return &blamedError{err, text}
}

// blamedError is an error whose text says more.
type blamedError struct {
	error
	text string
}

// Error implements error.
func (e *blamedError) Error() string { return e.text }

// Unwrap returns the error itself.
func (e *blamedError) Unwrap() error { return e.error }

func configCommand(con *console) *cli.Command {
	return command(cli.Command{
		Name:      "config",
		Usage:     "show which options files and variables set, or all that hold for a command",
		UsageText: "zorilla config [options] [COMMAND]",
		Description: `
No file is needed. What you would type each time may stand in one: of yours,
~/.config/zorilla/config.toml, or of all users of the machine,
/etc/zorilla/config.toml. Tables are called as commands, and hold their options:

[client]                     # all commands that talk to a node
node = "/run/zorilla/api.sock"
[job]                        # what run and submit have in common
mem = "2G"
input = ["data.txt", "lib"]  # what can be given again is a list
[run]
label = true

The command line wins over variables of the environment, these over your file,
that over the machine's. $ZORILLA_CONFIG names another file than yours, or none: then
neither is read. A file that others can write is refused.

zorilla config
zorilla config run           # all options of run, and where each is from`,
		Flags:  []cli.Flag{jsonFlag()},
		Action: func(c *cli.Context) error { return configAction(con, c) },
	})
}

func configAction(con *console, c *cli.Context) error {
	if c.NArg() > 1 {
		return usage(c, "unexpected argument %q: want one command", c.Args().Get(1))
	}
	files, err := con.config(c.App)
	if err != nil {
		return &usageError{"zorilla config", err.Error()}
	}
	about := c.App.Commands
	if name := c.Args().First(); name != "" {
		cmd := c.App.Command(name)
		switch {
		case cmd == nil:
			return unknownCommand(c, name)
		case !config.Takes(cmd) || len(cmd.Flags) == 0:
			return usage(c, "%s takes no options from files", name)
		}
		about = []*cli.Command{cmd}
	}
	options := []config.Option{}
	for _, cmd := range about {
		if !config.Takes(cmd) {
			continue
		}
		for _, o := range files.InForce(cmd) {
			if c.Args().Present() || o.Source != config.FromDefault {
				options = append(options, o)
			}
		}
	}
	seen := files.Files(con.places)
	if c.Bool("json") {
		return con.printJSON(map[string]any{"files": seen, "options": options})
	}
	return con.printConfig(seen, options, c.Args().Present())
}

// printConfig prints files, and options by what they come from; of one command these are all.
func (con *console) printConfig(seen []config.Seen, options []config.Option, one bool) error {
	var rows [][]string
	for _, f := range seen {
		state := "does not exist"
		if f.Read {
			state = "read"
		}
		rows = append(rows, []string{f.Path, state})
	}
	if len(seen) == 0 {
		con.say("no file is read, since $%s is %s", config.Variable, config.None)
	}
	if err := con.printTable(rows); err != nil || len(options) == 0 {
		return err
	}
	rows = [][]string{{"OPTION", "VALUE", "OF", "FROM"}}
	of := map[string][]string{} // the commands that a row is about
	var order []config.Option
	key := func(o config.Option) string {
		return fmt.Sprintf("%s\n%s\n%q", o.Place, o.Option, o.Values)
	}
	for _, o := range options {
		if one || of[key(o)] == nil {
			order = append(order, o)
		}
		of[key(o)] = append(of[key(o)], o.Command)
	}
	for _, o := range order {
		commands := strings.Join(of[key(o)], ", ")
		if n := len(of[key(o)]); n > 4 {
			commands = count(n, "command")
		}
		rows = append(rows, []string{o.Option, cmp.Or(columns.Cut(strings.Join(o.Values, ", "), 60), "-"), commands, o.Place})
	}
	if one {
		for i := range rows {
			rows[i] = slices.Delete(rows[i], 2, 3)
		}
	}
	return con.section(rows)
}
