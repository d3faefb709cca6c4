package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

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

// A small version of everything: the table, the sweep, and all files.
func TestSmall(t *testing.T) {
	t.Chdir("../../..")
	dir := t.TempDir()
	o := &options{measured: "docs/experiments/maheve/measured.json", seeds: 2, shapes: 1, far: []float64{5, 30}}
	if err := chart.Keep(dir, func(r *chart.Results) error { return experiment(r, o) }); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "results.txt"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	for _, want := range []string{"hd = 0.08: 106 nodes in 4 clusters at 4 sites", "hd = 0.72: 115 nodes in 5 clusters at 4 sites", "| 30 |", "| restore_far | ",
		"| failures | like QM |", "| 0.08 | none |", "| 0.72 | at random |", " (55) |", " (2.86) |"} {
		if !strings.Contains(text, want) {
			t.Errorf("the results lack %q:\n%s", want, text)
		}
	}
	for _, how := range methods() {
		if n := strings.Count(text, "| "+how.name+" | "); n < 3 {
			t.Errorf("%s has %d rows", how.name, n)
		}
	}
	for name, lines := range map[string]int{"maheve.csv": 1 + 3*3*2*7, "sweep.csv": 1 + 3*2*2*6} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if n := strings.Count(string(b), "\n"); err != nil || n != lines {
			t.Errorf("%s has %d lines, want %d; %v", name, n, lines, err)
		}
	}
	for _, name := range []string{"gain-008.svg", "gain-050.svg", "gain-072.svg", "random.svg", "ratio.svg"} {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !strings.Contains(string(b), "<svg") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Without failures the default takes as long as in the paper, all methods converge, and each run is the same again.
func TestRunsAreAsLongAsThoseOfThePaper(t *testing.T) {
	o := &options{seeds: 3, shapes: 1}
	m := &measured{Detection: figure{Seconds: 3}, RestoreNear: figure{Seconds: 1}, RestoreFar: figure{Seconds: 15}, Checkpoint: figure{Seconds: 5},
		Iteration: figure{Seconds: 0.5}, MessageNear: figure{Seconds: 0.01}, MessageFar: figure{Seconds: 0.2}}
	for _, k := range kinds() {
		trials := o.trials(&k, m)
		end := enough(trials, m)
		play := func() (all []result) {
			for _, failing := range []failures{never, paced, atRandom} {
				all = append(all, playKind(trials, m, end, failing, methods())...)
			}
			return all
		}
		all := play()
		if got, want := median(pick(all, k.hd, byDefault, never)), k.paper[byDefault][0]; math.Abs(got-want) > m.Iteration.Seconds {
			t.Errorf("hd %v: the default takes %v s, want %v", k.hd, got, want)
		}
		for i, again := range play() {
			if again != all[i] {
				t.Errorf("%+v, and then %+v", all[i], again)
			}
			if r := all[i]; r.failures == never && (math.IsInf(r.seconds, 1) || r.failed > 0) {
				t.Errorf("without failures: %+v", r)
			} else if r.failures == paced && !math.IsInf(r.seconds, 1) && r.failed != atATime*int(r.seconds/every) {
				t.Errorf("two every 20 s: %+v", r)
			}
		}
	}
}

func TestGain(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct{ base, own, want float64 }{{200, 100, 50}, {100, 150, -50}, {inf, 100, 100}, {100, inf, math.Inf(-1)}, {inf, inf, math.NaN()}} {
		if got := gain(c.base, c.own); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%v by %v: %v, want %v", c.own, c.base, got, c.want)
		}
	}
	run := func(seconds ...float64) (list []result) {
		for _, s := range seconds {
			list = append(list, result{method: byMaheve, outcome: outcome{seconds: s}})
		}
		return list
	}
	if got, want := gainText(run(100, 200, inf, 400), run(50, 150, 300, 400)), "**25** (0 to 50)"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := span(run(3, inf, 1, 2)), "2 (1 to 3)"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	k := kinds()[1]
	if ff, wf := k.gain(byMaheve, 0), k.gain(byMaheve, 1); ff != "19" || wf != "65" || k.gain(byDefault, 0)+k.gain(ours, 1) != "" {
		t.Errorf("the paper's gains are %s and %s %%", ff, wf)
	}
}
