package chart

import (
	"errors"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestFigureAndTable(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "results")
	f := Figure{Title: "growth", X: "nodes", Y: "messages", LogX: true, Series: []Series{
		{Name: "ours", X: []float64{10, 100, 1000}, Y: []float64{1, 2, 3}, Points: true},
		{Name: "ideal", X: []float64{10, 100, 1000}, Y: []float64{1, 1, 1}, Dashed: true, Colour: 1},
	}}
	if err := Keep(dir, func(r *Results) error {
		r.PNG("figure.png", f)
		r.SVG("figure.svg", f)
		r.CSV("data.csv", []string{"nodes", "messages"}, [][]any{{10, 1.0 / 3}})
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(filepath.Join(dir, "figure.png"))
	if err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(file)
	file.Close()
	if err != nil || img.Bounds().Dx() < 800 {
		t.Fatalf("drew %v, %v", img, err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "figure.svg")); err != nil || !strings.Contains(string(b), "<svg") {
		t.Errorf("drew %.100q, %v", b, err)
	}
	f.Series[0].Y = f.Series[0].Y[:2]
	if err := Keep(dir, func(r *Results) error { r.PNG("bad.png", f); return nil }); err == nil || !strings.Contains(err.Error(), `"ours" has 3 x and 2 y`) {
		t.Errorf("uneven series: %v", err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "data.csv"))
	if err != nil || string(b) != "nodes,messages\n10,0.3333\n" {
		t.Errorf("wrote %q, %v", b, err)
	}
}

// A logarithm has no place for what costs nothing.
func TestNothingOnALogarithmicAxis(t *testing.T) {
	f := Figure{LogY: true, Series: []Series{
		{Name: "some", X: []float64{1, 2, 3}, Y: []float64{0, 10, 20}}, {Name: "none", X: []float64{1, 2}, Y: []float64{0, 0}},
	}}
	if err := f.draw(filepath.Join(t.TempDir(), "zero.png")); err != nil {
		t.Error(err)
	}
}

func TestResults(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "results")
	if err := Keep(dir, func(r *Results) error { _, err := r.Write([]byte("a table\n")); return err }); err != nil {
		t.Fatal(err)
	}
	of := regexp.MustCompile(`^The program as of commit (not known|[0-9a-f]{7,40}( with changes)?)\.\n\na table\n$`)
	if b, err := os.ReadFile(filepath.Join(dir, "results.txt")); err != nil || !of.Match(b) {
		t.Errorf("kept %q, %v", b, err)
	}
	why := errors.New("broken")
	if err := Keep("", func(r *Results) error {
		if r.Writer != os.Stdout {
			t.Error("without a folder text goes elsewhere")
		}
		r.CSV("data.csv", nil, nil)
		return why
	}); err != why {
		t.Errorf("without a folder: %v", err)
	}
}

func TestLineTakesRowsWithPoints(t *testing.T) {
	s := Line(Series{Name: "odd"}, []int{1, 2, 3}, func(n int) (x, y float64, ok bool) { return float64(n), 10, n%2 == 1 })
	if len(s.X) != 2 || len(s.Y) != 2 || s.X[1] != 3 || s.Name != "odd" {
		t.Errorf("got %+v", s)
	}
}
