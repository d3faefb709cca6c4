package main

import (
	"fmt"
	"time"

	"zorilla/internal/units"
)

// parseSize reads the size that an option has.
func parseSize(flag, s string) (int64, error) {
	n, err := units.ParseBytes(s)
	if err != nil {
		return 0, fmt.Errorf("%s %s: %w", flag, s, err)
	}
	return n, nil
}

// since reads a time of the past that an option has: how long ago it is, or when it was, in the
// zone of now if it names none.
func since(flag, s string, now time.Time) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, s, now.Location()); err == nil {
			return t, nil
		}
	}
	ago, err := units.ParseSpan(s)
	if err != nil {
		return time.Time{}, fmt.Errorf("%s %s: %w; or a time such as 2006-01-02 15:04", flag, s, err)
	}
	return now.Add(-ago), nil
}

// parseTime reads the length of time that an option has.
func parseTime(flag, s string) (time.Duration, error) {
	d, err := units.ParseSpan(s)
	if err != nil {
		return 0, fmt.Errorf("%s %s: %w", flag, s, err)
	}
	return d, nil
}
