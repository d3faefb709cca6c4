package main

import (
	"os"
	"path/filepath"
	"testing"

	"zorilla/testnet"
	"zorilla/testnet/chart"
)

// TestGrowthOfSmallNetworks measures networks of a few nodes of each kind.
func TestGrowthOfSmallNetworks(t *testing.T) {
	const n, seed = 12, 2
	bubble := testnet.InTest(t)
	var rows []row
	for _, measure := range []func() (row, error){
		func() (row, error) { return wholeNodes(bubble, n, seed) },
		func() (row, error) { return bareCores(2*n, seed) },
	} {
		r, err := measure()
		if err != nil {
			t.Fatal(err)
		}
		if r.final < enough || r.calm.vicinity <= 0 || r.calm.bytes < r.calm.vicinity || r.calm.bytes > 1500 || r.heap <= 0 {
			t.Errorf("%+v", r)
		}
		if len(r.cells()) != len(head()) {
			t.Errorf("%d cells under %d names", len(r.cells()), len(head()))
		}
		rows = append(rows, r)
	}
	dir := t.TempDir()
	if err := chart.Keep(dir, func(w *chart.Results) error { keepGrowth(w, rows); return nil }); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"growth.csv", "bytes.png", "heap.png"} {
		if st, err := os.Stat(filepath.Join(dir, name)); err != nil || st.Size() < 100 {
			t.Errorf("%s: %v, %v", name, st, err)
		}
	}
}
