package chart

import (
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Results is where an experiment puts what it finds: what it prints goes to standard
// output and into results.txt of a folder, below a line that names the commit they are of; tables and figures
// into files beside it.
// Without a folder only standard output is left.
type Results struct {
	io.Writer
	dir string
	err error // the first
}

// Main is the main function of an experiment that has no options but a folder, by
// default docs/experiments/NAME, and a number of seeds.
func Main(name string, seeds int, run func(r *Results, seeds int) error) {
	out := flag.String("out", "docs/experiments/"+name, "folder for the results; empty = none")
	flag.IntVar(&seeds, "seeds", seeds, "networks of each kind")
	flag.Parse()
	Exit(name, Keep(*out, func(r *Results) error { return run(r, seeds) }))
}

// Exit ends the process, with 1 and the error if there is one.
func Exit(name string, err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Keep runs an experiment with a folder for its results, "" for none. It returns
// the experiment's error, and what could not be kept.
func Keep(dir string, run func(*Results) error) error {
	if dir == "" {
		return run(&Results{Writer: os.Stdout})
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	text, err := os.Create(filepath.Join(dir, "results.txt"))
	if err != nil {
		return err
	}
	r := &Results{Writer: io.MultiWriter(os.Stdout, text), dir: dir}
	fmt.Fprintf(r, "The program as of commit %s.\n\n", Commit())
	err = run(r)
	return errors.Join(err, r.err, text.Close())
}

// program is where that is which experiments are about.
var program = []string{":/cmd", ":/flood", ":/internal", ":/jobs", ":/node", ":/transfer", ":/vicinity", ":/go.mod"}

// Commit names the latest change of the program in the repository of the working directory, and whether
// there are others beside it. The script .ci/old looks for it.
func Commit() string {
	git := func(args ...string) (string, error) {
		out, err := exec.Command("git", slices.Concat(args, []string{"--"}, program)...).Output()
		return strings.TrimSpace(string(out)), err
	}
	name, err := git("log", "-1", "--format=%h")
	if err != nil {
		return "not known"
	}
	if changes, err := git("status", "--porcelain"); err != nil || changes != "" {
		name += " with changes"
	}
	return name
}

// file has a file of the folder written, unless there is none or something failed.
func (r *Results) file(name string, write func(path string) error) {
	if r.dir != "" && r.err == nil {
		r.err = write(filepath.Join(r.dir, name))
	}
}

// PNG draws a figure into a file of the folder.
func (r *Results) PNG(name string, f Figure) { r.file(name, f.draw) }

// SVG draws a figure as lines, which stay sharp at any size, and of which a change is small, into a file whose name
// ends with .svg.
func (r *Results) SVG(name string, f Figure) { r.file(name, f.draw) }

// CSV writes a table with a header into a file of the folder. Fractions are written
// as Number does.
func (r *Results) CSV(name string, header []string, rows [][]any) {
	r.file(name, func(path string) error {
		all := [][]string{header}
		for _, row := range rows {
			all = append(all, Cells(row...))
		}
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		return errors.Join(csv.NewWriter(f).WriteAll(all), f.Close())
	})
}

// Cells writes values as they stand in a table.
func Cells(values ...any) []string {
	var cells []string
	for _, v := range values {
		if f, ok := v.(float64); ok {
			v = Number(f)
		}
		cells = append(cells, fmt.Sprint(v))
	}
	return cells
}

// Number writes a number for a table: up to four digits after the point,
// and nothing for what is not a number.
func Number(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return ""
	}
	return fmt.Sprintf("%.10g", math.Round(v*1e4)/1e4)
}
