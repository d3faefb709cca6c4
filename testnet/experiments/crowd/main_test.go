package main

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"testing"
	"time"

	"zorilla/testnet/chart"
)

// A crowd, small: what is compared with what, and that nothing fails.
func TestCrowd(t *testing.T) {
	list, err := topologies("line,matrix", measured{files: "../../sim/testdata/detours.txt"})
	if err != nil || len(list) != 2 {
		t.Fatalf("got %d, %v", len(list), err)
	}
	for _, topology := range list {
		for _, c := range []crowd{
			{fill: 50, jobs: 4, workers: 2, one: true},
			{fill: 50, jobs: 4, workers: 2},
			{fill: 50, jobs: 4, workers: 2, alone: true, apart: 5 * time.Second},
			{jobs: 4, workers: 2, alone: true, apart: 5 * time.Second, moved: time.Minute},
		} {
			c.topology, c.noise, c.nodes, c.warmUp = topology, "lossless", 30, 20*time.Second
			r, err := c.run(7)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%+v", r)
			for i, n := range r.nearer {
				if !c.one && (n > r.copies[i] || n == 0 && r.starts[i] > 6*time.Millisecond) {
					t.Errorf("%s, %+v: job %d took %d copies, and %d others are nearer than its farthest worker", topology.name, c, i, r.copies[i], n)
				}
			}
			if r.failed > 0 || len(r.starts) != 4 || r.ratio <= 0 || c.alone && (r.ratio < 0.99 || r.ratio > 1.2) || c.one && r.wholeCopies == 0 {
				t.Errorf("%s, %+v: got %+v", topology.name, c, r)
			}
		}
	}
	for _, bad := range [][2]string{{"moon", ""}, {"matrix", ""}, {"matrix", "main.go"}, {"line", "no such file"}} {
		if _, err := topologies(bad[0], measured{files: bad[1]}); err == nil {
			t.Errorf("topology %q with file %q is accepted", bad[0], bad[1])
		}
	}
	if _, err := noise("none"); err == nil {
		t.Error("noise none is accepted")
	}
}

// A world that somebody has measured: ways that differ, at two times, and nodes to which only
// answers come in.
func TestMeasuredWorld(t *testing.T) {
	const ways = "../../sim/testdata/ways-1.txt,../../sim/testdata/ways-2.txt"
	o, err := parse([]string{"-topology", "matrix", "-matrix", ways, "-ways", "-live", "-nat", "20", "-out", ""})
	if err != nil || len(o.topologies) != 1 || o.topologies[0].name != "matrix,live,nat20" {
		t.Fatalf("%+v, %v", o.topologies, err)
	}
	behind := 0
	for i, guarded := 0, o.topologies[0].guarded(30, 7); i < 30; i++ {
		if guarded(i) {
			behind++
		}
	}
	if behind != 6 {
		t.Errorf("only answers come in to %d of 30 nodes, want 6", behind)
	}
	c := crowd{topology: o.topologies[0], noise: "lossless", nodes: 30, warmUp: 20 * time.Second, fill: 50, jobs: 4, workers: 2, alone: true, apart: 5 * time.Second}
	r, err := c.run(7)
	if err != nil || r.failed > 0 || len(r.starts) != 4 || r.ratio < 0.99 || r.ratio > 1.2 {
		t.Errorf("%+v, %v", r, err)
	}
	for _, bad := range [][]string{{"-nat", "91"}, {"-nat", "-1"}, {"-topology", "matrix", "-matrix", "main.go", "-ways"}} {
		if _, err := parse(bad); err == nil {
			t.Errorf("%v is accepted", bad)
		}
	}
}

func TestParse(t *testing.T) {
	o, err := parse([]string{"-part", "alone", "-topology", "line", "-rows", "1,3", "-out", ""})
	if err != nil || len(o.parts) != 1 || len(o.topologies) != 1 || len(o.noises) != 2 || len(o.rows) != 2 || o.out != "" {
		t.Errorf("got %+v, %v", o, err)
	}
	for _, bad := range [][]string{{"-part", "none"}, {"-noise", "none"}, {"-rows", "0"}, {"-topology", "moon"}} {
		if _, err := parse(bad); err == nil {
			t.Errorf("%v is accepted", bad)
		}
	}
}

// A row has as many cells as there are columns.
func TestRows(t *testing.T) {
	dir := t.TempDir()
	o, err := parse([]string{"-part", "burst", "-topology", "line", "-noise", "lossless", "-rows", "1", "-seeds", "1", "-out", dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := chart.Keep(o.out, func(w *chart.Results) error { return run(w, o) }); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join(dir, "crowd.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll() // as many cells everywhere, else this is an error
	if err != nil || len(lines) != 2 {
		t.Fatalf("got %v, %v", lines, err)
	}
	row := map[string]string{}
	for i, name := range lines[0] {
		row[name] = lines[1][i]
	}
	if row["jobs"] != "10" || row["failed"] != "0" || row["whole_copies_median"] == "0" || row["ratio_median"] == "0" {
		t.Errorf("got %v", row)
	}
}
