// Package chart keeps the results of an experiment: what it prints, figures as PNG
// or SVG and the numbers behind them as CSV, in a folder that is committed with the command
// that made it. It is for testnet/experiments and tests, never for the program.
package chart

import (
	"fmt"
	"image/color"

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

// Line adds to a series the points of those rows that have one.
func Line[T any](s Series, rows []T, point func(T) (x, y float64, ok bool)) Series {
	for _, r := range rows {
		if x, y, ok := point(r); ok {
			s.X, s.Y = append(s.X, x), append(s.Y, y)
		}
	}
	return s
}

// draw draws the figure, about 1000 by 600 pixels, into a file, in the format that its name ends with.
func (f Figure) draw(path string) error {
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
		points := f.points(s)
		if len(points) == 0 {
			continue
		}
		if err := add(p, s, points, palette[colour%len(palette)]); err != nil {
			return fmt.Errorf("draw %s: series %q: %w", path, s.Name, err)
		}
	}
	return p.Save(vg.Points(720), vg.Points(430), path)
}

// points are those of a series that have a place in the figure: a logarithm has none for 0.
func (f Figure) points(s Series) (list plotter.XYs) {
	for i := range s.X {
		if (!f.LogX || s.X[i] > 0) && (!f.LogY || s.Y[i] > 0) {
			list = append(list, plotter.XY{X: s.X[i], Y: s.Y[i]})
		}
	}
	return list
}

// add draws one series.
func add(p *plot.Plot, s Series, points plotter.XYs, c color.NRGBA) error {
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
