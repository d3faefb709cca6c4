package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"zorilla/jobs"
	"zorilla/testnet/chart"
)

func TestSeconds(t *testing.T) {
	if s, err := seconds("ring 0: 1\nep 2^24 on 8 ranks: 0.412 s, verified\n"); err != nil || s != 0.412 {
		t.Errorf("got %v, %v", s, err)
	}
	for _, text := range []string{"", "is 2^20 keys, 10 times on 8 ranks: 0.412 s, WRONG\n", "ep 2^24 on 8 ranks: 0.412 s, plausible\n"} {
		if s, err := seconds(text); err == nil {
			t.Errorf("%q took %v", text, s)
		}
	}
}

func TestPlaces(t *testing.T) {
	job := &jobs.Status{Workers: []jobs.WorkerStatus{{Name: "nancy-1"}, {Name: "nancy-2"}, {Name: "lyon-1"}, {Name: "nancy-1"}}}
	if hosts, sites := places(job); hosts != 3 || sites != 2 {
		t.Errorf("%d hosts at %d sites", hosts, sites)
	}
}

// A run that failed has no time, and is told.
func TestReport(t *testing.T) {
	all := []trial{
		{Plan: "grid5000", Kernel: "is", Strategy: "spread", Size: 4, Seconds: 0.5, Wall: 0.9, Hosts: 4, Sites: 2},
		{Plan: "grid5000", Kernel: "is", Strategy: "spread", Size: 4, Seconds: 0.7, Wall: 0.8, Hosts: 4, Sites: 3},
		{Plan: "grid5000", Kernel: "is", Strategy: "spread", Size: 4, Failed: "lost"},
		{Plan: "room", Kernel: "is", Strategy: "spread", Size: 4, Seconds: 0.1, Wall: 0.2, Hosts: 4, Sites: 2},
	}
	dir := t.TempDir()
	if err := chart.Keep(dir, func(r *chart.Results) error { report(r, all, 3); return nil }); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "results.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| 4 | spread | 4 | 2 to 3 | 600 (500 to 700) | 100 (100 to 100) | 6 | 850 |\n",
		"| 4 | concentrate | - | - | - | - |  |  |\n",
		"Failed: grid5000, is of 4 by spread: lost\n",
		"1 of 4 runs failed.\n",
	} {
		if !strings.Contains(string(b), want) {
			t.Errorf("the results lack %q:\n%s", want, b)
		}
	}
	for _, name := range []string{"ep.png", "is.png", "kernels.csv"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}
