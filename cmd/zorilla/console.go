package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"zorilla/cmd/zorilla/columns"
	"zorilla/cmd/zorilla/config"
	"zorilla/cmd/zorilla/progress"
	"zorilla/internal/units"
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
	fmt.Fprintf(con.stderr, "zorilla: %s\n", columns.Clean(fmt.Sprintf(format, args...)))
}

// printJSON writes v as one document.
func (con *console) printJSON(v any) error {
	enc := json.NewEncoder(con.stdout)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// printTable writes rows with aligned columns, the first one being the
// heading. Colour is added where a cell is a job's, a worker's or a node's state.
// (text/tabwriter would count colours, and wide characters as one column.)
func (con *console) printTable(rows [][]string) error {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			row[i] = columns.Clean(cell)
			widths[i] = max(widths[i], columns.Width(row[i]))
		}
	}
	colour := colours(con.stdout)
	var out []byte
	for _, row := range rows {
		for i, cell := range row {
			text := cell
			if colour {
				text = columns.Paint(cell)
			}
			out = append(out, text...)
			for range widths[i] - columns.Width(cell) + 2 {
				out = append(out, ' ')
			}
		}
		out = append(bytes.TrimRight(out, " "), '\n')
	}
	_, err := con.stdout.Write(out)
	return err
}

// section is a table after an empty line.
func (con *console) section(rows [][]string) error {
	if _, err := io.WriteString(con.stdout, "\n"); err != nil {
		return err
	}
	return con.printTable(rows)
}

// count writes "1 file", "2 files".
func count(n int, thing string) string { return units.Count(n, thing, thing+"s") }

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
