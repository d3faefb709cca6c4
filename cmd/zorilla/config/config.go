// Package config has commands take options from files, where neither the command line nor
// a variable has them.
//
// A file is TOML. Its tables are named after commands, and what stands in them are options by
// any of their names: [run] has np = 4. Two tables are of several commands: [job] of what run
// and submit have in common, and [client] of the options by which commands find their node.
// Of two files the user's wins, whatever the tables; in one file that of the command.
package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"zorilla/cmd/zorilla/suggest"
)

const (
	// Variable names the user's file, or says None: then no file is read.
	Variable = "ZORILLA_CONFIG"
	// None is what Variable says where no file is wanted.
	None = "none"

	systemFile = "/etc/zorilla/config.toml"
)

// Places are the files that are read if they exist; the zero value is none.
type Places struct {
	User, System string
	Named        bool // the first of them has to exist, since a variable names it
}

// paths are those of the files, the user's first.
func (p Places) paths() []string {
	return slices.DeleteFunc([]string{p.User, p.System}, func(path string) bool { return path == "" })
}

// Usual returns the files of this process's environment.
func Usual() Places {
	switch named := os.Getenv(Variable); named {
	case "":
	case None:
		return Places{}
	default:
		if filepath.Clean(named) == systemFile { // which does not become the user's own by that
			return Places{System: systemFile, Named: true}
		}
		return Places{User: named, System: systemFile, Named: true}
	}
	dir, err := os.UserConfigDir()
	if err != nil { // it has no home
		return Places{System: systemFile}
	}
	return Places{User: filepath.Join(dir, "zorilla", "config.toml"), System: systemFile}
}

// Config is what the files say, the user's first. Nil is nothing.
type Config struct{ files []*file }

// Read reads the files, and checks all that they say, whichever command asks. An error is
// one line that names the file and, where there is one, the line.
func Read(places Places, app *cli.App) (*Config, error) {
	var c Config
	var l *layout
	for i, path := range places.paths() {
		f, err := open(path, path == places.User)
		if err == nil && f == nil && i == 0 && places.Named {
			err = fmt.Errorf("%s: there is no such file, which $%s names", path, Variable)
		}
		if err == nil && f != nil {
			if l == nil {
				l = newLayout(app)
			}
			err = f.parse(l)
		}
		if err != nil {
			return nil, err
		}
		if f != nil {
			c.files = append(c.files, f)
		}
	}
	return &c, nil
}

// setting is an option in a file.
type setting struct {
	table  string
	flag   cli.Flag
	values []string // as they would be typed; one, unless the option is repeatable
	place  string   // FILE:LINE
	file   string
	line   int
}

// sources are the tables that are about a command, the one that wins first.
func (c *Config) sources(cmd *cli.Command) (list [][]setting) {
	if c == nil {
		return nil
	}
	for _, f := range c.files {
		for _, table := range tablesOf(cmd) {
			var found []setting
			for _, s := range f.settings {
				if own := flagOf(cmd, Names(s.flag)[0]); s.table == table && own != nil {
					s.flag = own // its other names are those of this command: ps --state is not that of status
					found = append(found, s)
				}
			}
			list = append(list, found)
		}
	}
	return list
}

// alternatives are options that say one thing: where one is given none of them is taken from
// a place that counts less.
var alternatives = [][]string{{NodeOption, stateOption}, {"secret", "secret-file"}, {"n", "a", "each-line"}}

// says reports whether a variable says something: one that is empty is as one that is not there.
func says(variable string) bool { return os.Getenv(variable) != "" }

// DropEmpty takes the program's variables that say nothing from the environment of this process:
// the parser of options would take their text for a value.
func DropEmpty() {
	for _, variable := range os.Environ() {
		if name, value, _ := strings.Cut(variable, "="); value == "" && strings.HasPrefix(name, "ZORILLA_") {
			_ = os.Unsetenv(name) // it has a name
		}
	}
}

// clientVariables stand for the alternatives of which they are, in commands that talk to a node.
var clientVariables = map[string]string{NodeOption: "ZORILLA_NODE", stateOption: "ZORILLA_STATE"}

// chosen returns the settings that count for a command, if isSet reports what the command line
// and the environment have.
func (c *Config) chosen(cmd *cli.Command, isSet func(option string) bool) (list []setting) {
	client := talks(cmd)
	taken := func(option string) bool {
		if f := flagOf(cmd, option); f != nil && Names(f)[0] != option { // ps -a lists all, and is no array
			return false
		}
		return isSet(option) || client && says(clientVariables[option])
	}
	done := map[string]bool{}
	for _, source := range c.sources(cmd) {
		var now []string
		for _, s := range source {
			same := []string{Names(s.flag)[0]}
			for _, group := range alternatives {
				if slices.Contains(group, same[0]) {
					same = group
				}
			}
			if slices.ContainsFunc(same, func(o string) bool { return done[o] || taken(o) }) {
				continue
			}
			list, now = append(list, s), append(now, same...)
		}
		for _, o := range now {
			done[o] = true
		}
	}
	return list
}

// Used are options that files gave to a command.
type Used struct{ settings []setting }

// Apply sets the options of a command that files have, and nothing nearer.
func (c *Config) Apply(to *cli.Context) (*Used, error) {
	u := &Used{c.chosen(to.Command, to.IsSet)}
	for _, s := range u.settings {
		names := Names(s.flag)
		if Repeatable(s.flag) {
			names = names[:1] // all names have one list
		}
		for _, name := range names {
			for _, v := range s.values {
				if err := to.Set(name, v); err != nil {
					return nil, fmt.Errorf("%s: %s: %w", s.place, name, err)
				}
			}
		}
	}
	return u, nil
}

// Blame completes what a command says is wrong with an option, if the option was not typed:
// by where it stands.
func (u *Used) Blame(text string) string {
	var places []string
	for _, s := range u.settings {
		for _, name := range Names(s.flag) {
			if option := suggest.Dashes(name); mentions(text, option) {
				places = append(places, option+" is from "+s.place)
			}
		}
	}
	if len(places) == 0 {
		return text
	}
	return text + " (" + strings.Join(places, ", ") + ")"
}

// mentions reports whether a text has an option as a word of its own.
func mentions(text, option string) bool {
	for at := 0; ; {
		i := strings.Index(text[at:], option)
		if i < 0 {
			return false
		}
		at += i
		before, after := text[:at], text[at+len(option):]
		if !part(before, len(before)-1) && !part(after, 0) {
			return true
		}
		at += len(option)
	}
}

// part reports whether there is a byte at i which could be one of an option.
func part(s string, i int) bool {
	if i < 0 || i >= len(s) {
		return false
	}
	c := s[i]
	return c == '-' || c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// Node reports where files have a command find its node, if nothing nearer does.
func (c *Config) Node(cmd *cli.Command) (address, state string) {
	if cmd == nil {
		return "", ""
	}
	for _, s := range c.chosen(cmd, func(string) bool { return false }) {
		switch Names(s.flag)[0] {
		case NodeOption:
			address = s.values[0]
		case stateOption:
			state = s.values[0]
		}
	}
	return address, state
}
