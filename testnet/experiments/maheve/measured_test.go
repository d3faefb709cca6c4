package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"zorilla/internal/needs"
	"zorilla/jobs"
	"zorilla/testnet/hosts/lab"
)

// Everything is measured once, with real nodes.
func TestQuick(t *testing.T) {
	needs.Root(t)
	needs.Programs(t, "go", "ip", "bridge", "tc")
	t.Chdir("../../..")
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute) // of ten that a test has
	defer cancel()
	e := efforts[true]
	m, err := takeMeasure(ctx, &e)
	if err != nil {
		t.Fatal(err)
	}
	m.report(os.Stdout)
	// The cables and the patience of jobs set limits below which nothing can be.
	least := float64(e.sizes[0]) * 8 / (siteMbit * 1e6)
	if m.RestoreFar.Least < least || m.RestoreNear.Least >= m.RestoreFar.Least {
		t.Errorf("a far restore took %v s, a near one %v: a line of %d Mbit/s needs %.2f s", m.RestoreFar.Least, m.RestoreNear.Least, siteMbit, least)
	}
	if patient := m.Beside["detection without --lost-after"]; m.Detection.Most > 5 || patient.Least < 6 {
		t.Errorf("a node was missed after %v s with --lost-after 2s, and after %v without", m.Detection.Most, patient.Least)
	}
	if m.MessageFar.Least < 0.015 || m.MessageNear.Least > m.MessageFar.Least || m.Iteration.Times < e.ranks {
		t.Errorf("messages took %v s near and %v far, of %d iterations", m.MessageNear, m.MessageFar, m.Iteration.Times)
	}
}

// figures of everything that a file may have.
const goodFigures = `"detection": {"seconds": 1.5, "least": 1, "most": 2, "times": 3, "source": "measured"}, "restore_near": {"seconds": 1, "source": "estimate"},
	"restore_far": {"seconds": 1, "source": "estimate"}, "checkpoint": {"seconds": 1, "source": "chosen"}, "iteration": {"seconds": 1, "source": "estimate"},
	"message_near": {"seconds": 1, "source": "estimate"}, "message_far": {"seconds": 1, "source": "estimate"},
	"beside": {"something": {"seconds": 1, "least": 1, "most": 1, "times": 1, "source": "measured"}}`

const goodOccasion = `"occasion": {"commit": "abc", "date": "2026-11-29", "machine": "2 cores", "load": "0", "lab": "two hosts", "lost_after": "2s", "checkpoint_bytes": 5,
	"iterations": "a program"}`

func TestReadMeasured(t *testing.T) {
	good := "{" + goodFigures + ", " + goodOccasion + "}"
	change := func(old, to string) string {
		if strings.Count(good, old) == 0 {
			t.Fatalf("%s is not there", old)
		}
		return strings.Replace(good, old, to, 1)
	}
	for _, c := range []struct{ text, want string }{
		{good, ""},
		{change(`"least": 1, "most": 2, "times": 3, "source": "measured"`, `"source": "estimate"`), ""},
		{change(`"seconds": 1.5, "least"`, `"least"`), "detection is 0 seconds"},
		{change(`"seconds": 1, "source": "chosen"`, `"seconds": -1, "source": "chosen"`), "checkpoint is -1 seconds"},
		{change(`"seconds": 1, "source": "chosen"`, `"seconds": 3600, "source": "chosen"`), "checkpoint is 3600 seconds"},
		{change(`, "source": "chosen"`, ``), "checkpoint does not say where it is from"},
		{change(`"chosen"`, `"a guess"`), `checkpoint is from "a guess": want measured, chosen or estimate`},
		{change(`"chosen"`, `"measured"`), "checkpoint was measured 0 times"},
		{change(`"seconds": 1, "source": "chosen"`, `"seconds": 1, "times": 3, "source": "chosen"`), `checkpoint was measured 3 times, but is "chosen"`},
		{change(`"least": 1, "most": 2`, `"least": 1.6, "most": 2`), "want a median between the least and the most"},
		{change(`"most": 2`, `"most": 1.4`), "want a median between the least and the most"},
		{change(`"least": 1, "most": 1, "times": 1`, `"least": 1, "most": 1`), "something was measured 0 times"},
		{"{" + goodFigures + "}", "detection was measured, but not said when and where"},
		{change(`"abc"`, `""`), "detection was measured, but not said when and where"},
		{change(`"detection"`, `"detected"`), `unknown field "detected"`},
		{`{`, "unexpected EOF"},
	} {
		path := filepath.Join(t.TempDir(), "measured.json")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := readMeasured(path)
		if c.want == "" {
			if err != nil || m.Detection.Seconds != 1.5 || m.Beside["something"].Times != 1 || m.Occasion.Lab != "two hosts" {
				t.Errorf("%+v, %v", m, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	if _, err := readMeasured(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a file that is not there is read")
	}
}

// The file that is written is read as it was, and one that would be refused is not written.
func TestWriteMeasured(t *testing.T) {
	path := filepath.Join(t.TempDir(), "measured.json")
	if err := os.WriteFile(path, []byte("{"+goodFigures+", "+goodOccasion+"}"), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := readMeasured(path)
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("%+v %+v", m.all(), *m.Occasion)
	if err := m.write(path); err != nil {
		t.Fatal(err)
	}
	again, err := readMeasured(path)
	if err != nil || m.Detection != again.Detection || m.MessageFar != again.MessageFar || m.Beside["something"] != again.Beside["something"] || *m.Occasion != *again.Occasion {
		t.Errorf("%s, and then %+v, %v", want, again, err)
	}
	m.RestoreFar = figureOf(nil)
	if err := m.write(path); err == nil || !strings.Contains(err.Error(), "restore_far is 0 seconds") {
		t.Errorf("what was not measured is written: %v", err)
	}
}

// The report names what is an estimate, and nothing else as one.
func TestReportMeasured(t *testing.T) {
	m := &measured{Checkpoint: figure{Seconds: 5, Source: wasChosen}, Occasion: &occasion{Date: "2026-11-29", Lab: "two hosts"},
		Beside: map[string]figure{"something else": figureOf([]float64{1})}}
	for _, f := range m.all() {
		if f.Source == "" {
			*f.figure = figureOf([]float64{3, 1, 2.5, 7})
		}
	}
	print := func() string {
		var b strings.Builder
		m.report(&b)
		return b.String()
	}
	text := print()
	for _, want := range []string{"| detection | 2.5 | 1 | 7 | 4 | measured |\n", "| checkpoint | 5 | | | | chosen |\n", "| something else | 1 | 1 | 1 | 1 | measured |\n",
		"Measured on 2026-11-29", "two hosts"} {
		if !strings.Contains(text, want) {
			t.Errorf("it lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(strings.ToLower(text), "estimate") {
		t.Errorf("nothing is an estimate:\n%s", text)
	}
	m.RestoreFar, m.Iteration = figure{Seconds: 5, Source: isEstimate}, figure{Seconds: 5, Source: isEstimate}
	if text := print(); !strings.Contains(text, "Estimates, which nobody has measured: restore_far, iteration.\n") {
		t.Errorf("two are estimates:\n%s", text)
	}
}

// Restores are told apart by size and distance, deaths by what was done and by patience. All nodes that were killed
// under a job with the patience that is simulated count for its detection.
func TestFigures(t *testing.T) {
	const small, large = 16 << 20, 64 << 20
	f := found{
		Iterations: []float64{0.5, 0.4}, Took: []float64{0.9, 0.6}, Near: []float64{0.01}, Far: []float64{0.02, 0.03, 0.04},
		Restores: []restore{{small, false, 0.1, 1.1, 0.2}, {small, true, 0.2, 1.2, 2}, {large, false, 0.5, 1.3, 0.6}, {large, true, 0.7, 1.4, 7}, {small, true, 0.3, 1.5, 4}},
		Deaths:   []death{{deedKill, jobs.LeastPatience, 1.9}, {deedCut, jobs.LeastPatience, 1.8}, {deedKill, 0, 9}, {deedCut, 0, 8}},
	}
	m := f.figures(&effort{sizes: []int64{small, large}})
	for _, f := range append(m.all(), m.beside()...) {
		if err := f.check(); err != nil {
			t.Errorf("%s %v", f.name, err)
		}
	}
	for name, want := range map[string]figure{
		"wait for a checkpoint of 16 MiB": {0.2, 0.1, 0.3, 3, wasMeasured}, "wait for a checkpoint of 64 MiB": {0.5, 0.5, 0.7, 2, wasMeasured},
		"restore_near of 64 MiB": {0.6, 0.6, 0.6, 1, wasMeasured}, "restore_far of 64 MiB": {7, 7, 7, 1, wasMeasured},
		"iteration beside those of other hosts": {0.6, 0.6, 0.9, 2, wasMeasured},
		"detection of a pulled cable":           {1.8, 1.8, 1.8, 1, wasMeasured}, "detection without --lost-after": {9, 9, 9, 1, wasMeasured},
		"detection of a pulled cable without --lost-after": {8, 8, 8, 1, wasMeasured},
	} {
		if got := m.Beside[name]; got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	got := []figure{m.Detection, m.RestoreNear, m.RestoreFar, m.Checkpoint, m.Iteration, m.MessageNear, m.MessageFar}
	want := []figure{{1.3, 1.1, 1.9, 6, wasMeasured}, {0.2, 0.2, 0.2, 1, wasMeasured}, {2, 2, 4, 2, wasMeasured}, {Seconds: 5, Source: wasChosen},
		{0.4, 0.4, 0.5, 2, wasMeasured}, {0.01, 0.01, 0.01, 1, wasMeasured}, {0.03, 0.02, 0.04, 3, wasMeasured}}
	if len(m.Beside) != 8 || !slices.Equal(got, want) {
		t.Errorf("%v and %d beside, want %v", got, len(m.Beside), want)
	}
}

// What ranks print comes in pieces; by their sites messages are near or far.
func TestTales(t *testing.T) {
	var f found
	s := tales{f: &f, site: []int{1, 2, 2}, want: 1, rest: make([]string, 3), iterations: make([]int, 3)}
	for _, o := range []jobs.Output{
		{Rank: 0, Data: []byte("rank 0: attempt 1 listens at [::]:5000\nrank 0: iter")}, {Rank: 1, Data: []byte("rank 1: plane of rank 2 took 0.010000 s\n")},
		{Rank: 0, Data: []byte("ation 1 took 0.700000 s, 0.500000 s of computing\nrank 0: plane of rank 1 took 0.020000 s\n")}, {Rank: 2, Data: []byte("rank 2: iteration 50\n")},
		{Rank: 2, Data: []byte("rank 2: iteration 1 took 0.400000 s, 0.400000 s of computing\n")}, {Rank: 1, Data: []byte("rank 1: iteration 1 took 0.800000 s, 0.300000 s of computing")},
	} {
		s.take(&o)
	}
	if s.enough() || s.iterations[1] != 0 {
		t.Errorf("half a line was taken: %+v", s)
	}
	s.take(&jobs.Output{Rank: 1, Data: []byte("\n")})
	if !s.enough() || !slices.Equal(f.Iterations, []float64{0.5, 0.4, 0.3}) || !slices.Equal(f.Took, []float64{0.7, 0.4, 0.8}) || !slices.Equal(f.Near, []float64{0.01}) || !slices.Equal(f.Far, []float64{0.02}) {
		t.Errorf("%+v, %+v", s, f)
	}
}

func TestDescribe(t *testing.T) {
	p, err := lab.PlanOf(network)
	if err != nil {
		t.Fatal(err)
	}
	want := "21 hosts at 3 sites (home 1, north 10, west 10); round trips 25 ms from home to north, 35 ms from home to west, 30 ms from north to west; "
	if got := describe(p); !strings.HasPrefix(got, want) {
		t.Errorf("%s\nwant %s", got, want)
	}
}
