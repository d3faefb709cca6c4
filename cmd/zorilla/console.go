package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	"golang.org/x/term"
)

// console is where a command reads and writes: data goes to standard output,
// messages go to standard error.
type console struct {
	stdin          io.Reader
	stdout, stderr io.Writer
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
