package chart

import (
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFigureAndTable(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "results")
	f := Figure{Title: "growth", X: "nodes", Y: "messages", LogX: true, Series: []Series{
		{Name: "ours", X: []float64{10, 100, 1000}, Y: []float64{1, 2, 3}, Points: true},
		{Name: "ideal", X: []float64{10, 100, 1000}, Y: []float64{1, 1, 1}, Dashed: true, Colour: 1},
	}}
	path := filepath.Join(dir, "figure.png")
	if err := f.PNG(path); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(file)
	file.Close()
	if err != nil || img.Bounds().Dx() < 800 {
		t.Fatalf("drew %v, %v", img, err)
	}
	f.Series[0].Y = f.Series[0].Y[:2]
	if err := f.PNG(filepath.Join(dir, "bad.png")); err == nil || !strings.Contains(err.Error(), `"ours" has 3 x and 2 y`) {
		t.Errorf("uneven series: %v", err)
	}
	if err := CSV(filepath.Join(dir, "data.csv"), []string{"nodes", "messages"}, [][]string{{"10", Number(1.0 / 3)}}); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "data.csv"))
	if err != nil || string(b) != "nodes,messages\n10,0.3333\n" {
		t.Errorf("wrote %q, %v", b, err)
	}
}

func TestResults(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "results")
	w, done, err := Results(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("a table\n")); err != nil || done() != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "results.txt")); err != nil || string(b) != "a table\n" {
		t.Errorf("kept %q, %v", b, err)
	}
	if w, done, err = Results(""); err != nil || w != os.Stdout || done() != nil {
		t.Errorf("without a folder: %v, %v", w, err)
	}
}
