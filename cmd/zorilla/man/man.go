// Package man makes manual pages of what commands say of themselves.
package man

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"zorilla/cmd/zorilla/help"
)

// Page is the manual page of a command, or of all of them if cmd is nil, in the language of
// man(7).
func Page(app *cli.App, cmd *cli.Command) string {
	var p page
	if cmd != nil {
		p.head(app.Name+"-"+cmd.Name, app, cmd.Usage)
		p.command(cmd, ".SH", "OPTIONS")
		p.line(".SH SEE ALSO")
		p.line(".BR " + app.Name + " (1)")
		return p.String()
	}
	p.head(app.Name, app, app.Usage)
	p.line(".SH SYNOPSIS")
	p.text(app.UsageText)
	p.line(".SH DESCRIPTION")
	p.text(app.Description)
	for _, group := range help.Groups(app) {
		title := "COMMANDS"
		if group != "" {
			title += ": " + strings.ToUpper(group)
		}
		p.line(".SH " + title)
		for _, c := range app.Commands {
			if c.Category == group && !c.Hidden {
				p.line(".SS " + app.Name + " " + c.Name)
				p.paragraph(strings.ToUpper(c.Usage[:1]) + c.Usage[1:] + ".")
				p.command(c, "", "")
			}
		}
	}
	return p.String()
}

type page struct{ strings.Builder }

func (p *page) line(text string) { p.WriteString(text + "\n") }

// paragraph is text that may be filled.
func (p *page) paragraph(text string) { p.line(escape(text)) }

// text keeps its lines.
func (p *page) text(text string) {
	p.line(".nf")
	for line := range strings.Lines(text) {
		p.line(escape(strings.TrimRight(line, "\n")))
	}
	p.line(".fi")
}

func (p *page) head(name string, app *cli.App, usage string) {
	version, _, _ := strings.Cut(app.Version, " ")
	p.line(fmt.Sprintf(".TH %s 1 \"\" \"zorilla %s\" \"Zorilla\"", strings.ToUpper(name), escape(version)))
	p.line(".SH NAME")
	p.line(escape(name) + ` \- ` + escape(usage))
}

// command is what a command says of itself; heading begins its sections, if it has any.
func (p *page) command(c *cli.Command, heading, options string) {
	section := func(title string) {
		if heading == "" {
			p.line(".PP")
		} else {
			p.line(heading + " " + title)
		}
	}
	section("SYNOPSIS")
	p.text(c.UsageText)
	if c.Description != "" {
		section("DESCRIPTION")
		p.text(c.Description)
	}
	flags := c.VisibleFlags()
	if len(flags) == 0 {
		return
	}
	section(options)
	for _, f := range flags {
		names, meaning := help.Option(f)
		p.line(".TP")
		p.line(".B " + escape(names))
		p.paragraph(meaning)
	}
}

// escape has text mean itself.
func escape(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`, "…", "...").Replace(text)
	if strings.HasPrefix(text, ".") {
		text = `\&` + text
	}
	return text
}
