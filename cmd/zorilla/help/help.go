// Package help prints what commands say of themselves.
package help

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"zorilla/cmd/zorilla/columns"
)

// Columns: where text begins within a section, where that of an option does, and where a line
// of it ends.
const (
	indent     = 3
	optionText = 28
	lineEnd    = 100
)

// Print is a cli.HelpPrinter for applications and commands without subcommands. It does not use
// the template, which takes as long as all else that a command does to start.
func Print(w io.Writer, _ string, of any) {
	var p page
	switch of := of.(type) {
	case *cli.App:
		p.section("name", of.HelpName+" - "+of.Usage)
		p.section("usage", of.UsageText)
		p.section("description", of.Description)
		p.commands(of)
		p.options("global options", of.VisibleFlags())
	case *cli.Command:
		p.section("name", of.HelpName+" - "+of.Usage)
		p.section("usage", of.UsageText)
		p.section("description", of.Description)
		p.options("options", of.VisibleFlags())
	default:
		panic(fmt.Sprintf("help of a %T", of))
	}
	_, _ = io.WriteString(w, p.String()) // as cli does: who does not read it does not miss it
}

// Groups are the categories of commands that are shown, in the order in which they come first.
func Groups(app *cli.App) (list []string) {
	seen := map[string]bool{}
	for _, c := range app.Commands {
		if !c.Hidden && !seen[c.Category] {
			seen[c.Category] = true
			list = append(list, c.Category)
		}
	}
	return list
}

type page struct{ strings.Builder }

func (p *page) line(in int, text string) {
	if text != "" {
		p.WriteString(strings.Repeat(" ", in))
	}
	p.WriteString(text + "\n")
}

func (p *page) title(text string) {
	if p.Len() > 0 {
		p.line(0, "")
	}
	p.line(0, strings.ToUpper(text)+":")
}

func (p *page) section(title, text string) {
	if text == "" {
		return
	}
	p.title(title)
	for line := range strings.SplitSeq(text, "\n") {
		p.line(indent, line)
	}
}

func (p *page) commands(app *cli.App) {
	p.title("commands")
	width := 0
	for _, c := range app.VisibleCommands() {
		width = max(width, len(c.Name))
	}
	for _, group := range Groups(app) {
		title := group
		if title == "" {
			title = "Other"
		}
		p.line(indent, title+":")
		for _, c := range app.Commands {
			if c.Category == group && !c.Hidden {
				p.line(indent+2, fmt.Sprintf("%-*s  %s", width, c.Name, c.Usage))
			}
		}
	}
}

// options are the names of each, then its text in lines that begin in one column, the first beside
// the names if there is room.
func (p *page) options(title string, flags []cli.Flag) {
	if len(flags) == 0 {
		return
	}
	p.title(title)
	for _, f := range flags {
		names, text := Option(f)
		lines := wrapped(text, lineEnd-optionText)
		if room := optionText - indent; len(names)+2 <= room {
			p.line(indent, fmt.Sprintf("%-*s%s", room, names, lines[0]))
			lines = lines[1:]
		} else {
			p.line(indent, names)
		}
		for _, line := range lines {
			p.line(optionText, line)
		}
	}
}

// Option returns the names of an option, and what it means.
func Option(f cli.Flag) (names, text string) {
	names, text, _ = strings.Cut(cli.FlagStringer(f), "\t")
	names, _, _ = strings.Cut(names, " [ ") // once more, as it is repeatable: the text says so
	return strings.TrimSpace(names), strings.TrimSpace(text)
}

// wrapped breaks a text into lines, one at least.
func wrapped(text string, width int) []string {
	lines := []string{""}
	for _, word := range strings.Fields(text) {
		switch last := &lines[len(lines)-1]; {
		case *last == "":
			*last = word
		case columns.Width(*last)+1+columns.Width(word) > width:
			lines = append(lines, word)
		default:
			*last += " " + word
		}
	}
	return lines
}
