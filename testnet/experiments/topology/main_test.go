package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"zorilla/internal/needs"
	"zorilla/jobs"
	"zorilla/testnet/chart"
	"zorilla/testnet/hosts/lab"
)

// TestMain plays the script if this program is that of a lab.
func TestMain(m *testing.M) {
	if lab.Inside() {
		main()
	}
	os.Exit(m.Run())
}

// A short run of everything: Zorilla puts islands and bodies where they belong, programs of both MPIs learn table 1, and
// what they find does not depend on the place.
func TestQuick(t *testing.T) {
	needs.Root(t)
	needs.Programs(t, "make", "mpicc.openmpi", "mpicc.mpich", "ip", "bridge")
	t.Chdir("../../..")
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute) // of ten that a test has
	defer cancel()
	if err := chart.Keep("", func(r *chart.Results) error { return experiment(ctx, r, &options{rounds: 1, quick: true}) }); err != nil {
		t.Error(err)
	}
}

func TestCasesAreJobs(t *testing.T) {
	cases := (&options{most: 128}).cases()
	if len(cases) != 4*3+3*2 {
		t.Errorf("%d cases", len(cases))
	}
	for _, c := range cases {
		if err := c.spec.Validate(); err != nil {
			t.Errorf("%s %s of %d: %v", c.program, c.arrangement, c.spec.Max, err)
		}
		if c.sites != nil && len(c.sites) != c.spec.Max {
			t.Errorf("%s %s of %d: sites of %d ranks", c.program, c.arrangement, c.spec.Max, len(c.sites))
		}
		if slots := c.spec.Max * c.spec.Slots; slots != slotsOfJob {
			t.Errorf("%s %s of %d takes %d slots", c.program, c.arrangement, c.spec.Max, slots)
		}
	}
	if spec := paperJob("groups.mpich"); spec.Validate() != nil {
		t.Error(spec.Validate())
	}
}

func TestMisplaced(t *testing.T) {
	cases := islandCases(16, 1)
	good, bad := &cases[0], &cases[1]
	island := func(sites ...string) (all []string) {
		for _, s := range sites {
			all = append(all, slices.Repeat([]string{s}, 4)...)
		}
		return all
	}
	right := island(orsay, bordeaux, bordeaux, orsay)
	if why := good.misplaced(right); why != "" {
		t.Error(why)
	}
	split := slices.Clone(right)
	split[3] = bordeaux
	for _, c := range []struct {
		of    *one
		sites []string
		why   string
	}{
		{good, split, "island 0 at map[bordeaux:1 orsay:3]"},
		{good, island(orsay, orsay, orsay, orsay), "ranks at map[orsay:16] alone"},
		{good, right[:8], "8 ranks"},
		{bad, right, "ranks at map[bordeaux:8 orsay:8]"},
	} {
		if why := c.of.misplaced(c.sites); why != c.why {
			t.Errorf("%s at %v: %q, want %q", c.of.arrangement, c.sites, why, c.why)
		}
	}
}

func TestSaid(t *testing.T) {
	result, seconds, err := said("a line\nnbody: 8 particles, 5 steps, sum 12ab on 16 ranks: 0.412 s, verified\n")
	if err != nil || seconds != 0.412 || result != "8 particles, 5 steps, sum 12ab" {
		t.Errorf("%q, %v, %v", result, seconds, err)
	}
	for _, text := range []string{"", "nbody: 8 particles, 5 steps, sum 12ab on 16 ranks: 0.412 s, WRONG\n"} {
		if _, _, err := said(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

// Aims that are missed, wrong places and different results are told, and make an error.
func TestReport(t *testing.T) {
	cases := slices.Concat(islandCases(16, 100), bodyCases(5, part{bordeaux, 8}, part{orsay, 8}))
	run := func(i int, seconds float64, result string, sites []string, failed ...string) trial {
		c := &cases[i]
		return trial{Program: c.program, Arrangement: c.arrangement, Size: 16, Seconds: seconds, Result: result, Sites: sites, Failed: failed}
	}
	right := slices.Concat(slices.Repeat([]string{orsay}, 8), slices.Repeat([]string{bordeaux}, 8))
	all := []trial{
		run(0, 1.2, "best 1", right), run(0, 1.4, "best 1", right, "lost:\n  why"), run(0, 9, "best 1", right), run(1, 2, "best 1", cases[1].sites),
		run(2, 1, "best 1", cases[2].sites), run(3, 1.1, "sum 1", cases[3].sites), run(4, 1, "sum 1", cases[4].sites),
	}
	dir := t.TempDir()
	keepIt := func(quick bool) error {
		return chart.Keep(dir, func(r *chart.Results) error { return report(r, cases, all, quick) })
	}
	if err := keepIt(true); err != nil {
		t.Errorf("a quick run judges: %v", err)
	}
	if err := keepIt(false); err == nil || err.Error() != "islands of 16: good is 1.400 of single, aim 1.10" {
		t.Errorf("a missed aim: %v", err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "results.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| 16 | 1.40 (1.20 to 9.00) | 2.00 (2.00 to 2.00) | 1.00 (1.00 to 1.00) | **1.400: missed** | 2.00 | 6.0 |\n",
		"| 16 | 8 bordeaux, 8 orsay | 1.10 (1.10 to 1.10) | 1.00 (1.00 to 1.00) | **1.100** |\n",
		"Repeated: islands good of 16: lost: why\n7 runs, and 1 that failed and were repeated.",
	} {
		if !strings.Contains(string(b), want) {
			t.Errorf("the results lack %q:\n%s", want, b)
		}
	}
	for _, name := range []string{"islands.png", "nbody.png", "topology.csv"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	all = append(all, run(4, 1, "sum 2", cases[4].sites), run(2, 1, "best 1", right))
	want := `nbody slowest of 16: found "sum 2", and "sum 1" before; islands single of 16: ranks at map[bordeaux:8 orsay:8]`
	if err := keepIt(true); err == nil || err.Error() != want {
		t.Errorf("other results, and ranks elsewhere: %v", err)
	}
}

func TestAgain(t *testing.T) {
	lost := errors.New("lost")
	calls := 0
	failed, err := again(t.Context(), func() error {
		if calls++; calls < tries {
			return lost
		}
		return nil
	})
	if err != nil || len(failed) != tries-1 || failed[0] != "lost" {
		t.Errorf("%q, %v", failed, err)
	}
	if failed, err = again(t.Context(), func() error { return lost }); err == nil || len(failed) != tries {
		t.Errorf("what always fails: %q, %v", failed, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if failed, err = again(ctx, func() error { cancel(); return lost }); !errors.Is(err, context.Canceled) || len(failed) > 0 {
		t.Errorf("interrupted: %q, %v", failed, err)
	}
}

func TestSitesOf(t *testing.T) {
	job := &jobs.Status{Workers: []jobs.WorkerStatus{{Name: "orsay-1"}, {Name: "rennes-2"}}}
	if sites := sitesOf(job); !slices.Equal(sites, []string{orsay, rennes}) {
		t.Errorf("got %v", sites)
	}
}
