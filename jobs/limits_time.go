package jobs

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"zorilla/internal/codec"
	"zorilla/internal/units"
	"zorilla/jobs/hours"
)

// TimeLimits say when the owner lends the machine, and for how long.
type TimeLimits struct {
	// Hours are when there is new work, by the clock of the machine; the zero value = always.
	Hours hours.Week `json:"hours,omitzero"`
	// AfterHours is what becomes of workers that run when the hours end: HoursFinish or HoursEnd; "" = HoursFinish.
	AfterHours string `json:"after_hours,omitempty"`
	// MaxWalltime is the longest walltime of jobs that come here, and the walltime of those without one; 0 = no limit.
	MaxWalltime codec.Duration `json:"max_walltime,omitempty"`
}

// What becomes of workers when the hours end.
const (
	HoursFinish = "finish" // they go on
	HoursEnd    = "end"    // they are ended, and the machine is free then
)

const leastMaxWalltime = time.Second

func (l *TimeLimits) checkTime() error {
	if _, err := afterHours(cmp.Or(l.AfterHours, HoursFinish)); err != nil {
		return fmt.Errorf("after-hours %.40q: %w", l.AfterHours, err)
	}
	if d := l.MaxWalltime.Std(); d != 0 && (d < leastMaxWalltime || d > MaxTime) {
		return fmt.Errorf("max-walltime %v: want %v to %v, or none", d, leastMaxWalltime, MaxTime)
	}
	return nil
}

func hoursOf(value string) (hours.Week, error) {
	if value == "none" {
		return hours.Week{}, nil
	}
	return hours.Parse(value)
}

func afterHours(value string) (string, error) {
	switch value {
	case HoursFinish:
		return "", nil
	case HoursEnd:
		return value, nil
	}
	return "", errors.New("want finish or end")
}

func maxWalltime(value string) (codec.Duration, error) {
	if value == "none" {
		return 0, nil
	}
	d, err := units.ParseSpan(value)
	return codec.Duration(d), err
}
