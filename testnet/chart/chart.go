// Package chart keeps the results of an experiment: a figure as PNG and the
// numbers behind it as CSV, in a folder that is committed with the command that
// made it. It is for testnet/experiments and tests, never for the program.
package chart

import (
	"encoding/csv"
	"fmt"
	"image/color"
	"io"
	"math"
	"os"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// Series is one line of a figure.
type Series struct {
	Name   string
	X, Y   []float64 // of the same length
	Dashed bool      // the ideal, or what others have reached
	Points bool      // marks the points
	Colour int       // from 1; 0 = its place in the figure
}

// Figure is a chart with lines. Series of the same place in it, or with the same
// Colour, have the same colour in every figure.
type Figure struct {
	Title      string
	X, Y       string // what the axes show, with the unit
	LogX, LogY bool   // all values of that axis must be > 0
	LegendLeft bool   // for lines that rise
	Series     []Series
}

// Colours that people with colour blindness can tell apart (Okabe and Ito,
// Color Universal Design, 2008).
var palette = []color.NRGBA{
	{0, 114, 178, 255}, {230, 159, 0, 255}, {0, 158, 115, 255}, {213, 94, 0, 255},
	{204, 121, 167, 255}, {86, 180, 233, 255}, {120, 120, 120, 255}, {200, 190, 40, 255},
}

// PNG draws the figure, about 1000 by 600 pixels, into a file.
func (f Figure) PNG(path string) error {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = f.Title, f.X, f.Y
	p.Title.Padding = vg.Points(8)
	p.Legend.Top, p.Legend.Left = true, f.LegendLeft
	p.Legend.Padding = vg.Points(2)
	p.Add(plotter.NewGrid())
	if f.LogX {
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	if f.LogY {
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	for i, s := range f.Series {
		if len(s.X) != len(s.Y) {
			return fmt.Errorf("draw %s: series %q has %d x and %d y", path, s.Name, len(s.X), len(s.Y))
		}
		colour := i
		if s.Colour > 0 {
			colour = s.Colour - 1
		}
		if err := add(p, s, palette[colour%len(palette)]); err != nil {
			return fmt.Errorf("draw %s: series %q: %w", path, s.Name, err)
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return p.Save(vg.Points(720), vg.Points(430), path)
}

// add draws one series.
func add(p *plot.Plot, s Series, c color.NRGBA) error {
	points := make(plotter.XYs, len(s.X))
	for i := range points {
		points[i] = plotter.XY{X: s.X[i], Y: s.Y[i]}
	}
	line, marks, err := plotter.NewLinePoints(points)
	if err != nil {
		return err
	}
	line.Color, line.Width, marks.Color = c, vg.Points(1.8), c
	if s.Dashed {
		line.Dashes = []vg.Length{vg.Points(6), vg.Points(4)}
	}
	p.Add(line)
	if s.Points {
		p.Add(marks)
	}
	if s.Name != "" {
		p.Legend.Add(s.Name, line)
	}
	return nil
}

// CSV writes a table with a header into a file.
func CSV(path string, header []string, rows [][]string) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := csv.NewWriter(f)
	err = w.WriteAll(append([][]string{header}, rows...))
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// Results returns a writer to standard output and to results.txt in a folder; to
// standard output alone if the folder is empty. Call done at the end.
func Results(dir string) (w io.Writer, done func() error, err error) {
	if dir == "" {
		return os.Stdout, func() error { return nil }, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, nil, err
	}
	f, err := os.Create(filepath.Join(dir, "results.txt"))
	if err != nil {
		return nil, nil, err
	}
	return io.MultiWriter(os.Stdout, f), f.Close, nil
}

// Number writes a number for a CSV file: up to four digits after the point,
// and nothing for what is not a number.
func Number(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return ""
	}
	return fmt.Sprintf("%.10g", math.Round(v*1e4)/1e4)
}
