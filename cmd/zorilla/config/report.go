package config

import (
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// What an option comes from.
const (
	FromFile        = "file"
	FromEnvironment = "environment"
	FromDefault     = "default"
)

// Option is what is in force for an option of a command, unless it is typed.
type Option struct {
	Command  string   `json:"command"`
	Option   string   `json:"option"`
	Values   []string `json:"values"` // none: it has no value; secrets are Hidden, and defaults are words
	Source   string   `json:"source"` // FromFile, FromEnvironment or FromDefault
	File     string   `json:"file,omitempty"`
	Line     int      `json:"line,omitempty"`
	Variable string   `json:"variable,omitempty"`
	Place    string   `json:"-"` // of these, for people
}

// Hidden stands for a secret.
const Hidden = "(hidden)"

// InForce reports what is in force for the options of a command.
func (c *Config) InForce(cmd *cli.Command) (list []Option) {
	variable := func(f cli.Flag) string {
		names := []string{}
		if d, ok := f.(cli.DocGenerationFlag); ok {
			names = d.GetEnvVars()
		}
		if name := clientVariables[Names(f)[0]]; name != "" && talks(cmd) {
			names = append(names, name)
		}
		if i := slices.IndexFunc(names, says); i >= 0 {
			return names[i]
		}
		return ""
	}
	chosen := c.chosen(cmd, func(option string) bool {
		f := flagOf(cmd, option)
		return f != nil && variable(f) != ""
	})
	for _, f := range visible(cmd) {
		o := Option{Command: cmd.Name, Option: Longest(f), Values: []string{}, Source: FromDefault, Place: "default"}
		at := slices.IndexFunc(chosen, func(s setting) bool { return Names(s.flag)[0] == Names(f)[0] })
		name := variable(f)
		switch {
		case name != "":
			o.Source, o.Variable, o.Place, o.Values = FromEnvironment, name, "$"+name, []string{os.Getenv(name)}
		case at >= 0:
			s := chosen[at]
			o.Source, o.File, o.Line, o.Place, o.Values = FromFile, s.file, s.line, s.place, slices.Clone(s.values)
		default:
			if text := usual(f); text != "" {
				o.Values = []string{text}
			}
		}
		for i, v := range o.Values {
			if o.Source != FromDefault && Secret(Names(f)[0], v) {
				o.Values[i] = Hidden
			}
		}
		list = append(list, o)
	}
	return list
}

// Longest is the name of an option that says most.
func Longest(f cli.Flag) string {
	return slices.MaxFunc(Names(f), func(a, b string) int { return len(a) - len(b) })
}

// usual is what an option is if nobody says so, in the words of its help.
func usual(f cli.Flag) string {
	if _, isBool := f.(*cli.BoolFlag); isBool {
		if text := f.(cli.DocGenerationFlag).GetDefaultText(); text != "" {
			return text
		}
		return "false"
	}
	d, ok := f.(cli.DocGenerationFlag)
	if !ok {
		return ""
	}
	text := d.GetDefaultText()
	if _, isInt := f.(*cli.IntFlag); isInt && text == "0" {
		return ""
	}
	return strings.Trim(text, `"`)
}

// Seen is a file that was looked for.
type Seen struct {
	Path string `json:"path"`
	Read bool   `json:"read"` // false: it does not exist
}

// Files are the places that were looked at.
func (c *Config) Files(places Places) (list []Seen) {
	for _, path := range places.paths() {
		list = append(list, Seen{path, slices.ContainsFunc(c.files, func(f *file) bool { return f.path == path })})
	}
	return list
}
