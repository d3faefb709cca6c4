package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"zorilla/testnet/chart"
)

// Where a figure can be from.
const (
	wasMeasured = "measured"
	wasChosen   = "chosen"   // it is as one likes
	isEstimate  = "estimate" // nobody has measured it
)

// figure is a time in seconds, and where it is from. What was measured several times is the median.
type figure struct {
	Seconds float64 `json:"seconds"`
	Least   float64 `json:"least,omitempty"`
	Most    float64 `json:"most,omitempty"`
	Times   int     `json:"times,omitempty"` // that it was measured
	Source  string  `json:"source"`
}

// figureOf is the figure of what was measured.
func figureOf(seconds []float64) figure {
	s := slices.Sorted(slices.Values(seconds))
	if len(s) == 0 {
		return figure{Source: wasMeasured} // check refuses it
	}
	return figure{quantile(s, 0.5), s[0], s[len(s)-1], len(s), wasMeasured}
}

// check says what is wrong with it.
func (f *figure) check() error {
	switch {
	case !(f.Seconds > 0 && f.Seconds < 3600):
		return fmt.Errorf("is %v seconds: want more than 0, and less than 3600", f.Seconds)
	case f.Source == wasMeasured && (f.Times < 1 || !(0 < f.Least && f.Least <= f.Seconds && f.Seconds <= f.Most)):
		return fmt.Errorf("was measured %d times, and is %v seconds, %v to %v: want a median between the least and the most",
			f.Times, f.Seconds, f.Least, f.Most)
	case f.Source != wasMeasured && (f.Times != 0 || f.Least != 0 || f.Most != 0):
		return fmt.Errorf("was measured %d times, but is %q", f.Times, f.Source)
	case f.Source != wasMeasured && f.Source != wasChosen && f.Source != isEstimate:
		return fmt.Errorf("is from %q: want %s, %s or %s", f.Source, wasMeasured, wasChosen, isEstimate)
	}
	return nil
}

// measured is what the simulation is told.
type measured struct {
	Detection   figure `json:"detection"`    // from the end of a node until its tasks count as lost
	RestoreNear figure `json:"restore_near"` // from then to the next iteration, with a checkpoint of the same site
	RestoreFar  figure `json:"restore_far"`  // the same, with a checkpoint of another site
	Checkpoint  figure `json:"checkpoint"`   // between two of a task
	Iteration   figure `json:"iteration"`    // of a task of mean cost on a node of mean power
	MessageNear figure `json:"message_near"` // from the end of an iteration until a neighbour at the same site has its result
	MessageFar  figure `json:"message_far"`  // the same at the mean distance of two sites

	Beside   map[string]figure `json:"beside,omitempty"` // what else was measured, which is not simulated
	Occasion *occasion         `json:"occasion,omitempty"`
}

// occasion is when and where figures were measured.
type occasion struct {
	Commit          string `json:"commit"`
	Date            string `json:"date"`
	Machine         string `json:"machine"`
	Load            string `json:"load"` // of the machine, before and after
	Lab             string `json:"lab"`
	LostAfter       string `json:"lost_after"`       // of the jobs, unless a figure says otherwise
	CheckpointBytes int64  `json:"checkpoint_bytes"` // likewise
	Aside           int    `json:"put_aside"`        // restores, since their checkpoints were not kept at their sites
	Iterations      string `json:"iterations"`       // of which program
}

// all lists what is simulated, with the names in the file.
func (m *measured) all() []named {
	return []named{{"detection", &m.Detection}, {"restore_near", &m.RestoreNear}, {"restore_far", &m.RestoreFar}, {"checkpoint", &m.Checkpoint},
		{"iteration", &m.Iteration}, {"message_near", &m.MessageNear}, {"message_far", &m.MessageFar}}
}

// beside lists the others.
func (m *measured) beside() (list []named) {
	for _, name := range slices.Sorted(maps.Keys(m.Beside)) {
		f := m.Beside[name]
		list = append(list, named{name, &f})
	}
	return list
}

type named struct {
	name string
	*figure
}

// check says what is wrong with it.
func (m *measured) check() error {
	for _, f := range append(m.all(), m.beside()...) {
		if f.Source == "" {
			return fmt.Errorf("%s does not say where it is from: want %s, %s or %s", f.name, wasMeasured, wasChosen, isEstimate)
		}
		if err := f.check(); err != nil {
			return fmt.Errorf("%s %w", f.name, err)
		}
		if o := m.Occasion; f.Source == wasMeasured && (o == nil || o.Commit == "" || o.Date == "" || o.Machine == "" || o.Lab == "") {
			return fmt.Errorf("%s was measured, but not said when and where: want a commit, date, machine and lab of the occasion", f.name)
		}
	}
	return nil
}

func readMeasured(path string) (*measured, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%w: start me in the root of the repository, or name the file with -measured", err)
	}
	var m measured
	d := json.NewDecoder(strings.NewReader(string(b)))
	d.DisallowUnknownFields()
	err = d.Decode(&m)
	if err == nil {
		err = m.check()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &m, nil
}

// write makes the file, with nothing in it that readMeasured refuses.
func (m *measured) write(path string) error {
	if err := m.check(); err != nil {
		return err
	}
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o644)
}

// report prints all figures, and names those that are estimates.
func (m *measured) report(w io.Writer) {
	table := func(title string, list []named) {
		fmt.Fprintf(w, "| %s | s | lowest | highest | times | source |\n|---|---|---|---|---|---|\n", title)
		for _, f := range list {
			if f.Source != wasMeasured {
				fmt.Fprintf(w, "| %s | %s | | | | %s |\n", f.name, chart.Number(f.Seconds), f.Source)
				continue
			}
			fmt.Fprintf(w, "| %s | %s | %s | %s | %d | %s |\n", f.name, chart.Number(f.Seconds), chart.Number(f.Least), chart.Number(f.Most), f.Times, f.Source)
		}
	}
	table("simulated with", m.all())
	if len(m.Beside) > 0 {
		fmt.Fprintln(w)
		table("measured beside that", m.beside())
	}
	if o := m.Occasion; o != nil {
		fmt.Fprintf(w, "\nMeasured on %s, the program as of commit %s, on %s (load before and after: %s): %s. Jobs with --lost-after %s,\n"+
			"checkpoints of %d bytes a rank, unless the table says otherwise; %d restores were put aside, as their checkpoints were not kept at their sites.\n"+
			"Iterations and messages are those of %s.\n",
			o.Date, o.Commit, o.Machine, o.Load, o.Lab, o.LostAfter, o.CheckpointBytes, o.Aside, o.Iterations)
	}
	var estimates []string
	for _, f := range m.all() {
		if f.Source == isEstimate {
			estimates = append(estimates, f.name)
		}
	}
	if len(estimates) > 0 {
		fmt.Fprintf(w, "\nEstimates, which nobody has measured: %s.\n", strings.Join(estimates, ", "))
	}
}
