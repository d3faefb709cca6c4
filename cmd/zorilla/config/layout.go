package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"zorilla/cmd/zorilla/suggest"
)

const (
	clientTable = "client"
	jobTable    = "job"

	// NodeOption has the address of the node to talk to.
	NodeOption  = "node"
	stateOption = "state-dir"
)

// apart are commands that work without their files, also with broken ones: they tell of the
// program itself, or are called by programs.
var apart = []string{"help", "completion", "man", "version", "rsh"}

// Takes reports whether a command takes options from files.
func Takes(cmd *cli.Command) bool { return !cmd.Hidden && !slices.Contains(apart, cmd.Name) }

// everyCommand stands for the commands that have an option, whichever these are.
const everyCommand = "*"

// once are options that say what one call is about, by their first name, with the commands
// where they do. As a default they would end, remove or mistake what nobody has named: with a
// key for all of them, each submission but the first would be the first one again. Nor is trust
// in somebody else's words a default.
var once = map[string]string{"key": everyCommand, "trust-script": everyCommand, "print-file": everyCommand, "as-submitted": everyCommand,
	"all": "cancel", "name": "cancel", "release": "resize", "prune": "cache", "undo": "drain"}

// layout is which options may stand where.
type layout struct {
	tables map[string][]cli.Flag
	// names are the tables as somebody may have meant them.
	names []string
}

func newLayout(app *cli.App) *layout {
	l := &layout{tables: map[string][]cli.Flag{}}
	for _, cmd := range app.Commands {
		if !Takes(cmd) || len(cmd.Flags) == 0 {
			continue
		}
		l.tables[cmd.Name] = visible(cmd)
		if talks(cmd) && l.tables[clientTable] == nil {
			l.tables[clientTable] = []cli.Flag{flagOf(cmd, NodeOption), flagOf(cmd, stateOption)}
		}
	}
	for _, f := range l.tables["run"] {
		name, _ := parts(f)
		if name != NodeOption && name != stateOption && named(l.tables["submit"], name) != nil {
			l.tables[jobTable] = append(l.tables[jobTable], f)
		}
	}
	l.names = slices.Sorted(maps.Keys(l.tables))
	return l
}

// tablesOf are the tables about a command, its own first.
func tablesOf(cmd *cli.Command) []string {
	list := []string{cmd.Name}
	if slices.Contains([]string{"run", "submit", "check"}, cmd.Name) { // the last one looks at what is for the others
		list = append(list, jobTable)
	}
	if talks(cmd) {
		list = append(list, clientTable)
	}
	return list
}

// talks reports whether a command talks to a node.
func talks(cmd *cli.Command) bool {
	return flagOf(cmd, NodeOption) != nil && flagOf(cmd, stateOption) != nil
}

// visible are the options of a command that its help shows.
func visible(cmd *cli.Command) (list []cli.Flag) {
	for _, f := range cmd.VisibleFlags() {
		if first, _ := parts(f); first != "help" {
			list = append(list, f)
		}
	}
	return list
}

// flagOf returns the option of a command that has a name, or nil.
func flagOf(cmd *cli.Command, name string) cli.Flag { return named(cmd.Flags, name) }

func named(flags []cli.Flag, name string) cli.Flag {
	for _, f := range flags {
		if first, others := parts(f); first == name || slices.Contains(others, name) {
			return f
		}
	}
	return nil
}

// Repeatable reports whether an option may be given several times.
func Repeatable(f cli.Flag) bool { _, ok := f.(*cli.StringSliceFlag); return ok }

// checkTable refuses a table that is about nothing.
func (l *layout) checkTable(name string) error {
	if l.tables[name] != nil {
		return nil
	}
	text := fmt.Sprintf("unknown table [%s]", name)
	if meant := suggest.Meant(name, l.names, suggest.Commands); meant != "" {
		return fmt.Errorf("%s: did you mean [%s]?", text, meant)
	}
	return fmt.Errorf("%s: tables are called as commands, as in [run], or [%s] or [%s]", text, jobTable, clientTable)
}

// outside says what is wrong with what stands in no table.
func (l *layout) outside(name string) string {
	for _, table := range append([]string{clientTable, jobTable}, l.names...) {
		if f := named(l.tables[table], name); f != nil {
			return fmt.Sprintf("%s stands in no table: put it below [%s]", name, table)
		}
	}
	return fmt.Sprintf("%s is no table of options: want [COMMAND], and OPTION = VALUE below it", name)
}

// option returns the option of a table that has a name.
func (l *layout) option(table, name string) (cli.Flag, error) {
	if f := named(l.tables[table], name); f != nil {
		if of := once[Names(f)[0]]; of == everyCommand || of == table {
			return nil, fmt.Errorf("[%s] %s is of one call, and no default: type it", table, name)
		}
		return f, nil
	}
	text := fmt.Sprintf("[%s] has no option %s", table, name)
	for _, other := range []string{clientTable, jobTable, "run", "submit"} {
		if shares := table == jobTable || table == clientTable; shares && named(l.tables[other], name) != nil {
			return nil, fmt.Errorf("%s: it stands below [%s]", text, other)
		}
	}
	var names []string
	for _, f := range l.tables[table] {
		names = append(names, Names(f)...)
	}
	if meant := suggest.Option(strings.TrimLeft(name, "-"), names); meant != "" {
		text += ": did you mean " + meant + "?"
	}
	return nil, errors.New(text)
}

// Names are the names of an option, its first one first.
func Names(f cli.Flag) []string {
	first, others := parts(f)
	return append([]string{first}, others...)
}

// parts are the first name of an option and its others, as Flag.Names has them, which takes a
// regular expression to find them: for one file they are asked for a thousand times.
func parts(f cli.Flag) (first string, others []string) {
	switch f := f.(type) {
	case *cli.StringFlag:
		return f.Name, f.Aliases
	case *cli.BoolFlag:
		return f.Name, f.Aliases
	case *cli.IntFlag:
		return f.Name, f.Aliases
	case *cli.StringSliceFlag:
		return f.Name, f.Aliases
	case *cli.DurationFlag:
		return f.Name, f.Aliases
	case *cli.Float64Flag:
		return f.Name, f.Aliases
	}
	names := f.Names()
	return names[0], names[1:]
}
