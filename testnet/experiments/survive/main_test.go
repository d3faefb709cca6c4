package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"zorilla/internal/needs"
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

// Two hosts of six die under a small computation. It comes to the right solution, and the ranks that
// were there go on from their checkpoints.
func TestQuick(t *testing.T) {
	needs.Root(t)
	needs.Programs(t, "go", "ip", "bridge")
	t.Chdir("../../..")
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute) // of ten that a test has
	defer cancel()
	o := &options{rounds: 1, quick: true, slots: 2, seed: 1, scale: scales[true]}
	all, err := collect(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := chart.Keep("", func(r *chart.Results) error { return report(r, all, o) }); err != nil {
		t.Error(err)
	}
	if len(all) != 1 || len(all[0].Kills) != o.most || all[0].ranksLost() == 0 ||
		all[0].Attempts < all[0].ranksLost() || all[0].Resumed == 0 || all[0].WentOn == 0 {
		t.Errorf("seed %d: %+v", o.seed, all)
	}
}

// A run is judged by the undisturbed one of its round.
func TestReport(t *testing.T) {
	runs := func(seconds float64, why string) []trial {
		return []trial{
			{Kind: undisturbed, Round: 1, Solved: true, Seconds: 40, Residual: 9e-7, Wrong: 1e-8},
			{Kind: kept, Round: 1, Solved: true, Seconds: seconds, Attempts: 1, Resumed: 1, Why: why,
				Kills: []loss{{5, "east-2", "east-5", []lostRank{{3, 1, 2.5}}}, {10, "west-1", "west-5", nil}}},
			{Kind: lostAll, Round: 1, Seconds: 120, Iteration: 300, Why: "not within 2m0s"},
		}
	}
	for _, c := range []struct {
		seconds float64
		why     string
		right   bool
		wants   []string
	}{
		{60, "", true, []string{
			"| checkpoints | 1 | yes | 60.0 | 1.5 | 2 | 1 | 1 | 1 | 2.5 s (2.5 to 2.5) |",
			"1.50 times with checkpoints, met; without 3.00 times, then given up.",
			"| nothing | 1 | no, slowest rank in iteration 300 | 120.0 | 3 |"}},
		{61, "", false, []string{"1.52 times with checkpoints, missed;"}},
		{50, "wrong by 1", false, []string{"1.25 times with checkpoints, missed;"}},
	} {
		dir := t.TempDir()
		err := chart.Keep(dir, func(r *chart.Results) error { return report(r, runs(c.seconds, c.why), &options{scale: scales[false]}) })
		if (err == nil) != c.right {
			t.Errorf("%v s, %q: %v", c.seconds, c.why, err)
		}
		b, err := os.ReadFile(filepath.Join(dir, "results.txt"))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range c.wants {
			if !strings.Contains(string(b), want) {
				t.Errorf("%q is not in:\n%s", want, b)
			}
		}
		for _, name := range []string{"runs.csv", "losses.csv"} {
			if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
