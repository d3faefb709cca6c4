package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"zorilla/cmd/zorilla/config"
	"zorilla/cmd/zorilla/progress"
)

// console is where a command reads and writes: data goes to standard output,
// messages go to standard error.
type console struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	line           *progress.Line // shows how far long steps are; nil = not
	places         config.Places  // files with options
	files          *config.Config // what these say; nil = they were not read yet, or
	broken         error          // why they could not be
}

// showProgress has long steps shown as the options of a command say.
func (con *console) showProgress(c *cli.Context) error {
	mode := progress.Mode(c.String("progress"))
	switch mode {
	case progress.None, progress.JSON, progress.Bar:
	case "":
		if mode = progress.None; !c.Bool("q") && onTerminal(con.stderr) && os.Getenv("TERM") != "dumb" {
			mode = progress.Bar
		}
	default:
		return usage(c, "--progress %s: want bar, json or none", mode)
	}
	width := func() int { return 80 }
	if f, ok := con.stderr.(*os.File); ok {
		width = func() int {
			if columns, _, err := term.GetSize(int(f.Fd())); err == nil {
				return columns
			}
			return 80
		}
	}
	con.line = progress.New(mode, con.stderr, width, time.Now)
	if onTerminal(con.stdout) {
		con.stdout = con.line.Over(con.stdout)
	}
	con.stderr = con.line.Over(con.stderr)
	return nil
}

// say writes one message to standard error.
func (con *console) say(format string, args ...any) {
	fmt.Fprintf(con.stderr, "zorilla: %s\n", clean(fmt.Sprintf(format, args...)))
}

// printJSON writes v as one document.
func (con *console) printJSON(v any) error {
	enc := json.NewEncoder(con.stdout)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// clean makes text that may come from other machines safe for a terminal.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}

// onTerminal reports whether somebody reads along: what is written elsewhere
// may be kept for others to see.
func onTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// colours reports whether w is a terminal whose user wants colour.
func colours(w io.Writer) bool {
	return onTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
