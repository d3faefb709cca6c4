package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// figure is a time, and where it is from.
type figure struct {
	Seconds float64 `json:"seconds"`
	Source  string  `json:"source"` // how and where it was measured, or "estimate"
}

// measured is what the simulation is told.
type measured struct {
	Detection   figure `json:"detection"`    // from the end of a node to the choice of another
	RestoreNear figure `json:"restore_near"` // from that choice to the next iteration, with a checkpoint of the same site
	RestoreFar  figure `json:"restore_far"`  // the same, with a checkpoint of another site
	Checkpoint  figure `json:"checkpoint"`   // between two of a task
	Iteration   figure `json:"iteration"`    // of a task of mean cost on a node of mean power
	MessageNear figure `json:"message_near"` // from the end of an iteration until a neighbour at the same site has its result
	MessageFar  figure `json:"message_far"`  // the same at the mean distance of two sites
}

// all lists the figures with their names in the file.
func (m *measured) all() []named {
	return []named{{"detection", &m.Detection}, {"restore_near", &m.RestoreNear}, {"restore_far", &m.RestoreFar}, {"checkpoint", &m.Checkpoint},
		{"iteration", &m.Iteration}, {"message_near", &m.MessageNear}, {"message_far", &m.MessageFar}}
}

type named struct {
	name string
	*figure
}

func readMeasured(path string) (*measured, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%w: start me in the root of the repository, or name the file with -measured", err)
	}
	var m measured
	d := json.NewDecoder(strings.NewReader(string(b)))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, f := range m.all() {
		switch {
		case !(f.Seconds > 0 && f.Seconds < 3600):
			return nil, fmt.Errorf("%s: %s is %v seconds: want more than 0, and less than 3600", path, f.name, f.Seconds)
		case f.Source == "":
			return nil, fmt.Errorf("%s: %s does not say where it is from: name a measurement, or estimate", path, f.name)
		}
	}
	return &m, nil
}
